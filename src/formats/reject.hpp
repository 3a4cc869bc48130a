#pragma once
/// How what a file holds is refused.
#include <string>

#include "thresher/error.hpp"

namespace thresher::formats {

[[noreturn]] inline void reject(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

}  // namespace thresher::formats
