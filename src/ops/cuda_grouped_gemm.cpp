#include "ops/cuda_grouped_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/cuda_status.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/grouped_choice.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace grouped = strategies::grouped_gemm;
using strategies::PlannedCall;
using strategies::moe_layer::RoutedTensors;
using Tensors = std::array<Tensor, strategies::moe_layer::routed_tensor_count>;

/// What calls read of the weights, and what of them was packed.
struct Operands {
  WeightViews views;
  void* packed = nullptr;
  std::shared_ptr<const PackedGroupedWeights::Storage> keeps{};  ///< their memory alive; null: the caller does
};

/// Copies of some weights, and of what belongs to them.
struct Copies {
  std::optional<DeviceMatrix> b1{};
  std::optional<DeviceMatrix> b2{};
  std::optional<DeviceMatrix> bias1{};
  std::optional<DeviceMatrix> bias2{};
  runtime::DeviceBuffer up_scales{};
};

std::optional<DeviceMatrix> copied(const Tensor& source) {
  return source.rank == 0 ? std::nullopt : std::optional<DeviceMatrix>(source);
}

runtime::DeviceBuffer copied(const float* scales, std::int64_t experts, int ordinal) {
  if (scales == nullptr) {
    return {};
  }
  runtime::DeviceBuffer buffer(ordinal, static_cast<std::size_t>(experts) * sizeof(float), "the global scales");
  runtime::copy(buffer.data(), scales, buffer.bytes(), ordinal);
  return buffer;
}

Tensor tensor_of(const std::optional<DeviceMatrix>& copy) { return copy ? copy->tensor() : Tensor{}; }

Bytes floats_on_host(const float* scales, std::int64_t experts, int ordinal) {
  std::vector<std::byte> host(scales == nullptr ? 0 : static_cast<std::size_t>(experts) * sizeof(float));
  if (!host.empty()) {
    runtime::copy(host.data(), scales, host.size(), ordinal);
  }
  return host;
}

/// A bias [E,N] on the GPU that is contiguous, where it is.
Bytes seen_values(const Tensor& bias) { return bias.rank == 0 ? Bytes{} : packed_matrix(bias).values; }

/// A bias [E,N] on the GPU, as bytes on the host.
Bytes bias_on_host(const Tensor& bias) { return bias.rank == 0 ? Bytes{} : DeviceMatrix(bias).to_host().values; }

/// What a block keeps of weights on the GPU that are as they were given.
PackedContent matrices_content(const GroupedWeights& weights, Numerics numerics) {
  PackedContent content = grouped_outline(weights, numerics, matrices_layout);
  content.matrices[0] = DeviceMatrix(weights.b1).to_host();
  content.matrices[0].bias = bias_on_host(weights.bias1);
  if (content.has_b2) {
    content.matrices[1] = DeviceMatrix(weights.b2).to_host();
    content.matrices[1].bias = bias_on_host(weights.bias2);
  } else {
    content.matrices[1].global_scale =
        floats_on_host(weights.up_global_scale, content.experts, weights.b1.device.ordinal);
  }
  return content;
}

/// The same where it is, if it is there as a block has it.
PackedContent held_matrices(const GroupedWeights& weights, Numerics numerics) {
  if (!is_seen_whole(weights)) {
    return matrices_content(weights, numerics);
  }
  PackedContent content = packed_content(weights, numerics);
  content.on_device = true;
  return content;
}

/// Weights that are read where a block keeps them.
class SeenGroupedWeights final : public PackedGroupedWeights::Storage {
 public:
  using Storage::Storage;
  [[nodiscard]] PackedContent content() const override { return matrices_content(weights(), numerics()); }
  [[nodiscard]] PackedContent held() const override { return held_matrices(weights(), numerics()); }
};

/// Weights that strategies read as they are: copies, which the caller's tensors need not outlive.
class CopiedWeights final : public PackedGroupedWeights::Storage {
 public:
  CopiedWeights(const Device& device, const GroupedWeights& weights, Numerics numerics)
      : CopiedWeights(device, weights,
                      {.b1 = copied(weights.b1),
                       .b2 = copied(weights.b2),
                       .bias1 = copied(weights.bias1),
                       .bias2 = copied(weights.bias2),
                       .up_scales = copied(weights.up_global_scale, weights.b1.shape[0], device.id().ordinal)},
                      numerics) {}

  [[nodiscard]] PackedContent content() const override { return matrices_content(weights(), numerics()); }
  [[nodiscard]] PackedContent held() const override { return held_matrices(weights(), numerics()); }

 private:
  CopiedWeights(const Device& device, const GroupedWeights& weights, Copies copies, Numerics numerics)
      : Storage(device,
                {.b1 = tensor_of(copies.b1),
                 .b2 = tensor_of(copies.b2),
                 .order = weights.order,
                 .up_global_scale = static_cast<const float*>(copies.up_scales.data()),
                 .bias1 = tensor_of(copies.bias1),
                 .bias2 = tensor_of(copies.bias2)},
                numerics),
        copies_(std::move(copies)) {}

  Copies copies_;
};

/// Weights as a strategy's packing call left them: its views tell shapes, formats and global scales, not the data.
class PackedByStrategy final : public PackedGroupedWeights::Storage {
 public:
  /// Finished on return. Throws Error(out_of_memory).
  PackedByStrategy(const Device& device, const GroupedWeights& weights, Numerics numerics, const PlannedCall& call)
      : Storage(device, shapes_of(weights), numerics),
        layout_(call.packed_layout),
        views_(weight_views(weights)),
        packed_(runtime::DeviceBuffer(device.id().ordinal, call.packed_bytes(), "the packed weights")) {
    const int ordinal = device.id().ordinal;
    Tensors all{};
    all[grouped::gate_index] = views_.gate;
    all[grouped::up_index] = views_.up;
    all[grouped::gate_bias_index] = views_.gate_bias;
    all[grouped::up_bias_index] = views_.up_bias;
    if (packed_.bytes() > 0) {
      const strategies::CallTensors tensors{all, nullptr, packed_.data()};
      CudaCall(*call.packing, ordinal, tensors).run({}, tensors);
    }
    gate_scales_ = copied(views_.gate.global_scale, shape().experts, ordinal);
    up_scales_ = copied(views_.up.global_scale, shape().experts, ordinal);
    // With both in one tensor the views lie in it: one copy of it serves both.
    bias1_ = copied(weights.bias1);
    bias2_ = copied(weights.bias2);
    describe(tensor_of(bias1_), tensor_of(bias2_));
    runtime::synchronize({}, ordinal);
  }
  /// From a content in `call`'s layout, seen where it lies if that is on the device. Throws Error(invalid_argument)
  /// when its size is not that of its shape.
  PackedByStrategy(const Device& device, const PackedContent& content, const PlannedCall& call)
      : Storage(device, shapes_of(grouped_view(content, device.id())), content.numerics),
        layout_(call.packed_layout),
        views_(weight_views(weights())),
        packed_(content.packed, content.on_device, device.id().ordinal, "the packed weights") {
    if (packed_.bytes() != call.packed_bytes()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("they take {} bytes, expected {} for {} experts of [{}, {}]", packed_.bytes(),
                              call.packed_bytes(), content.experts, content.n, content.k));
    }
    const auto on_gpu = [&](const Bytes& bytes, const char* purpose) {
      return GpuBytes(bytes, content.on_device, device.id().ordinal, purpose);
    };
    gate_scales_ = on_gpu(content.matrices[0].global_scale, "the global scales");
    up_scales_ = on_gpu(content.matrices[1].global_scale, "the global scales");
    restored_biases_ = {on_gpu(content.matrices[0].bias, "a bias"), on_gpu(content.matrices[1].bias, "a bias")};
    GroupedWeights of_biases = weights();
    of_biases.bias1.data = restored_biases_[0].data();
    of_biases.bias2.data = restored_biases_[1].data();
    describe(of_biases.bias1, of_biases.bias2);
  }

  [[nodiscard]] PackedContent content() const override {
    const int ordinal = device().id().ordinal;
    PackedContent content = grouped_outline(weights(), numerics(), layout_);
    runtime::synchronize({}, ordinal);
    content.packed = packed_.to_host(ordinal);
    content.matrices[0].global_scale = gate_scales_.to_host(ordinal);
    content.matrices[1].global_scale = up_scales_.to_host(ordinal);
    content.matrices[0].bias = bias_on_host(bias1_tensor_);
    content.matrices[1].bias = bias_on_host(bias2_tensor_);
    return content;
  }

  [[nodiscard]] PackedContent held() const override {
    if (!is_seen_whole(bias1_tensor_) || !is_seen_whole(bias2_tensor_)) {
      return content();
    }
    PackedContent content = grouped_outline(weights(), numerics(), layout_);
    content.on_device = true;
    content.packed = packed_.seen();
    content.matrices[0].global_scale = gate_scales_.seen();
    content.matrices[1].global_scale = up_scales_.seen();
    content.matrices[0].bias = seen_values(bias1_tensor_);
    content.matrices[1].bias = seen_values(bias2_tensor_);
    return content;
  }

  /// PlannedCall::packed_layout of the calls that can read it.
  [[nodiscard]] const std::string& layout() const noexcept { return layout_; }
  [[nodiscard]] void* packed() const noexcept { return packed_.data(); }
  [[nodiscard]] const WeightViews& views() const noexcept { return views_; }

 private:
  static GroupedWeights shapes_of(GroupedWeights weights) {
    for (Tensor* tensor : {&weights.b1, &weights.b2, &weights.bias1, &weights.bias2}) {
      tensor->data = nullptr;
      tensor->scales.data = nullptr;
      tensor->global_scale = nullptr;
    }
    weights.up_global_scale = nullptr;
    return weights;
  }
  /// Says of the views where what they show lies now.
  void describe(const Tensor& bias1, const Tensor& bias2) {
    bias1_tensor_ = bias1;
    bias2_tensor_ = bias2;
    describe(views_.gate, gate_scales_);
    describe(views_.up, up_scales_);
    const GroupedWeights shapes = weights();
    const WeightViews of_biases =
        weight_views({.b1 = shapes.b1, .b2 = shapes.b2, .order = shapes.order, .bias1 = bias1, .bias2 = bias2});
    views_.gate_bias = of_biases.gate_bias;
    views_.up_bias = of_biases.up_bias;
  }
  void describe(Tensor& view, const GpuBytes& scales) const {
    view.data = packed_.data();
    view.scales.data = packed_.data();
    view.global_scale = scales.floats();
  }

  std::string layout_;
  WeightViews views_;
  GpuBytes packed_;
  GpuBytes gate_scales_;
  GpuBytes up_scales_;
  std::optional<DeviceMatrix> bias1_{};
  std::optional<DeviceMatrix> bias2_{};
  std::array<GpuBytes, 2> restored_biases_{};
  Tensor bias1_tensor_{};  ///< where the biases lie now, in one of the two
  Tensor bias2_tensor_{};
};

/// Bytes from one row to the next, and from one matrix to the next, are multiples of what a step asks for.
std::string alignment_obstacle(const strategies::Alignment& alignment, const Tensor& tensor, std::string_view name) {
  const auto bytes = static_cast<std::int64_t>(alignment.row_bytes);
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignment.row_bytes != 0) {
    return fmt::format("{} is not aligned to {} bytes", name, bytes);
  }
  for (int d = 0; d + 1 < tensor.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (tensor.shape[i] > 1 && tensor.strides[i] * bits(tensor.format) / 8 % bytes != 0) {
      return fmt::format("{} has stride {} along dimension {}, not a multiple of {}", name, tensor.strides[i], d,
                         bytes * 8 / bits(tensor.format));
    }
  }
  return "";
}

/// Why the call cannot read weights where they lie: what comes with each call is not judged.
std::string stacks_obstacle(const PlannedCall& call, const WeightViews& views) {
  for (const strategies::Alignment& alignment : call.alignments) {
    const bool is_gate = alignment.tensor == grouped::gate_index;
    if (is_gate || (alignment.tensor == grouped::up_index && views.up.rank > 0)) {
      if (std::string sentence =
              alignment_obstacle(alignment, is_gate ? views.gate : views.up, is_gate ? "b1 (gate)" : "b2 (up)");
          !sentence.empty()) {
        return sentence;
      }
    }
  }
  return "";
}

class CudaGroupedGemm final : public GroupedGemm::Backend {
 public:
  CudaGroupedGemm(const Device& device, const GroupedProblem& problem, std::vector<PlannedRows> calls,
                  Operands operands, const GroupedWeights& weights, Bounds bounds)
      : Backend(problem, device.id(), calls.back().call.strategy, weights, bounds), operands_(std::move(operands)) {
    load_programs(this->device().ordinal, calls);
    for (PlannedRows& planned : calls) {
      data_alignment_ = std::max(data_alignment_, planned.call.data_alignment);
      const Tensors example = stand_ins(planned.rows);
      rows_.push_back(planned.rows);
      calls_.emplace_back(std::move(planned.call), this->device().ordinal,
                          strategies::CallTensors{example, nullptr, operands_.packed});
      workspace_bytes_ = std::max(workspace_bytes_, calls_.back().workspace_bytes());
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return workspace_bytes_; }
  [[nodiscard]] std::size_t data_alignment() const override { return data_alignment_; }

  void run(Stream stream, const GroupedTensors& of, const RoutedTensors& routed, void* workspace) const override {
    if (workspace_bytes_ > 0) {
      require_on_gpu(workspace, "workspace");
    }
    if (of.c.elements() == 0) {
      if (bounds() != Bounds::none) {
        runtime::fill_async(workspace, 0, sizeof(std::uint32_t), stream, device().ordinal);
      }
      return;
    }
    require_on_gpu(of.a.data, "a");
    require_on_gpu(of.c.data, "c");
    const CudaCall& call = call_for(rows_of(of));
    for (const strategies::Alignment& alignment : call.planned().alignments) {
      if (alignment.tensor == grouped::tokens_index) {
        if (const std::string sentence = alignment_obstacle(alignment, of.a, "a"); !sentence.empty()) {
          throw Error(ErrorCode::invalid_argument, sentence + ", as this plan needs it");
        }
      }
    }
    const Tensors all = strategies::moe_layer::in_order(operands_.views, of, routed);
    call.run(stream, {all, workspace, operands_.packed});
  }

  [[nodiscard]] GroupedStatus status(Stream stream, const void* workspace) const override {
    return {status_flags(stream, workspace, workspace_bytes_, device().ordinal)};
  }

 private:
  [[nodiscard]] Tensors stand_ins(std::int64_t rows) const {
    const GroupedProblem& p = problem();
    const bool has_slots = p.layout == RowLayout::slots;
    const auto stand_in = [&](Format format, std::initializer_list<std::int64_t> shape) {
      Tensor tensor = Tensor::contiguous(stand_in_address(), format, shape, device());
      tensor.scales.data = stand_in_address();
      return tensor;
    };
    const std::int64_t of_a = p.layout == RowLayout::gathered ? p.tokens : rows;
    GroupedTensors example;
    example.a = has_slots ? stand_in(p.a, {p.experts, rows, p.k}) : stand_in(p.a, {of_a, p.k});
    example.c = has_slots ? stand_in(p.out, {p.experts, rows, p.n}) : stand_in(p.out, {rows, p.n});
    if (bounds() != Bounds::none) {
      (has_slots ? example.counts : example.offsets) = stand_in(Format::int32, {p.experts + (has_slots ? 0 : 1)});
    }
    if (p.layout == RowLayout::gathered) {
      example.row_ids = stand_in(Format::int32, {rows});
    }
    if (p.row_weights) {
      example.row_weights = has_slots ? stand_in(Format::fp32, {p.experts, rows}) : stand_in(Format::fp32, {rows});
    }
    return strategies::moe_layer::in_order(operands_.views, example, {});
  }

  [[nodiscard]] const CudaCall& call_for(std::int64_t rows) const {
    return calls_[static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), rows) - rows_.begin())];
  }
  void require_on_gpu(const void* pointer, const char* argument) const {
    runtime::require_on_gpu(pointer, device().ordinal, argument);
  }

  Operands operands_;
  std::vector<std::int64_t> rows_;  ///< ascending; calls_ has the same order
  std::vector<CudaCall> calls_;
  std::size_t workspace_bytes_ = 0;
  std::size_t data_alignment_ = 1;
};

/// What weights alone say of a problem.
GroupedProblem problem_of(const WeightsShape& shape) {
  GroupedProblem problem{.experts = shape.experts,
                         .rows = 1,
                         .n = std::max<std::int64_t>(shape.n, 1),
                         .k = shape.k,
                         .a = shape.format,
                         .b = shape.format,
                         .bias = shape.has_bias};
  if (shape.matrices == 2) {
    problem.activation = Activation{};
  }
  return problem;
}

/// How weights are packed, by the strategy that `plan` would choose for them.
PlannedCall packing_choice(const Device& device, const WeightsShape& shape, Numerics numerics) {
  planner::Request request;
  ask_for(numerics, request.knobs);
  return choose_grouped(problem_of(shape), request, DeviceKind::cuda, spec_of(device));
}

void require_weights_on_gpu(const Device& device, const GroupedWeights& weights) {
  const int ordinal = device.id().ordinal;
  require_matrix_on_gpu(weights.b1, ordinal, "b1");
  for (const auto& [name, tensor] :
       {std::pair{"b2 (up)", &weights.b2}, std::pair{"bias1", &weights.bias1}, std::pair{"bias2", &weights.bias2}}) {
    if (tensor->rank > 0) {
      require_matrix_on_gpu(*tensor, ordinal, name);
    }
  }
  if (weights.up_global_scale != nullptr) {
    runtime::require_on_gpu(weights.up_global_scale, ordinal, "up_global_scale");
  }
}

std::shared_ptr<const GroupedGemm::Backend> plan_matrices(
    const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
    const std::shared_ptr<const PackedGroupedWeights::Storage>& keeps, const GroupedOptions& options, Bounds bounds) {
  const WeightViews views = weight_views(weights);
  const auto obstacle = [&](const PlannedCall& call) { return stacks_obstacle(call, views); };
  std::vector<PlannedRows> calls = planned_calls(device, problem, options, bounds, obstacle);
  Operands operands{views, nullptr, keeps};
  if (const PlannedCall& call = calls.back().call; call.packing != nullptr) {
    const auto packed = std::make_shared<const PackedByStrategy>(device, weights, numerics_of(call.knobs), call);
    operands = {packed->views(), packed->packed(), packed};
  }
  const GroupedWeights where_they_lie = operands.keeps == nullptr ? weights : GroupedWeights{};
  return std::make_shared<const CudaGroupedGemm>(device, problem, std::move(calls), std::move(operands), where_they_lie,
                                                 bounds);
}

}  // namespace

std::shared_ptr<const PackedGroupedWeights::Storage> pack_on_gpu(const Device& device, const GroupedWeights& weights,
                                                                 const PackOptions& options) {
  require_weights_on_gpu(device, weights);
  const PlannedCall call = packing_choice(device, shape_of(weights), options.numerics);
  if (call.packing != nullptr) {
    return std::make_shared<const PackedByStrategy>(device, weights, options.numerics, call);
  }
  return std::make_shared<const CopiedWeights>(device, weights, options.numerics);
}

std::shared_ptr<const PackedGroupedWeights::Storage> restore_on_gpu(const Device& device,
                                                                    const PackedContent& content) {
  const GroupedWeights weights = grouped_view(content, device.id());
  if (content.layout == matrices_layout) {
    if (!content.on_device) {
      throw Error(ErrorCode::unsupported, "they lie in the host's memory, expected memory of " + device.name());
    }
    return std::make_shared<const SeenGroupedWeights>(device, weights, content.numerics);
  }
  const PlannedCall call = packing_choice(device, shape_of(weights), content.numerics);
  if (content.layout != call.packed_layout) {
    throw Error(ErrorCode::unsupported, "they were packed in the layout " + content.layout + ", which " +
                                            device.name() + " does not read: pack them again for this device");
  }
  return std::make_shared<const PackedByStrategy>(device, content, call);
}

std::shared_ptr<const GroupedGemm::Backend> plan_packed_on_gpu(const Device& device, const GroupedProblem& problem,
                                                               const PackedGroupedWeights& weights,
                                                               const GroupedOptions& options, Bounds bounds) {
  const auto packed = std::dynamic_pointer_cast<const PackedByStrategy>(weights.shared());
  if (packed == nullptr) {
    return plan_matrices(device, problem, weights.storage().weights(), weights.shared(), options, bounds);
  }
  GroupedOptions of_weights = options;
  ask_for(packed->numerics(), of_weights.knobs);
  const auto obstacle = [&](const PlannedCall& call) {
    return call.packed_layout == packed->layout()
               ? std::string()
               : "strategy " + call.strategy +
                     " does not read weights as these were packed: plan it from the weights, or leave the strategy "
                     "empty";
  };
  return std::make_shared<const CudaGroupedGemm>(
      device, problem, planned_calls(device, problem, of_weights, bounds, obstacle),
      Operands{packed->views(), packed->packed(), packed}, GroupedWeights{}, bounds);
}

std::shared_ptr<const GroupedGemm::Backend> plan_raw_on_gpu(const Device& device, const GroupedProblem& problem,
                                                            const GroupedWeights& weights,
                                                            const GroupedOptions& options, Bounds bounds) {
  require_weights_on_gpu(device, weights);
  return plan_matrices(device, problem, weights, nullptr, options, bounds);
}

}  // namespace thresher::ops
