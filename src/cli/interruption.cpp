#include "cli/interruption.hpp"

#include <signal.h>

#include "formats/atomic_file.hpp"

namespace thresher::cli {
namespace {

/// The signal, which is held back until this returns, then ends the process: it is no longer handled.
void remove_and_end(int number) {
  formats::remove_temporary_files();
  raise(number);
}

}  // namespace

void leave_no_temporary_files() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) {
      continue;
    }
    struct sigaction action {};
    action.sa_handler = remove_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace thresher::cli
