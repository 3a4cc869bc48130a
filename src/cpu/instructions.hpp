#pragma once
/// The vector instructions of this CPU that the functions of this folder use.
#include <string>

namespace thresher::cpu {

/// "AVX3_SPR": the best of Highway's targets that this CPU has.
[[nodiscard]] std::string vector_instructions();

}  // namespace thresher::cpu
