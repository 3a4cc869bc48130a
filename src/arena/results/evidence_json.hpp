#pragma once
/// Evidence where it leaves the process, and what is read of it where it comes back.
#include <string>
#include <vector>

#include "arena/results/evidence.hpp"

namespace thresher::arena {

/// A JSON object; "{}" for none. What is no UTF-8 in it is replaced.
[[nodiscard]] std::string to_json(const Evidence& evidence);
[[nodiscard]] std::string to_json(const AuditedKernel& kernel);

/// Those of a verdict's evidence, recorded or not; of recorded evidence each `self` stays empty, since its noise alone
/// is kept. Empty for other gates' evidence.
[[nodiscard]] std::vector<ModeSpeedup> speedups_of(const Evidence& evidence);

}  // namespace thresher::arena
