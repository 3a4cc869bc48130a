#include "arena/honesty/ground.hpp"

#include <algorithm>
#include <utility>

#include "reference/parallel.hpp"

namespace thresher::arena::honesty {
namespace {

std::vector<std::vector<HostTensor>> inputs_of_groups(Inputs inputs, std::size_t groups) {
  std::vector<std::vector<HostTensor>> all(groups);
  all.front() = std::move(inputs);
  reference::parallel_for(static_cast<std::int64_t>(groups) - 1, 0, [&](std::int64_t index) {
    for (const HostTensor& input : all.front()) {
      all[static_cast<std::size_t>(index) + 1].push_back(rotate_rows(input, index + 1));
    }
  });
  return all;
}

}  // namespace

SharedBuffers::SharedBuffers(const Problem& problem, Rig& rig, SamplePattern pattern, Distribution distribution,
                             Inputs inputs, std::uint64_t seed)
    : pattern_(std::move(pattern)),
      fresh_(problem, distribution, derive_seed(seed, "ground")),
      random_(derive_seed(seed, "places")) {
  pattern_.plan.trusted = 0;
  sets_ =
      make_call_sets(rig.memory(), problem, pattern_.plan, inputs_of_groups(std::move(inputs), pattern_.plan.groups));
}

void SharedBuffers::refresh(const std::vector<std::size_t>& sets) {
  std::vector<std::uint64_t> seeds(sets.size());
  std::generate(seeds.begin(), seeds.end(), [&] { return random_.next(); });
  const std::vector<Inputs> fresh = fresh_.activations_of_each(seeds);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (const HostTensor& activation : fresh[i]) {
      sets_[sets[i]].replace(activation);
    }
    sets_[sets[i]].poison_outputs(random_.below(2) == 0 ? first_poison : second_poison);
  }
}

}  // namespace thresher::arena::honesty
