#pragma once
/// The order in which a launch's threads run and its asynchronous work completes: a pure function of one number.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/emulator/engine/random.hpp"

namespace thresher::emulator {

enum class Order : std::uint8_t {
  earliest,  ///< lowest thread first; copies and products complete as they are issued
  latest,    ///< highest thread first; completions only when no thread can continue, the newest first
  random,
};

struct Schedule {
  Order threads = Order::earliest;
  Order completions = Order::earliest;
  std::uint64_t seed = 0;

  /// Seeds 0…3 are the four corners earliest/latest × earliest/latest; the others are random. The seed also chooses
  /// their style: which threads have priority, how often a thread is interrupted, how fast copies are.
  static Schedule from_seed(std::uint64_t seed);
};

[[nodiscard]] std::string to_string(const Schedule& schedule);

/// Selects the next runnable thread.
class ThreadQueue {
 public:
  /// `group` threads (a warp) share a priority if priorities are random.
  void reset(const Schedule& schedule, Random& random, std::uint32_t threads, std::uint32_t group);

  void insert(std::uint32_t thread) { set(position_[thread], true); }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// Removes and returns the next thread; the queue must not be empty.
  std::uint32_t take(Random& random);
  /// Whether a runnable thread should let others run here.
  [[nodiscard]] bool interrupts(Random& random) const { return random.once_in(interrupt_once_in_); }

 private:
  void set(std::uint32_t position, bool runnable);
  [[nodiscard]] std::uint32_t first_from(std::uint32_t position) const;
  [[nodiscard]] std::size_t first_word_from(std::size_t word) const;
  void demote(Random& random);

  bool uniform_ = false;
  std::uint32_t group_ = 1;
  std::uint32_t interrupt_once_in_ = 0;
  std::uint32_t demote_once_in_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> position_;  // of each thread
  std::vector<std::uint32_t> thread_;    // at each position
  std::vector<std::uint64_t> runnable_;  // bit per position
  std::vector<std::uint64_t> words_;     // bit per word of runnable_ that is not 0
};

inline void ThreadQueue::set(std::uint32_t position, bool runnable) {
  const std::uint64_t bit = 1ULL << (position % 64);
  std::uint64_t& word = runnable_[position / 64];
  if (((word & bit) != 0) == runnable) {
    return;
  }
  word ^= bit;
  const std::uint64_t of_word = 1ULL << (position / 64 % 64);
  std::uint64_t& words = words_[position / 4096];
  words = word != 0 ? words | of_word : words & ~of_word;
  runnable ? ++count_ : --count_;
}

/// Searches from a word on, then from the first one: some word must not be 0.
inline std::size_t ThreadQueue::first_word_from(std::size_t word) const {
  std::size_t index = word / 64;
  std::uint64_t words = index < words_.size() ? words_[index] & (~0ULL << (word % 64)) : 0;
  while (words == 0) {
    index = index + 1 < words_.size() ? index + 1 : 0;
    words = words_[index];
  }
  return index * 64 + static_cast<std::size_t>(std::countr_zero(words));
}

inline std::uint32_t ThreadQueue::first_from(std::uint32_t position) const {
  std::size_t index = position / 64;
  std::uint64_t word = runnable_[index] & (~0ULL << (position % 64));
  if (word == 0) {
    index = first_word_from(index + 1);
    word = runnable_[index];
  }
  return static_cast<std::uint32_t>(index * 64 + static_cast<std::size_t>(std::countr_zero(word)));
}

inline std::uint32_t ThreadQueue::take(Random& random) {
  const std::uint32_t position = first_from(uniform_ ? random.below(static_cast<std::uint32_t>(thread_.size())) : 0);
  set(position, false);
  const std::uint32_t thread = thread_[position];
  if (random.once_in(demote_once_in_)) {
    demote(random);
  }
  return thread;
}

}  // namespace thresher::emulator
