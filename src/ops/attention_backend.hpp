#pragma once
/// What runs a planned attention. `Attention` validates; a backend launches.
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher {

class Attention::Backend {
 public:
  Backend(const AttentionProblem& problem, DeviceId device) : problem_(problem), device_(device) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Enqueues one call. The tensors are validated, on `device()`, and there is at least one query.
  virtual void run(Stream stream, const strategies::CallTensors& tensors) const = 0;
  /// All flags of the status in the workspace, once the stream has come so far.
  [[nodiscard]] virtual AttentionStatus status(Stream stream, const void* workspace) const = 0;
  /// Bytes that `run` needs of workspace; 0 means that null is accepted.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  [[nodiscard]] virtual const std::string& strategy() const noexcept = 0;

  [[nodiscard]] const AttentionProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }

 private:
  AttentionProblem problem_;
  DeviceId device_;
};

}  // namespace thresher
