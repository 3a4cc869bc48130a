#pragma once
/// The experiments. Each answers with an accusation, nothing, or why it could not be made.
#include "arena/honesty/session.hpp"

namespace thresher::arena::honesty {

struct Bench {
  const Problem& problem;
  const Contestant& contestant;
  Rig& rig;
  const HonestyOptions& options;

  [[nodiscard]] const Operation& operation() const { return problem.operation(); }
  [[nodiscard]] Inputs draw(std::uint64_t seed, Distribution distribution = Distribution::full_range) const;
  /// What `draw` gives but for the weights.
  [[nodiscard]] Inputs draw_activations(std::uint64_t seed) const;
  /// What the definition says about `outputs` on `inputs`.
  [[nodiscard]] Finding judge(const Inputs& inputs, const Outputs& outputs,
                              Distribution distribution = Distribution::full_range) const;
};

struct Answer {
  std::optional<Accusation> accusation;
  std::string not_judged;
};

using Probe = Answer (*)(const Bench&);

struct NamedProbe {
  const char* name;
  Probe probe;
};

/// With data: who writes what, when, and from which inputs.
[[nodiscard]] const std::vector<NamedProbe>& data_probes();
/// With the clock: what takes less time than it may.
[[nodiscard]] const std::vector<NamedProbe>& time_probes();

}  // namespace thresher::arena::honesty
