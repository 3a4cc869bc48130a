#include "cli/interruption.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/printable.hpp"
#include "formats/atomic_file.hpp"

namespace thresher::cli {
namespace {

/// The text that a signal handler may read: `length` is set last, and first reset to 0.
struct Said {
  std::array<char, 4096> text{};
  std::atomic<std::size_t> length = 0;
};
static_assert(std::atomic<std::size_t>::is_always_lock_free);

Said said;
pid_t own_process = 0;

/// The signal is blocked until this returns; then it ends the process.
void clear_up_and_end(int number) {
  if (::getpid() == own_process) {
    formats::remove_temporary_files();
    // Errors are ignored: the terminal may be gone.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, said.text.data(), said.length);
  }
  ::signal(number, SIG_DFL);  // some sandboxes that replace a kernel ignore SA_RESETHAND
  raise(number);
}

void handle_interruptions() {
  own_process = ::getpid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) {
      continue;
    }
    struct sigaction action{};
    action.sa_handler = clear_up_and_end;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace

void leave_no_temporary_files() { handle_interruptions(); }

SaidWhenInterrupted::SaidWhenInterrupted(const std::string& sentence) {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  const std::string text = (is_terminal ? "\r\x1b[K" : "") + printable(sentence);
  const std::size_t length = std::min(text.size(), said.text.size() - 1);
  std::copy_n(text.begin(), length, said.text.begin());
  said.text[length] = '\n';
  said.length = length + 1;
  handle_interruptions();
}

SaidWhenInterrupted::~SaidWhenInterrupted() { said.length = 0; }

}  // namespace thresher::cli
