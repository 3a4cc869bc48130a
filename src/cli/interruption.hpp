#pragma once
/// What is left behind, and what is said, by a command that is interrupted.
#include <string>

namespace thresher::cli {

/// From now on an interruption (SIGINT, SIGTERM, SIGHUP, unless it is ignored) removes files that are half written
/// before it ends the process.
void leave_no_temporary_files();

/// While it lives, an interruption also says the sentence on standard error, over a progress bar that stands there.
class SaidWhenInterrupted {
 public:
  explicit SaidWhenInterrupted(const std::string& sentence);
  SaidWhenInterrupted(const SaidWhenInterrupted&) = delete;
  SaidWhenInterrupted& operator=(const SaidWhenInterrupted&) = delete;
  ~SaidWhenInterrupted();
};

}  // namespace thresher::cli
