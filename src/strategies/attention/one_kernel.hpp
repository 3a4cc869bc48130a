#pragma once
/// The families of attention with one kernel, which is launched once on a Hopper GPU.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strategies/attention/abilities.hpp"
#include "strategies/attention/launch.hpp"
#include "strategies/attention/samples.hpp"
#include "strategies/kernel_strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

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
