#include "machine/emulator/engine/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace thresher::emulator {

Schedule Schedule::from_seed(std::uint64_t seed) {
  if (seed < 4) {
    return {(seed & 1) != 0 ? Order::latest : Order::earliest,
            (seed == 1 || seed == 2) ? Order::latest : Order::earliest, seed};
  }
  // One random schedule in four has an extreme order of completions.
  Random random(seed);
  const std::uint32_t style = random.below(8);
  const Order completions = style == 0 ? Order::earliest : style == 1 ? Order::latest : Order::random;
  return {Order::random, completions, seed};
}

std::string to_string(const Schedule& schedule) {
  const auto word = [](Order order) {
    return order == Order::earliest ? "earliest" : order == Order::latest ? "latest" : "random";
  };
  return std::string("threads ") + word(schedule.threads) + ", completions " + word(schedule.completions) + ", seed " +
         std::to_string(schedule.seed);
}

void ThreadQueue::reset(const Schedule& schedule, Random& random, std::uint32_t threads, std::uint32_t group) {
  group_ = group;
  thread_.resize(threads);
  std::iota(thread_.begin(), thread_.end(), 0U);
  uniform_ = false;
  interrupt_once_in_ = 0;
  demote_once_in_ = 0;
  if (schedule.threads == Order::latest) {
    std::reverse(thread_.begin(), thread_.end());
  } else if (schedule.threads == Order::random) {
    uniform_ = random.below(3) == 0;
    const std::uint32_t interrupt_choices[] = {0, 4, 64};
    const std::uint32_t demote_choices[] = {0, 50, 1000};
    interrupt_once_in_ = interrupt_choices[random.below(3)];
    demote_once_in_ = demote_choices[random.below(3)];
    if (random.below(3) == 0) {
      group_ = 1;
    }
    // Whole groups are shuffled; the order inside a group is kept.
    const std::uint32_t groups = (threads + group_ - 1) / group_;
    std::vector<std::uint32_t> order(groups);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint32_t i = groups; i > 1; --i) {
      std::swap(order[i - 1], order[random.below(i)]);
    }
    thread_.clear();
    for (const std::uint32_t g : order) {
      for (std::uint32_t t = g * group_; t < (g + 1) * group_ && t < threads; ++t) {
        thread_.push_back(t);
      }
    }
  }
  position_.resize(threads);
  for (std::uint32_t position = 0; position < threads; ++position) {
    position_[thread_[position]] = position;
  }
  runnable_.assign((threads + 63) / 64, 0);
  words_.assign((threads + 4095) / 4096, 0);
  count_ = 0;
}

/// Swaps two groups in the order of priority.
void ThreadQueue::demote(Random& random) {
  const auto threads = static_cast<std::uint32_t>(thread_.size());
  const std::uint32_t whole_groups = threads / group_;
  if (whole_groups < 2) {
    return;
  }
  const std::uint32_t one = random.below(whole_groups) * group_;
  const std::uint32_t other = random.below(whole_groups) * group_;
  if (one == other) {
    return;
  }
  for (std::uint32_t i = 0; i < group_; ++i) {
    const std::uint32_t a = one + i;
    const std::uint32_t b = other + i;
    const bool a_runs = (runnable_[a / 64] >> (a % 64) & 1U) != 0;
    const bool b_runs = (runnable_[b / 64] >> (b % 64) & 1U) != 0;
    std::swap(thread_[a], thread_[b]);
    position_[thread_[a]] = a;
    position_[thread_[b]] = b;
    set(a, b_runs);
    set(b, a_runs);
  }
}

}  // namespace thresher::emulator
