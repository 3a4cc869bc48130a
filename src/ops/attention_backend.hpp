#pragma once
/// What a device offers for attention. `Attention` validates; a backend launches.
#include "thresher/attention.hpp"

namespace thresher {

class Attention::Backend {
 public:
  Backend(const AttentionProblem& problem, DeviceId device, std::string strategy)
      : problem_(problem), device_(device), strategy_(std::move(strategy)) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Enqueues one call. The tensors are validated, on `device()`, and there is at least one query.
  virtual void run(Stream stream, const AttentionTensors& tensors, void* workspace) const = 0;
  /// Bytes that `run` needs at `workspace`; 0 means that null is accepted.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;

  [[nodiscard]] const AttentionProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] const std::string& strategy() const noexcept { return strategy_; }

 private:
  AttentionProblem problem_;
  DeviceId device_;
  std::string strategy_;
};

namespace ops {

/// Attention as one kind of device offers it. Arguments arrive validated (ops/validate_attention.hpp).
class AttentionOperations {
 public:
  virtual ~AttentionOperations() = default;
  /// Strategy names, the default first.
  [[nodiscard]] virtual std::vector<std::string> strategies() const = 0;
  /// Why the options cannot run the problem whatever its tensors, in one sentence; empty when they can. Compiles
  /// nothing.
  [[nodiscard]] virtual std::string obstacle(const Device& device, const AttentionProblem& problem,
                                             const AttentionOptions& options) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const Attention::Backend> plan(const Device& device,
                                                                       const AttentionProblem& problem,
                                                                       const AttentionOptions& options) const = 0;
};

const AttentionOperations& attention_operations_for(DeviceKind kind);

const AttentionOperations& cpu_attention_operations();
const AttentionOperations& cuda_attention_operations();

}  // namespace ops
}  // namespace thresher
