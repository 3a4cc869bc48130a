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
  bool fp8_queries = false;
  std::vector<std::int64_t> head_dims{64, 128};
  std::vector<std::int64_t> value_dims{};  ///< that need not be the head's; none: values are as wide as keys
};

/// Heads and values of 64 columns up to 256, which need not be as wide as each other, sinks, and keys in pages.
[[nodiscard]] Abilities of_any_width();

/// Why a kernel of such abilities cannot run the problem: a sentence for each reason.
[[nodiscard]] std::vector<std::string> beyond(const Abilities& abilities, const AttentionProblem& problem);

}  // namespace thresher::strategies::attention
