#pragma once
/// What a device offers for a planned grouped product. `GroupedGemm` validates; a backend launches.
#include "core/grouped_weights.hpp"
#include "ops/packed_content.hpp"
#include "ops/validate_grouped.hpp"
#include "strategies/moe_layer/tensors.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher {
namespace ops {

/// Whether a grouped product's calls bring offsets or counts.
enum class Bounds : std::uint8_t {
  given,
  none,    ///< of one expert, which owns every row: the tensors of a call have neither, and there is no status
  routed,  ///< calls make offsets and row ids themselves from a layer's choices (strategies/moe_layer/calls.hpp)
};

}  // namespace ops

class GroupedGemm::Backend {
 public:
  /// `weights`: those that calls read where the caller left them; empty where they were copied.
  Backend(const GroupedProblem& problem, DeviceId device, std::string strategy, const GroupedWeights& weights,
          ops::Bounds bounds)
      : problem_(problem), device_(device), strategy_(std::move(strategy)), weights_(weights), bounds_(bounds) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Enqueues everything, also where C has no elements: the status is written by every call. The tensors are validated,
  /// on `device()`; `routed` are there where the bounds are.
  virtual void run(Stream stream, const GroupedTensors& tensors, const strategies::moe_layer::RoutedTensors& routed,
                   void* workspace) const = 0;
  /// All status words of the workspace together, once the stream has come so far.
  [[nodiscard]] virtual GroupedStatus status(Stream stream, const void* workspace) const = 0;
  /// Bytes that `run` needs at `workspace`; 0 means that null is accepted.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  /// Alignment in bytes that the data pointers of A and C need; `workspace` needs 256.
  [[nodiscard]] virtual std::size_t data_alignment() const = 0;

  [[nodiscard]] const GroupedProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] const std::string& strategy() const noexcept { return strategy_; }
  [[nodiscard]] const GroupedWeights& weights() const noexcept { return weights_; }
  [[nodiscard]] ops::Bounds bounds() const noexcept { return bounds_; }

 private:
  GroupedProblem problem_;
  DeviceId device_;
  std::string strategy_;
  GroupedWeights weights_;
  ops::Bounds bounds_;
};

namespace ops {

/// As the public `plan` does, for calls with such bounds.
[[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_grouped(const Device& device,
                                                                       const GroupedProblem& problem,
                                                                       const PackedGroupedWeights& weights,
                                                                       const GroupedOptions& options, Bounds bounds);
[[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_grouped(const Device& device,
                                                                       const GroupedProblem& problem,
                                                                       const GroupedWeights& weights,
                                                                       const GroupedOptions& options, Bounds bounds);
/// As the public `run` does.
void run_grouped(const GroupedGemm::Backend& backend, Stream stream, const GroupedTensors& tensors,
                 const strategies::moe_layer::RoutedTensors& routed, void* workspace);

}  // namespace ops

/// Weights of all experts as `pack` left them for one device. Where packing is the identity, as here, they are the
/// caller's own.
class PackedGroupedWeights::Storage {
 public:
  Storage(Device device, const GroupedWeights& weights, Numerics numerics)
      : device_(std::move(device)), shape_(ops::shape_of(weights)), weights_(weights), numerics_(numerics) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  [[nodiscard]] const Device& device() const noexcept { return device_; }
  [[nodiscard]] const ops::WeightsShape& shape() const noexcept { return shape_; }
  /// As they were given: shapes and formats always, the data where packing is the identity.
  [[nodiscard]] const GroupedWeights& weights() const noexcept { return weights_; }
  [[nodiscard]] Numerics numerics() const noexcept { return numerics_; }
  /// What a block keeps, in the host's memory. Here, where packing is the identity, the stacks, seen where they lie.
  [[nodiscard]] virtual ops::PackedContent content() const;
  /// The same, seen in the device's memory where it is kept there as a block has it; else as `content` gives it.
  [[nodiscard]] virtual ops::PackedContent held() const { return content(); }

 private:
  Device device_;
  ops::WeightsShape shape_;
  GroupedWeights weights_;
  Numerics numerics_;
};

}  // namespace thresher
