#pragma once
/// The experiments. Each answers with an accusation, nothing, or why it could not be made.
#include <map>
#include <memory>

#include "arena/honesty/session.hpp"

namespace thresher::arena::honesty {

/// One ground at a time, of the distribution that was asked for last.
struct Grounds {
  SamplePattern pattern;
  Distribution distribution = Distribution::full_range;
  std::unique_ptr<SharedBuffers> ground{};
};

struct Bench {
  const Problem& problem;
  const Contestant& contestant;
  Rig& rig;
  const HonestyOptions& options;
  Grounds* grounds = nullptr;                       ///< null: experiments have sets of their own
  std::map<Distribution, Inputs>* drawn = nullptr;  ///< from which `draw` takes weights; null: from nowhere

  /// Null: there is none.
  [[nodiscard]] SharedBuffers* ground(Distribution distribution = Distribution::full_range) const;
  /// Over inputs of the distribution.
  [[nodiscard]] Session session(std::vector<Inputs> inputs, Distribution distribution = Distribution::full_range,
                                Places places = Places::apart, Memory* memory = nullptr) const {
    return Session(problem, contestant, rig, std::move(inputs), ground(distribution), places, memory);
  }

  [[nodiscard]] const Operation& operation() const { return problem.operation(); }
  /// Activations of that seed. Weights of one distribution are drawn once and turned for each seed: making them takes
  /// the most time.
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
  /// The right outputs depend on the inputs so little that whoever does not look at these may be right: nothing that is
  /// found on the problem clears anybody.
  bool problem_cannot_tell = false;
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
