#pragma once
/// The gate `correct`: fresh random inputs, poisoned outputs, guard zones, the float64 definition.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "arena/contestants/contestant.hpp"
#include "arena/operation/operation.hpp"
#include "arena/results/gate.hpp"
#include "arena/rig/rig.hpp"
#include "arena/suites/suite.hpp"
#include "arena/timing/timing.hpp"

namespace thresher::arena {

/// One problem with one distribution, for contestants of one kind of maker.
struct Trial {
  Problem problem;
  Distribution distribution;
  Maker maker;
  std::uint64_t seed = 0;  ///< of the data, and of what is judged
};

[[nodiscard]] Trial make_trial(const Problem& problem, Distribution distribution, const Maker& maker,
                               std::uint64_t seed);

/// How judged calls are made: like timed calls, where there are any, so that a contestant cannot tell them apart.
struct CallPattern {
  const Contestant* baseline = nullptr;  ///< whose samples are taken in between; null: none
  std::size_t calls_per_sample = 1;
  bool is_timed = false;  ///< with pauses and flushed caches, over equally many sets
  TimingOptions timing{};
  /// The number of calls in a sample of a problem; empty: measured for each.
  std::function<std::size_t(const Problem&)> calls_of{};
};

/// Takes a few samples and judges two in full, on the same inputs with different poisons. The samples and the call
/// within each are drawn. Findings in the other samples count too.
[[nodiscard]] TrialResult run_trial(const Trial& trial, const Contestant& contestant, Rig& rig,
                                    const CallPattern& pattern = {});

/// Every problem of the suite with every distribution, until the first mistake. `each` is called before each trial with
/// its number and the total.
[[nodiscard]] GateResult judge_correctness(const Suite& suite, const Contestant& contestant, Rig& rig,
                                           std::uint64_t seed,
                                           const std::function<void(std::size_t, std::size_t)>& each,
                                           const CallPattern& pattern = {});

}  // namespace thresher::arena
