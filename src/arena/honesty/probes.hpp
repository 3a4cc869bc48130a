#pragma once
/// The experiments. Each answers with an accusation, nothing, or why it could not be made.
#include <map>
#include <memory>

#include "arena/honesty/session.hpp"

namespace thresher::arena::honesty {

/// Keeps one SharedBuffers at a time, for the distribution that was last used.
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
  std::map<Distribution, Inputs>* drawn = nullptr;  ///< the weights that `draw` reuses; null: none

  /// Null when there is none.
  [[nodiscard]] SharedBuffers* ground(Distribution distribution = Distribution::full_range) const;
  /// A session over inputs of the distribution.
  [[nodiscard]] Session session(std::vector<Inputs> inputs, Distribution distribution = Distribution::full_range,
                                Places places = Places::apart, Memory* memory = nullptr) const {
    return Session(problem, contestant, rig, std::move(inputs), ground(distribution), places, memory);
  }

  [[nodiscard]] const Operation& operation() const { return problem.operation(); }
  /// Activations of that seed. Weights of each distribution are drawn once and rotated for each seed, since drawing
  /// them takes most of the time.
  [[nodiscard]] Inputs draw(std::uint64_t seed, Distribution distribution = Distribution::full_range) const;
  /// The tensors of `draw` except the weights.
  [[nodiscard]] Inputs draw_activations(std::uint64_t seed) const;
  /// Judges `outputs` on `inputs` by the definition.
  [[nodiscard]] Finding judge(const Inputs& inputs, const Outputs& outputs,
                              Distribution distribution = Distribution::full_range) const;
};

struct Answer {
  std::optional<Accusation> accusation;
  std::string not_judged;
  /// The right outputs depend so little on the inputs that a kernel which ignores them may be right. A pass on this
  /// problem then clears no contestant.
  bool problem_cannot_tell = false;
};

using Probe = Answer (*)(const Bench&);

struct NamedProbe {
  const char* name;
  Probe probe;
};

/// Experiments with data: which call writes which outputs, when, and from which inputs.
[[nodiscard]] const std::vector<NamedProbe>& data_probes();
/// Experiments with the clock: whether a call takes less time than is possible.
[[nodiscard]] const std::vector<NamedProbe>& time_probes();

}  // namespace thresher::arena::honesty
