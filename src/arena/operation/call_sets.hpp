#pragma once
/// The input sets of timed calls. Every call of a sample has its own activations and outputs, over as many groups of
/// weights as cold calls need.
#include <cstdint>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/data/distribution.hpp"
#include "arena/operation/problem.hpp"
#include "arena/rig/rig.hpp"
#include "arena/timing/rotation.hpp"
#include "arena/timing/timing.hpp"

namespace thresher::arena {

/// The number of sets of each kind, in this order: for cold calls, for warm calls, for a trusted computation. Set i of
/// the cold and of the trusted ones has the weights of group i % groups, warm ones have those of group 0.
struct CallPlan {
  Rotation rotation;  ///< of the groups
  std::size_t groups = 1;
  std::size_t cold = 1;
  std::size_t warm = 2;
  std::size_t trusted = 1;

  [[nodiscard]] std::size_t called() const noexcept { return cold + warm; }
  [[nodiscard]] SetRanges ranges() const noexcept { return {{0, cold}, {cold, warm}, {called(), trusted}}; }
  [[nodiscard]] std::size_t group_of(std::size_t set) const noexcept {
    return set < cold ? set % groups : set < called() ? 0 : (set - called()) % groups;
  }
};

/// Plans sets for samples of `calls`, as far as memory allows on `rigs` (the same or two), with at most `groups`.
/// Problems that are timed warm have almost no cold sets.
[[nodiscard]] CallPlan plan_calls(const Problem& problem, const std::vector<HostTensor>& inputs,
                                  const std::vector<Rig*>& rigs, std::size_t calls, bool warm);

/// Makes unused inputs: each call's from a seed of its own.
class FreshInputs {
 public:
  FreshInputs(const Problem& problem, Distribution distribution, std::uint64_t seed);
  /// Inputs of `group`, in the order of Operation::inputs; no call uses the activations among them.
  [[nodiscard]] std::vector<HostTensor> inputs_of_group(std::size_t group) const;
  /// Completes the groups of `inputs`, whose first is there. A few are each drawn by itself. The others copy the
  /// weights of these with random signs: no row of weights occurs twice.
  void add_groups(std::vector<std::vector<HostTensor>>& inputs, std::size_t groups) const;
  /// Activations of one call, in the order of Operation::inputs.
  [[nodiscard]] std::vector<HostTensor> activations(std::uint64_t seed_of_call) const;
  /// The same for many calls, on several threads where that pays off.
  [[nodiscard]] std::vector<std::vector<HostTensor>> activations_of_each(
      const std::vector<std::uint64_t>& seeds_of_calls) const;

 private:
  Problem problem_;
  Distribution distribution_;
  std::uint64_t seed_;
  std::vector<std::vector<HostTensor>> pool_;  ///< the tensors that vary from call to call
};

/// The planned sets on one rig. `groups` are inputs of each group.
[[nodiscard]] std::vector<DeviceSet> make_call_sets(Memory& memory, const Problem& problem, const CallPlan& plan,
                                                    const std::vector<std::vector<HostTensor>>& groups);

}  // namespace thresher::arena
