#pragma once
/// One suspended computation with its own stack: a GPU thread of the emulator.
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define THRESHER_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define THRESHER_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(THRESHER_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace thresher::emulator {

/// Stacks of one size, each with an inaccessible page below it, reused from launch to launch.
class StackPool {
 public:
  explicit StackPool(std::size_t usable_bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  boost::context::stack_context take();
  void give(const boost::context::stack_context& stack);
  [[nodiscard]] std::size_t usable_bytes() const { return usable_bytes_; }

 private:
  std::size_t usable_bytes_;
  std::size_t mapped_ = 0;
  std::vector<boost::context::stack_context> free_;
};

/// The origin of a switch to a fiber or to a launch's scheduler. The one that leaves sets where its continuation is to
/// be stored, and the one that arrives stores it there.
struct Switchboard {
  boost::context::fiber scheduler;
  boost::context::fiber* leaving = nullptr;
  const void* scheduler_bottom = nullptr;  // of its stack, for AddressSanitizer
  std::size_t scheduler_bytes = 0;
};

/// Runs a function that may suspend itself. A fiber that has started must run to its end before it is destroyed. To
/// abandon one, resume it once more: it throws out of its suspension.
class Fiber {
 public:
  void start(Switchboard& board, StackPool& stacks, std::function<void()> body);
  /// Called by the scheduler: runs the body, and the fibers it switches to, until one suspends or ends.
  void resume();
  /// Called by the body: switches to the scheduler.
  void suspend();
  /// Called by the body: switches directly to another suspended fiber.
  void hand_over_to(Fiber& next);
  [[nodiscard]] bool done() const { return done_; }

 private:
  void arrived();
  void leave_for_scheduler(bool last);
  [[nodiscard]] const void* stack_bottom() const { return static_cast<char*>(stack_.sp) - stack_.size; }

  boost::context::fiber self_;
  Switchboard* board_ = nullptr;
  std::function<void()> body_;
  boost::context::stack_context stack_{};
  bool done_ = true;
  void* shadow_stack_ = nullptr;  // AddressSanitizer's record of the stack that is not running
};

// AddressSanitizer must be told before and after every switch of stacks.
inline void Fiber::leave_for_scheduler([[maybe_unused]] bool last) {
  board_->leaving = &self_;
#if defined(THRESHER_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(last ? nullptr : &shadow_stack_, board_->scheduler_bottom, board_->scheduler_bytes);
#endif
}

inline void Fiber::arrived() {
#if defined(THRESHER_ADDRESS_SANITIZER)
  const void* from_bottom = nullptr;
  std::size_t from_bytes = 0;
  __sanitizer_finish_switch_fiber(shadow_stack_, &from_bottom, &from_bytes);
  if (board_->leaving == &board_->scheduler) {
    board_->scheduler_bottom = from_bottom;
    board_->scheduler_bytes = from_bytes;
  }
#endif
}

inline void Fiber::suspend() {
  leave_for_scheduler(false);
  boost::context::fiber before = std::move(board_->scheduler).resume();
  arrived();
  *board_->leaving = std::move(before);
}

inline void Fiber::hand_over_to(Fiber& next) {
  board_->leaving = &self_;
#if defined(THRESHER_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&shadow_stack_, next.stack_bottom(), next.stack_.size);
#endif
  boost::context::fiber before = std::move(next.self_).resume();
  arrived();
  *board_->leaving = std::move(before);
}

}  // namespace thresher::emulator
