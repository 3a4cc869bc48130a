#pragma once
/// The parts that attention's families share: the abilities of their kernels, and the problems on which they are
/// tested. It also has the base of families with one kernel, which is launched once on a Hopper GPU.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/attention/launch.hpp"
#include "strategies/kernel_strategy.hpp"
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

/// Every ability, with heads and values of `dims` columns, which need not be as wide as each other.
[[nodiscard]] Abilities all_abilities(const std::vector<std::int64_t>& dims);

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

/// One long problem for each format and head dimension: a kernel each, whatever the lengths are.
[[nodiscard]] std::vector<Sample<AttentionProblem>> long_sequences();

/// A dense problem of two heads whose code is that of `problem`, and whose logits are of its kind.
[[nodiscard]] AttentionProblem dense_like(const AttentionProblem& problem, std::int64_t queries, std::int64_t keys);

/// Small problems whose code is `problem`'s. One is causal and larger than a tile; only one is, since it takes most of
/// the time. Another has a window in which some rows see no key, and the last has sequences of several lengths.
[[nodiscard]] std::vector<AttentionProblem> ragged_like(const AttentionProblem& problem, std::int64_t tile_rows,
                                                        std::int64_t keys);

/// `problem`, causal and with a paged KV cache: pages of `page` rows, as many as its sequences can fill.
[[nodiscard]] AttentionProblem in_pages(AttentionProblem problem, std::int64_t page);

/// The extents of a small problem with a paged KV cache.
struct PagedExtents {
  std::int64_t batch;
  std::int64_t max_kv_heads;
  std::int64_t max_group;  ///< query heads of a head of keys
  std::int64_t queries;
  std::int64_t keys;
};
[[nodiscard]] AttentionProblem paged_like(const AttentionProblem& problem, const PagedExtents& extents);

/// The configuration that a kernel is compiled for, and how it is launched.
template <class Kernel>
struct Launched : Kernel {
  bool dependent_launch = false;
};

template <class Config>
Knob<Config> dependent_launch_knob() {
  return of_launch(flag("dependent_launch", &Config::dependent_launch,
                        "the call may start while the one before it in the stream is ending"));
}

/// A kernel without choices.
struct NoKnobs {};
inline const KnobTable<Launched<NoKnobs>>& launch_knobs() {
  static const KnobTable<Launched<NoKnobs>> table{"", {dependent_launch_knob<Launched<NoKnobs>>()}};
  return table;
}

/// The base of such a family. `Own` has the members that KernelFamily requires, and these.
///
/// `abilities()`: the problems that its kernel takes.
/// `limits(problem, config)`: why the kernel cannot run a problem within its abilities.
/// `kernel(problem, config)`: the AttentionKernel of the configuration.
/// `sample_knobs()`: other choices whose code the emulator runs too, with direct logits.
template <class Own, class Kernel>
struct OneKernel : FamilyDefaults<AttentionProblem, Launched<Kernel>> {
  using Config = Launched<Kernel>;
  static constexpr Overrides overrides{.edges = true, .samples = true};

  static std::optional<std::string> unsupported_reason(const AttentionProblem&, const DeviceSpec& device) {
    return unless_hopper(Own::name, device);
  }

  static std::vector<std::string> infeasible_reasons(const AttentionProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    std::vector<std::string> all = beyond(Own::abilities(), problem);
    if (all.empty()) {
      all = Own::limits(problem, config);
      for (std::string& reason : beyond(Own::kernel(problem, config).geometry, problem, device)) {
        all.push_back(std::move(reason));
      }
    }
    return all;
  }

  static PlannedCall plan(const AttentionProblem& problem, const Config& config, const DeviceSpec& device) {
    PlannedCall call;
    AttentionKernel kernel = Own::kernel(problem, config);
    call.why = kernel.why;
    add_launch(call, Own::name, problem, std::move(kernel), config.dependent_launch, device);
    return call;
  }

  static std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Config& config, const DeviceSpec&) {
    return ragged_like(problem, Own::kernel(problem, config).geometry.tile_rows, 203);
  }

  /// Both head dimensions and formats, both kinds of logits.
  static std::vector<Sample<AttentionProblem>> samples() {
    std::vector<Sample<AttentionProblem>> all;
    for (const auto& [head_dim, format] : {std::pair{64, Format::fp16}, std::pair{128, Format::bf16}}) {
      const AttentionProblem problem{.heads = 2, .queries = 300, .keys = 300, .head_dim = head_dim, .format = format};
      if (!beyond(Own::abilities(), problem).empty()) {
        continue;
      }
      all.push_back({problem, {}});
      for (const Knobs& knobs : Own::sample_knobs()) {
        all.push_back({problem, knobs});
      }
      all.push_back({problem, {}});
      all.back().problem.softcap = 2.0F;
    }
    return all;
  }
};

}  // namespace thresher::strategies::attention
