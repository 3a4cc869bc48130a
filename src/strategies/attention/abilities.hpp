#pragma once
/// The attentions that a kernel takes, and the sentences that refuse the others.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/attention/launch.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// The problems that a kernel takes beside the plain case; others are refused.
struct Abilities {
  bool pages = false;
  bool sinks = false;
  bool fp8_keys = false;
  bool fp8_queries = false;
  std::vector<std::int64_t> head_dims{64, 128};
  std::vector<std::int64_t> value_dims{};  ///< that need not be the head's; none: values are as wide as keys
};

/// Everything, with heads and values of 64, 128, 192 and 256 columns, which need not be as wide as each other.
[[nodiscard]] Abilities all_abilities();

/// Why a kernel of such abilities cannot run the problem: a sentence for each reason.
[[nodiscard]] std::vector<std::string> beyond(const Abilities& abilities, const AttentionProblem& problem);

/// Why a kernel with these extents cannot run the problem on the device.
[[nodiscard]] std::vector<std::string> beyond(const Geometry& geometry, const AttentionProblem& problem,
                                              const DeviceSpec& device);

/// Why `strategy` runs on no such device.
[[nodiscard]] std::optional<std::string> unless_hopper(std::string_view strategy, const DeviceSpec& device);
/// The same for a strategy that takes only a paged KV cache.
[[nodiscard]] std::optional<std::string> unless_pages_on_hopper(std::string_view strategy,
                                                                const AttentionProblem& problem,
                                                                const DeviceSpec& device);

}  // namespace thresher::strategies::attention
