#include "arena/operation/call_sets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/operation/operation.hpp"
#include "arena/random.hpp"
#include "reference/parallel.hpp"

namespace thresher::arena {
namespace {

constexpr std::size_t pool_size = 3;
constexpr std::size_t drawn_groups = 4;
/// More threads pay off only above this size.
constexpr std::size_t bytes_of_one_thread = std::size_t{1} << 20;

/// Bytes of the weights and of the rest of one call, without and with guard zones.
struct Sizes {
  std::size_t weight_bytes = 0;
  std::size_t weight_footprint = 0;
  std::size_t call_bytes = 0;
  std::size_t call_footprint = 0;

  void add(const HostTensor& tensor) {
    const std::size_t footprint = guarded_bytes(tensor);
    (tensor.is_weight ? weight_bytes : call_bytes) += tensor.bytes();
    (tensor.is_weight ? weight_footprint : call_footprint) += footprint;
  }
};

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

}  // namespace

CallPlan plan_calls(const Problem& problem, const std::vector<HostTensor>& inputs, const std::vector<Rig*>& rigs,
                    std::size_t calls, bool warm) {
  Sizes sizes;
  for (const HostTensor& input : inputs) {
    sizes.add(input);
  }
  for (const HostTensor& output : problem.operation().outputs(problem)) {
    sizes.add(output);
  }
  Rig& rig = *rigs.front();
  const bool is_host = rig.device().kind() == DeviceKind::cpu;
  // On the CPU the judge's copies of weights and activations use the same memory.
  const std::size_t weight_footprint = sizes.weight_footprint + (is_host ? sizes.weight_bytes : 0);
  const std::size_t call_footprint = sizes.call_footprint + (is_host ? sizes.call_bytes : 0);
  const std::size_t num_rigs = rigs.front() == rigs.back() ? 1 : 2;
  const auto limit =
      static_cast<std::size_t>(sets_memory_share * static_cast<double>(rig.memory().available_bytes())) / num_rigs;
  CallPlan plan;
  // Every group needs a trusted set.
  plan.rotation = plan_rotation(sizes.weight_bytes + sizes.call_bytes, weight_footprint + 2 * call_footprint,
                                rig.last_level_cache_bytes(), limit);
  plan.groups = warm ? 1 : plan.rotation.num_sets;
  plan.rotation.num_sets = plan.groups;
  const std::size_t taken = plan.groups * (weight_footprint + call_footprint);
  const std::size_t left = (limit > taken ? limit - taken : 0) / std::max<std::size_t>(call_footprint, 1);
  const std::size_t wanted = std::min(calls, max_sets);
  plan.warm = std::clamp<std::size_t>(left / 2, 2, wanted + 1);
  plan.cold = plan.groups;
  if (!warm && wanted > plan.groups) {
    const std::size_t affordable = left > plan.warm ? (left - plan.warm) / 2 / plan.groups * plan.groups : 0;
    plan.cold = std::max(plan.groups, std::min(round_up(wanted, plan.groups), affordable));
  }
  plan.trusted = plan.cold;  // as many, since they heat the machine up too
  return plan;
}

FreshInputs::FreshInputs(const Problem& problem, Distribution distribution, std::uint64_t seed)
    : problem_(problem), distribution_(distribution), seed_(seed) {
  if (distribution_ == Distribution::integers) {
    return;  // chosen so that sums are exact; random signs would break that
  }
  for (std::size_t i = 0; i < pool_size; ++i) {
    pool_.push_back(
        problem_.operation().activations(problem_, distribution_, derive_seed(seed_, fmt::format("pool {}", i))));
    std::erase_if(pool_.back(), [](const HostTensor& tensor) { return tensor.is_weight; });
  }
}

std::vector<HostTensor> FreshInputs::inputs_of_group(std::size_t group) const {
  return problem_.operation().inputs(problem_, distribution_, derive_seed(seed_, fmt::format("group {}", group)));
}

void FreshInputs::add_groups(std::vector<std::vector<HostTensor>>& inputs, std::size_t groups) const {
  const std::size_t drawn = distribution_ == Distribution::integers ? groups : std::min(groups, drawn_groups);
  const auto add = [&](std::size_t until, const auto& make) {
    const std::size_t first = inputs.size();
    inputs.resize(std::max(first, until));
    reference::parallel_for(static_cast<std::int64_t>(inputs.size() - first), 0, [&](std::int64_t index) {
      const std::size_t group = first + static_cast<std::size_t>(index);
      inputs[group] = make(group);
    });
  };
  add(drawn, [&](std::size_t group) { return inputs_of_group(group); });
  add(groups, [&](std::size_t group) {
    std::vector<HostTensor> signed_anew = inputs[group % drawn];
    Random random(derive_seed(seed_, fmt::format("signs of group {}", group)));
    for (HostTensor& input : signed_anew) {
      if (input.is_weight) {
        flip_signs(input, random);
      }
    }
    return signed_anew;
  });
}

std::vector<HostTensor> FreshInputs::activations(std::uint64_t seed_of_call) const {
  if (pool_.empty()) {
    std::vector<HostTensor> made = problem_.operation().activations(problem_, distribution_, seed_of_call);
    std::erase_if(made, [](const HostTensor& tensor) { return tensor.is_weight; });
    return made;
  }
  Random random(seed_of_call);
  std::vector<HostTensor> made = pool_[random.below(pool_.size())];
  for (HostTensor& tensor : made) {
    flip_signs(tensor, random);
  }
  return made;
}

std::vector<std::vector<HostTensor>> FreshInputs::activations_of_each(
    const std::vector<std::uint64_t>& seeds_of_calls) const {
  std::vector<std::vector<HostTensor>> made(seeds_of_calls.size());
  if (made.empty()) {
    return made;
  }
  made.front() = activations(seeds_of_calls.front());
  std::size_t bytes = 0;
  for (const HostTensor& tensor : made.front()) {
    bytes += tensor.bytes() * made.size();
  }
  reference::parallel_for(std::ssize(made) - 1, bytes > bytes_of_one_thread ? 0 : 1, [&](std::int64_t index) {
    const auto call = static_cast<std::size_t>(index) + 1;
    made[call] = activations(seeds_of_calls[call]);
  });
  return made;
}

std::vector<DeviceSet> make_call_sets(Memory& memory, const Problem& problem, const CallPlan& plan,
                                      const std::vector<std::vector<HostTensor>>& groups) {
  const std::vector<HostTensor> outputs = problem.operation().outputs(problem);
  std::vector<DeviceSet> sets;
  const std::size_t count = plan.called() + plan.trusted;
  sets.reserve(count);
  for (std::size_t set = 0; set < count; ++set) {
    const std::size_t group = plan.group_of(set);
    sets.emplace_back(memory, groups[group], outputs, group < sets.size() ? &sets[group] : nullptr);
  }
  return sets;
}

}  // namespace thresher::arena
