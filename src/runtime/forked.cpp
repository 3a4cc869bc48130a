#include "runtime/forked.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace thresher::runtime {
namespace {

void close_range(unsigned first, unsigned last) noexcept {
  constexpr long number_of_close_range = 436;
  constexpr unsigned most = 1U << 20;
  if (first > last || ::syscall(number_of_close_range, first, last, 0) == 0) {
    return;
  }
  for (unsigned descriptor = first; descriptor <= std::min(last, most); ++descriptor) {
    ::close(static_cast<int>(descriptor));
  }
}

}  // namespace

void close_all_but(std::span<const int> kept) noexcept {
  unsigned first = 0;
  for (const int descriptor : kept) {
    const auto keep = static_cast<unsigned>(descriptor);
    if (keep > first) {
      close_range(first, keep - 1);
    }
    first = keep + 1;
  }
  close_range(first, ~0U);
}

void default_signals() noexcept {
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    ::sigaction(signal, &plain, nullptr);
  }
}

void leave_session_and_block_signals() noexcept {
  ::setsid();
  sigset_t all{};
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace thresher::runtime
