#pragma once
/// A planned product of any kind, bound to its weights. The public objects validate; this launches, or computes on the
/// CPU.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda_call.hpp"
#include "ops/packed_product.hpp"
#include "ops/product_choice.hpp"
#include "strategies/moe_layer/tensors.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::ops {

inline const Tensor no_tensor{};

/// The tensors of a call beside the weights; empty if the product has no such tensor.
struct ProductTensors {
  const Tensor& a;
  const Tensor& c;
  const Tensor& groups = no_tensor;  ///< offsets, or with masked rows counts
  const Tensor& row_ids = no_tensor;
  const Tensor& row_weights = no_tensor;
  const Tensor& topk_ids = no_tensor;  ///< where the call sorts a layer's choices (strategies/moe_layer/calls.hpp)
  const Tensor& inverse = no_tensor;
  const Tensor& x = no_tensor;  ///< strategies/moe_layer/tensors.hpp
};

/// The weights that calls read, and their keepers.
struct PlanWeights {
  WeightViews views;
  void* packed = nullptr;
  PackedPointer keeps{};            ///< their memory alive; null: the caller does
  GroupedWeights where_they_lie{};  ///< those that calls read where the caller left them; empty where they were copied
  std::uint64_t* timestamps = nullptr;  ///< of a profiled call
  Keeper keeps_timestamps{};
};

class ProductPlan {
 public:
  /// Loads every kernel of `calls`, whose rows ascend.
  ProductPlan(const Device& device, const ProductProblem& problem, std::vector<PlannedRows> calls, PlanWeights weights);

  /// Enqueues everything. The tensors are validated and on `device()`. Nothing is launched for a C without elements,
  /// but the status is written by every call that has one.
  void run(Stream stream, const ProductTensors& tensors, void* workspace) const;
  /// Enqueues what the strategy makes of A before the product.
  void prepare(Stream stream, const Tensor& a, void* workspace) const;
  /// Enqueues the product, once `prepare` has been enqueued.
  void run_prepared(Stream stream, const ProductTensors& tensors, void* workspace) const;
  /// All status words of the workspace together, once the stream has come so far.
  [[nodiscard]] GroupedStatus status(Stream stream, const void* workspace) const;

  /// Bytes that calls need at `workspace`; 0 means that null is accepted.
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// Alignment in bytes that the data pointers of A and C need; `workspace` needs 256.
  [[nodiscard]] std::size_t data_alignment() const noexcept { return data_alignment_; }
  [[nodiscard]] const ProductProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] const std::string& strategy() const noexcept { return strategy_; }
  /// Whether each of its calls settles (strategies/moe_layer/calls.hpp).
  [[nodiscard]] bool settles() const;
  /// Those that calls read where the caller left them.
  [[nodiscard]] const GroupedWeights& weights() const noexcept { return weights_.where_they_lie; }

 private:
  void enqueue(Stream stream, const ProductTensors& tensors, void* workspace, bool is_prepared) const;
  void run_steps(const DeviceCall& call, Stream stream, const ProductTensors& tensors, void* workspace,
                 std::size_t first_step, std::size_t last_step) const;
  [[nodiscard]] const DeviceCall& call_for(std::int64_t rows) const;
  void load(PlannedRows planned);
  void require_on_gpu(const void* pointer, const char* argument) const;

  ProductProblem problem_;
  DeviceId device_;
  std::string strategy_;
  PlanWeights weights_;
  std::vector<std::int64_t> rows_;  ///< ascending; calls_ has the same order
  std::vector<DeviceCall> calls_;
  std::size_t workspace_bytes_ = 0;
  std::size_t data_alignment_ = 1;
};

using PlanPointer = std::shared_ptr<const ProductPlan>;

/// A plan from packed weights, and one from the caller's. Arguments are validated; what a strategy packs of the
/// caller's is packed here. `change` is as planned_calls says.
[[nodiscard]] PlanPointer plan_product(const Device& device, const ProductProblem& problem,
                                       const PackedPointer& weights, const DualGemmOptions& options,
                                       const CallChange& change = {});
[[nodiscard]] PlanPointer plan_product(const Device& device, const ProductProblem& problem,
                                       const GroupedWeights& weights, const DualGemmOptions& options,
                                       const CallChange& change = {});

/// The public `plan` and `run` of a grouped product, for layers as well. Arguments are validated here. `routed` is
/// for calls that permute by expert.
[[nodiscard]] PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem,
                                       const PackedGroupedWeights& weights, const GroupedOptions& options,
                                       const CallChange& change = {});
[[nodiscard]] PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem,
                                       const GroupedWeights& weights, const GroupedOptions& options,
                                       const CallChange& change = {});
void run_grouped(const ProductPlan& plan, Stream stream, const GroupedTensors& tensors, void* workspace,
                 const strategies::moe_layer::RoutedTensors& routed = {});

/// Why the call cannot read weights where they lie: what comes with each call is not judged.
[[nodiscard]] std::string weights_obstacle(const strategies::PlannedCall& call, const WeightViews& views);

/// A tensor whose memory is not known yet.
[[nodiscard]] Tensor stand_in(Format format, std::initializer_list<std::int64_t> shape, DeviceId device);

}  // namespace thresher::ops
