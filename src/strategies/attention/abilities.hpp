#pragma once
/// What of an attention a kernel does, in one place for all kernels.
#include <cstdint>
#include <string>
#include <vector>

#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// What a kernel does beside the plain case; the rest is refused.
struct Abilities {
  bool pages = false;
  bool sinks = false;
  bool fp8_keys = false;
  bool value_dims = false;  ///< a value dimension that is not the head's
  std::vector<std::int64_t> head_dims{64, 128};
};

/// Why a kernel of such abilities cannot run the problem: a sentence for each reason.
[[nodiscard]] std::vector<std::string> beyond(const Abilities& abilities, const AttentionProblem& problem);

}  // namespace thresher::strategies::attention
