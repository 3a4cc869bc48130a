#pragma once
/// A child process on the other end of a line.
#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace thresher::arena::user_kernels {

class WorkerProcess {
 public:
  /// Starts `command` with a socket at worker_descriptor and sends it `request`. Throws Error(io).
  WorkerProcess(const std::vector<std::string>& command, const nlohmann::json& request);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  /// Kills it unless it has ended.
  ~WorkerProcess();

  /// Its next message; nothing when it has ended, or said nothing for `limit_s` and was killed: see how_it_ended.
  [[nodiscard]] std::optional<nlohmann::json> next(double limit_s);
  /// "was killed by signal 11 (Segmentation fault)", "gave no sign of life for 60 s and was killed", …
  [[nodiscard]] const std::string& how_it_ended() const { return how_it_ended_; }

 private:
  void end(bool kill_it, const std::string& why);

  pid_t child_ = -1;
  int line_ = -1;
  std::string received_;
  std::string how_it_ended_;
};

}  // namespace thresher::arena::user_kernels
