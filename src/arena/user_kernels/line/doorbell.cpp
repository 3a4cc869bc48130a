#include "arena/user_kernels/line/doorbell.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr long nap_ns = 5'000'000;

/// The word as a futex system call takes it.
std::uint32_t* plain(const Doorbell::Word& word) {
  return reinterpret_cast<std::uint32_t*>(const_cast<Doorbell::Word*>(&word));
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

SharedDoorbell::SharedDoorbell(int descriptor) {
  void* const page = ::mmap(nullptr, sizeof(Doorbell), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (page == MAP_FAILED) {
    throw Error(ErrorCode::io, "the page of a doorbell cannot be mapped");
  }
  page_ = static_cast<Doorbell*>(page);
}

SharedDoorbell::~SharedDoorbell() { ::munmap(page_, sizeof(Doorbell)); }

void tell(Doorbell::Word& word, std::uint32_t value) {
  word.store(value, std::memory_order_seq_cst);
  ::syscall(SYS_futex, plain(word), FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

std::uint32_t await_change(const Doorbell::Word& word, std::uint32_t old) {
  using Watch = std::chrono::steady_clock;
  const Watch::time_point looks_until = Watch::now() + looking;
  for (std::uint32_t seen = 0; (seen = word.load(std::memory_order_acquire)) == old;) {
    if (Watch::now() < looks_until) {
      pause_briefly();
    } else {
      ::syscall(SYS_futex, plain(word), FUTEX_WAIT, old, nullptr, nullptr, 0);
    }
  }
  return word.load(std::memory_order_acquire);
}

bool await(const Doorbell::Word& word, std::uint32_t value, bool looks, const std::function<bool()>& gives_up) {
  using Watch = std::chrono::steady_clock;
  Watch::time_point asked = Watch::now();
  const Watch::time_point looks_until = looks ? asked + looking : asked;
  while (word.load(std::memory_order_acquire) != value) {
    const Watch::time_point now = Watch::now();
    if (now < looks_until) {
      pause_briefly();
      continue;
    }
    if (now - asked > std::chrono::nanoseconds(nap_ns)) {
      asked = now;
      if (gives_up()) {
        return false;
      }
    }
    const std::uint32_t seen = word.load(std::memory_order_acquire);
    if (seen != value) {
      const timespec nap{0, nap_ns};
      ::syscall(SYS_futex, plain(word), FUTEX_WAIT, seen, &nap, nullptr, 0);
    }
  }
  return true;
}

}  // namespace thresher::arena::user_kernels
