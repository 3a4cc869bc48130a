#include "machine/emulator/engine/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "thresher/error.hpp"

namespace thresher::emulator {
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

constexpr std::size_t largest_shift = 4096;

/// Returns a finished fiber's stack to the pool.
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
    munmap(static_cast<char*>(stack.sp) - stack.size - page_bytes(), usable_bytes_ + largest_shift + page_bytes());
  }
}

boost::context::stack_context StackPool::take() {
  if (!free_.empty()) {
    const auto stack = free_.back();
    free_.pop_back();
    return stack;
  }
  const std::size_t bytes = usable_bytes_ + largest_shift + page_bytes();
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
  // Stacks that all begin at the same offset in their page would share a few sets of every cache.
  const std::size_t shift = 64 * (mapped_++ % (largest_shift / 64));
  boost::context::stack_context stack;
  stack.size = usable_bytes_ + largest_shift - shift;
  stack.sp = static_cast<char*>(base) + bytes - shift;
  return stack;
}

void StackPool::give(const boost::context::stack_context& stack) { free_.push_back(stack); }

void Fiber::start(Switchboard& board, StackPool& stacks, std::function<void()> body) {
  board_ = &board;
  body_ = std::move(body);
  stack_ = stacks.take();
  done_ = false;
  self_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack_.sp, stack_.size, stack_),
                                Recycler{&stacks}, [this](boost::context::fiber&& before) {
                                  arrived();
                                  *board_->leaving = std::move(before);
                                  body_();
                                  done_ = true;
                                  leave_for_scheduler(true);
                                  return std::move(board_->scheduler);
                                });
}

void Fiber::resume() {
  board_->leaving = &board_->scheduler;
#if defined(THRESHER_ADDRESS_SANITIZER)
  void* scheduler_shadow = nullptr;
  __sanitizer_start_switch_fiber(&scheduler_shadow, stack_bottom(), stack_.size);
#endif
  boost::context::fiber before = std::move(self_).resume();
#if defined(THRESHER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(scheduler_shadow, nullptr, nullptr);
#endif
  *board_->leaving = std::move(before);
}

}  // namespace thresher::emulator
