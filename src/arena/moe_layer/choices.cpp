#include "arena/moe_layer/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "arena/random.hpp"

namespace thresher::arena {
namespace {

bool is_here(const LayerTask& task, std::int32_t id) { return id >= 0 && id < task.problem.experts; }

bool is_one_of(std::int64_t so_many, Random& random) {
  return so_many > 0 && random.below(static_cast<std::uint64_t>(so_many)) == 0;
}

/// As the router makes them before seeds have a say, the same on every machine.
ChosenExperts routed(const LayerTask& task) {
  const MoeProblem& p = task.problem;
  ChosenExperts ids = routed_ids({p.tokens, p.top_k, task.total_experts, task.routing});
  Random random(derive_seed(0, fmt::format("skipped {} repeated {}", task.skipped, task.repeated)));
  for (std::size_t choice = 0; choice < ids.size(); ++choice) {
    const bool is_second = choice % static_cast<std::size_t>(p.top_k) == 1;
    ids[choice] = is_second && is_one_of(task.repeated, random) ? ids[choice - 1] : ids[choice];
  }
  for (std::int32_t& id : ids) {
    id = is_one_of(task.skipped, random) ? -1 : id;
  }
  if (std::none_of(ids.begin(), ids.end(), [&](std::int32_t id) { return is_here(task, id); }) && !ids.empty()) {
    ids.front() = 0;
  }
  return ids;
}

template <class T>
std::vector<T> shuffled(std::int64_t count, Random& random) {
  std::vector<T> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), T{0});
  random.shuffle(order);
  return order;
}

/// One of the ids that no expert has.
std::int32_t nobody(const LayerTask& task, Random& random) {
  constexpr std::int32_t far = 2'000'000'000;
  switch (random.below(4)) {
    case 0: return -1;
    case 1: return -far;
    case 2: return static_cast<std::int32_t>(task.problem.experts);
    default: return far;
  }
}

}  // namespace

ChoiceCounts choice_counts(const LayerTask& task) {
  const ChosenExperts ids = routed(task);
  std::set<std::int32_t> experts;
  std::set<std::size_t> tokens;
  ChoiceCounts counts;
  for (std::size_t choice = 0; choice < ids.size(); ++choice) {
    if (is_here(task, ids[choice])) {
      ++counts.rows;
      experts.insert(ids[choice]);
      tokens.insert(choice / static_cast<std::size_t>(task.problem.top_k));
    }
  }
  counts.active_experts = std::ssize(experts);
  counts.active_tokens = std::ssize(tokens);
  return counts;
}

ChosenExperts chosen_experts(const LayerTask& task, std::uint64_t seed) {
  const MoeProblem& p = task.problem;
  const ChosenExperts ids = routed(task);
  Random random(derive_seed(seed, "choices"));
  const auto who = shuffled<std::int32_t>(p.experts, random);
  const auto token_of = shuffled<std::size_t>(p.tokens, random);
  const auto top_k = static_cast<std::size_t>(p.top_k);
  ChosenExperts chosen;
  chosen.reserve(ids.size());
  for (const std::size_t token : token_of) {
    for (const std::size_t place : shuffled<std::size_t>(p.top_k, random)) {
      const std::int32_t id = ids[token * top_k + place];
      chosen.push_back(is_here(task, id) ? who[static_cast<std::size_t>(id)] : nobody(task, random));
    }
  }
  return chosen;
}

ChosenExperts other_choices(const LayerTask& task, std::uint64_t change, std::uint64_t seed) {
  const MoeProblem& p = task.problem;
  Random random(derive_seed(seed, fmt::format("choices {}", change)));
  const auto any = [&] { return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(p.experts))); };
  const std::int32_t first = any();
  ChosenExperts ids(static_cast<std::size_t>(task.choices()));
  for (std::size_t choice = 0; choice < ids.size(); ++choice) {
    const auto number = static_cast<std::int64_t>(choice);
    switch (change % 5) {
      case 0: ids[choice] = static_cast<std::int32_t>((first + number) % p.experts); break;
      case 1: ids[choice] = first; break;
      case 2: ids[choice] = static_cast<std::int32_t>((first + number / p.top_k) % p.experts); break;
      case 3:
        ids[choice] = any();
        ids[choice] = ids[choice] % 2 == first % 2 ? ids[choice] : nobody(task, random);
        break;
      default: ids[choice] = any();
    }
  }
  if (!ids.empty()) {
    ids.front() = first;
  }
  return ids;
}

}  // namespace thresher::arena
