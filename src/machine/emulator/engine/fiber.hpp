#pragma once
/// One suspended computation with a stack of its own: a GPU thread of the emulator.
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <vector>

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
  std::vector<boost::context::stack_context> free_;
};

/// Runs a function that may suspend itself. A fiber that has started must run to its end before it is destroyed; one
/// that is to be abandoned is resumed once more and throws out of its suspension.
class Fiber {
 public:
  void start(StackPool& stacks, std::function<void()> body);
  /// The scheduler calls it: runs the body until it suspends or ends.
  void resume();
  /// The body calls it: goes back to the scheduler.
  void suspend();
  [[nodiscard]] bool done() const { return done_; }

 private:
  void enter(bool last = false);
  void leave(bool last = false);

  boost::context::fiber self_;
  boost::context::fiber scheduler_;
  std::function<void()> body_;
  boost::context::stack_context stack_{};
  bool done_ = true;
  void* shadow_stack_ = nullptr;            // AddressSanitizer's record of the stack that is not running
  const void* scheduler_bottom_ = nullptr;  // for AddressSanitizer
  std::size_t scheduler_bytes_ = 0;
};

}  // namespace thresher::emulator
