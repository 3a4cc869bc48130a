#pragma once
/// What runs a planned append. `Append` validates; a backend launches.
#include "thresher/append.hpp"

namespace thresher {

class Append::Backend {
 public:
  Backend(const AppendProblem& problem, DeviceId device) : problem_(problem), device_(device) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Enqueues one call. The tensors are validated, on `device()`, and there is at least one token.
  virtual void run(Stream stream, const AppendTensors& tensors) const = 0;

  [[nodiscard]] const AppendProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }

 private:
  AppendProblem problem_;
  DeviceId device_;
};

}  // namespace thresher
