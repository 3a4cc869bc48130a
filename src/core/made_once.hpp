#pragma once
/// Values that are made on first use and kept as long as the table lives.
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace thresher {

/// Thread-safe. Each key has its own lock: values of different keys are made concurrently, while callers with the same
/// key wait for one maker.
template <class Key, class Value>
class OnceMap {
 public:
  /// The value of `key`, from `make()` when there is none yet. When `make` throws, nothing is kept: the next caller
  /// makes it. The reference is valid as long as the table.
  template <class Make>
  const Value& get(const Key& key, Make make) {
    Slot& slot = slot_of(key);
    const std::lock_guard lock(slot.making);
    if (!slot.value) {
      slot.value.emplace(make());
    }
    return *slot.value;
  }

  /// Whether the value of `key` exists, or is being made.
  [[nodiscard]] bool is_known(const Key& key) {
    const std::lock_guard lock(finding_);
    return slots_.contains(key);
  }

 private:
  struct Slot {
    std::mutex making;
    std::optional<Value> value;
  };

  Slot& slot_of(const Key& key) {
    const std::lock_guard lock(finding_);
    return slots_[key];
  }

  std::mutex finding_;
  std::map<Key, Slot> slots_;  ///< a map: its elements never move
};

}  // namespace thresher
