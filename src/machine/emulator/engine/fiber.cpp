#include "machine/emulator/engine/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "thresher/error.hpp"

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
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Hands a finished fiber's stack back to the pool.
struct Recycler {
  StackPool* pool;
  static boost::context::stack_context allocate() { return {}; }
  void deallocate(boost::context::stack_context& stack) const { pool->give(stack); }
};

}  // namespace

StackPool::StackPool(std::size_t usable_bytes)
    : usable_bytes_((usable_bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {}

StackPool::~StackPool() {
  for (const auto& stack : free_) {
    const std::size_t bytes = stack.size + page_bytes();
    munmap(static_cast<char*>(stack.sp) - bytes, bytes);
  }
}

boost::context::stack_context StackPool::take() {
  if (!free_.empty()) {
    const auto stack = free_.back();
    free_.pop_back();
    return stack;
  }
  const std::size_t bytes = usable_bytes_ + page_bytes();
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base != MAP_FAILED && mprotect(base, page_bytes(), PROT_NONE) != 0) {
    munmap(base, bytes);
    base = MAP_FAILED;
  }
  if (base == MAP_FAILED) {
    throw Error(
        ErrorCode::out_of_memory,
        "The emulator could not map a stack for a GPU thread; raise vm.max_map_count or emulate smaller blocks");
  }
  boost::context::stack_context stack;
  stack.size = usable_bytes_;
  stack.sp = static_cast<char*>(base) + bytes;
  return stack;
}

void StackPool::give(const boost::context::stack_context& stack) { free_.push_back(stack); }

// AddressSanitizer follows which stack runs only if it is told before and after every switch.
void Fiber::leave([[maybe_unused]] bool last) {
#if defined(THRESHER_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(last ? nullptr : &shadow_stack_, scheduler_bottom_, scheduler_bytes_);
#endif
}

void Fiber::enter([[maybe_unused]] bool last) {
#if defined(THRESHER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(last ? nullptr : shadow_stack_, &scheduler_bottom_, &scheduler_bytes_);
#endif
}

void Fiber::start(StackPool& stacks, std::function<void()> body) {
  body_ = std::move(body);
  stack_ = stacks.take();
  done_ = false;
  self_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack_.sp, stack_.size, stack_),
                                Recycler{&stacks}, [this](boost::context::fiber&& scheduler) {
                                  scheduler_ = std::move(scheduler);
                                  enter(true);
                                  body_();
                                  done_ = true;
                                  leave(true);
                                  return std::move(scheduler_);
                                });
}

void Fiber::resume() {
#if defined(THRESHER_ADDRESS_SANITIZER)
  void* scheduler_shadow = nullptr;
  __sanitizer_start_switch_fiber(&scheduler_shadow, static_cast<char*>(stack_.sp) - stack_.size, stack_.size);
#endif
  self_ = std::move(self_).resume();
#if defined(THRESHER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(scheduler_shadow, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
  leave();
  scheduler_ = std::move(scheduler_).resume();
  enter();
}

}  // namespace thresher::emulator
