#pragma once
/// Cleans up after an interrupted command, and prints its last sentence.
#include <string>

namespace thresher::cli {

/// From now on an interruption (SIGINT, SIGTERM, SIGHUP, unless ignored) removes half-written files before it ends the
/// process.
void leave_no_temporary_files();

/// During its lifetime, an interruption also prints the sentence on standard error, over a progress bar.
class SaidWhenInterrupted {
 public:
  explicit SaidWhenInterrupted(const std::string& sentence);
  SaidWhenInterrupted(const SaidWhenInterrupted&) = delete;
  SaidWhenInterrupted& operator=(const SaidWhenInterrupted&) = delete;
  ~SaidWhenInterrupted();
};

}  // namespace thresher::cli
