#pragma once
/// Writes evidence as JSON, and reads parts of it back.
#include <string>
#include <vector>

#include "arena/results/evidence.hpp"

namespace thresher::arena {

/// A JSON object; "{}" for none. Invalid UTF-8 in it is replaced.
[[nodiscard]] std::string to_json(const Evidence& evidence);
[[nodiscard]] std::string to_json(const AuditedKernel& kernel);

/// The speed-ups of a verdict's evidence, recorded or not. In recorded evidence each `self` stays empty, since only its
/// noise is kept. Empty for other gates' evidence.
[[nodiscard]] std::vector<ModeSpeedup> speedups_of(const Evidence& evidence);

}  // namespace thresher::arena
