#pragma once
/// The input sets of experiments. They are as many, with as many weights, as timed calls rotate over. So neither
/// addresses nor their order distinguish an experiment from a sample.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/honesty/honesty.hpp"
#include "arena/operation/call_sets.hpp"
#include "arena/operation/operation.hpp"
#include "arena/random.hpp"
#include "arena/rig/rig.hpp"

namespace thresher::arena::honesty {

using Inputs = std::vector<HostTensor>;

class SharedBuffers {
 public:
  /// `inputs` are samples of the experiments' distribution: each distribution has tensors of its own kind.
  SharedBuffers(const Problem& problem, Rig& rig, SamplePattern pattern, Distribution distribution, Inputs inputs,
                std::uint64_t seed);
  SharedBuffers(const SharedBuffers&) = delete;
  SharedBuffers& operator=(const SharedBuffers&) = delete;

  [[nodiscard]] const SamplePattern& pattern() const { return pattern_; }
  [[nodiscard]] std::vector<DeviceSet>& sets() { return sets_; }
  /// Cold sets, which experiments and samples use.
  [[nodiscard]] std::size_t count() const { return pattern_.plan.cold; }
  [[nodiscard]] std::size_t group_of(std::size_t set) const { return pattern_.plan.group_of(set); }

  /// Gives these sets unused data and poison, where calls are made beside the one under test.
  void refresh(const std::vector<std::size_t>& sets);
  [[nodiscard]] Random& random() { return random_; }

 private:
  SamplePattern pattern_;
  FreshInputs fresh_;
  std::vector<DeviceSet> sets_;
  Random random_;
};

}  // namespace thresher::arena::honesty
