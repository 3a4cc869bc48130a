#include "arena/honesty/ground.hpp"

#include <utility>

namespace thresher::arena::honesty {
namespace {

std::vector<std::vector<HostTensor>> inputs_of_groups(Inputs inputs, std::size_t groups) {
  std::vector<std::vector<HostTensor>> all{std::move(inputs)};
  for (std::size_t group = 1; group < groups; ++group) {
    all.push_back(all.front());
    for (HostTensor& input : all.back()) {
      input = rotate_rows(input, static_cast<std::int64_t>(group));
    }
  }
  return all;
}

}  // namespace

Ground::Ground(const Problem& problem, Rig& rig, SamplePattern pattern, Distribution distribution, Inputs inputs,
               std::uint64_t seed)
    : pattern_(std::move(pattern)),
      fresh_(problem, distribution, derive_seed(seed, "ground")),
      random_(derive_seed(seed, "places")) {
  pattern_.plan.trusted = 0;
  sets_ = make_call_sets(rig.memory(), problem, pattern_.plan, inputs_of_groups(std::move(inputs), pattern_.plan.groups));
}

void Ground::refresh(std::size_t set) {
  for (const HostTensor& activation : fresh_.activations(random_.next())) {
    sets_[set].replace(activation);
  }
  sets_[set].poison_outputs(random_.below(2) == 0 ? first_poison : second_poison);
}

}  // namespace thresher::arena::honesty
