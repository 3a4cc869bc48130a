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

namespace thresher::arena {

/// One problem with one distribution: inputs for two sets and the judge of the first, for contestants of one kind of
/// maker.
struct Trial {
  Problem problem;
  Distribution distribution;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> other_inputs;
  std::unique_ptr<Judge> judge;
};

[[nodiscard]] Trial make_trial(const Problem& problem, Distribution distribution, const Maker& maker,
                               std::uint64_t seed);

/// Runs other inputs first, so that whatever is kept from them shows, then the judged ones twice, with outputs poisoned
/// differently, and judges both calls.
[[nodiscard]] TrialResult run_trial(const Trial& trial, const Contestant& contestant, Rig& rig);

/// Every problem of the suite with every distribution, until the first mistake. `each` is called before each trial with
/// its number and how many there are.
[[nodiscard]] GateResult judge_correctness(const Suite& suite, const Contestant& contestant, Rig& rig,
                                           std::uint64_t seed,
                                           const std::function<void(std::size_t, std::size_t)>& each);

}  // namespace thresher::arena
