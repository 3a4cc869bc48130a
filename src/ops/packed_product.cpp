#include "ops/packed_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace tensors = strategies::gemm;
using strategies::PlannedCall;

/// New memory of a GPU; null for 0 bytes.
Bytes gpu_bytes(std::size_t bytes, int ordinal, const char* purpose) {
  if (bytes == 0) {
    return {};
  }
  const auto buffer = std::make_shared<const runtime::DeviceBuffer>(ordinal, bytes, purpose);
  return {buffer, buffer->data(), bytes};
}

Bytes gpu_copy(const void* source, std::size_t bytes, int ordinal, const char* purpose) {
  const Bytes copy = gpu_bytes(source == nullptr ? 0 : bytes, ordinal, purpose);
  if (!copy.empty()) {
    runtime::copy(const_cast<std::byte*>(copy.data()), source, bytes, ordinal);
  }
  return copy;
}

Bytes host_copy(const Bytes& on_gpu, int ordinal) {
  std::vector<std::byte> host(on_gpu.size());
  if (!host.empty()) {
    runtime::copy(host.data(), on_gpu.data(), host.size(), ordinal);
  }
  return host;
}

/// Copies of weights in the memory of a GPU, or of a GPU's weights in the host's memory.
GroupedWeights copied_to(DeviceId to, const GroupedWeights& weights, int ordinal, std::vector<Keeper>& keepers) {
  const auto copy = [&](const void* data, std::size_t bytes) {
    const auto owner = std::make_shared<const Bytes>(to.kind == DeviceKind::cpu
                                                         ? host_copy(Bytes::seen(data, bytes), ordinal)
                                                         : gpu_copy(data, bytes, ordinal, "a copy of the weights"));
    keepers.push_back(owner);
    return const_cast<void*>(static_cast<const void*>(owner->data()));
  };
  GroupedWeights made = copied(weights, to, copy);
  runtime::synchronize_device(ordinal);
  return made;
}

/// A contiguous copy of a bias on a GPU.
Bytes bias_copy(const Tensor& bias, int ordinal) {
  if (bias.rank == 0) {
    return {};
  }
  std::vector<std::byte> host(extent_bytes(bias));
  if (!bias.is_contiguous()) {
    runtime::copy(host.data(), bias.data, host.size(), ordinal);
  }
  Tensor seen = bias;
  seen.data = bias.is_contiguous() ? bias.data : host.data();
  const Bytes values = packed_values(seen);
  return gpu_copy(values.data(), values.size(), ordinal, "a bias");
}

void run_packing(const PlannedCall& packing, const WeightViews& views, const Bytes& packed, int ordinal) {
  if (packed.empty()) {
    return;
  }
  std::array<Tensor, tensors::tensor_count> all{};
  all[tensors::gate_index] = views.gate;
  all[tensors::up_index] = views.up;
  all[tensors::gate_bias_index] = views.gate_bias;
  all[tensors::up_bias_index] = views.up_bias;
  const strategies::CallTensors call{all, nullptr, const_cast<std::byte*>(packed.data())};
  CudaCall(packing, ordinal, call).run({}, call);
}

/// `change` of all bytes that a layout of a device's own has.
void change_bytes(PackedContent& content, const auto& change) {
  content.packed = change(content.packed, "the packed weights");
  for (PackedMatrix& matrix : content.matrices) {
    matrix.global_scale = change(matrix.global_scale, "the global scales");
    matrix.bias = change(matrix.bias, "a bias");
  }
}

/// A problem for these weights.
ProductProblem problem_of(const WeightsShape& shape) {
  ProductProblem problem;
  problem.layout = shape.experts == 0 ? tensors::ProductRows::dense : tensors::ProductRows::contiguous;
  problem.experts = std::max<std::int64_t>(shape.experts, 1);
  problem.rows = 1;
  problem.n = std::max<std::int64_t>(shape.n, 1);
  problem.k = shape.k;
  problem.a = shape.format;
  problem.b = shape.format;
  problem.bias = shape.has_bias;
  if (shape.matrices == 2) {
    problem.activation = Activation{};
  }
  return problem;
}

/// How weights are packed, by the strategy that `plan` would choose for them.
PlannedCall packing_choice(const Device& device, const WeightsShape& shape, Numerics numerics) {
  planner::Request request;
  ask_for(numerics, request.knobs);
  return choose_product(problem_of(shape), request, DeviceKind::cuda, spec_of(device));
}

void require_layout(const Device& device, const PackedContent& content, const PlannedCall& call) {
  if (content.layout != call.packed_layout) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("they were packed in the layout {}, which this Thresher does not read on {}: pack them again",
                    content.layout, device.name()));
  }
  if (content.packed.size() != call.packed_bytes()) {
    const std::string experts = content.experts == 0 ? "" : fmt::format("{} experts of ", content.experts);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("they take {} bytes, expected {} for {}[{}, {}]", content.packed.size(),
                            call.packed_bytes(), experts, content.n, content.k));
  }
}

PackedPointer restore_on_cpu(const Device& device, PackedContent content) {
  if (content.layout != matrices_layout) {
    throw Error(ErrorCode::unsupported,
                "they were packed for a GPU (" + content.layout + "), and the CPU takes weights as they are");
  }
  const auto kept = std::make_shared<const PackedContent>(std::move(content));
  return std::make_shared<const PackedProduct>(device, weights_in(*kept), kept->numerics, std::vector<Keeper>{kept});
}

/// Matrices of the host.
PackedPointer restore_matrices(const Device& device, const PackedContent& content) {
  std::vector<Keeper> keepers;
  const GroupedWeights weights = copied_to(device.id(), weights_in(content), device.id().ordinal, keepers);
  const PlannedCall call = packing_choice(device, shape_of(weights), content.numerics);
  return call.packing != nullptr
             ? pack_by(call, device, weights, content.numerics)
             : std::make_shared<const PackedProduct>(device, weights, content.numerics, std::move(keepers));
}

}  // namespace

PackedProduct::PackedProduct(Device device, const GroupedWeights& weights, Numerics numerics,
                             std::vector<Keeper> keepers)
    : device_(std::move(device)),
      weights_(weights),
      shape_(shape_of(weights)),
      views_(weight_views(weights)),
      keepers_(std::move(keepers)) {
  content_.layout = matrices_layout;
  content_.numerics = numerics;
}

PackedProduct::PackedProduct(Device device, PackedContent content)
    : device_(std::move(device)),
      weights_(weights_in(content, device_.id())),
      shape_(shape_of(weights_)),
      views_(weight_views(weights_)),
      content_(std::move(content)) {
  for (Tensor* view : {&views_.gate, &views_.up}) {
    view->data = packed();
    view->scales.data = packed();
  }
}

PackedContent PackedProduct::content() const {
  if (device_.kind() == DeviceKind::cpu) {
    return packed_content(weights_, numerics());
  }
  const int ordinal = device_.id().ordinal;
  runtime::synchronize({}, ordinal);
  if (!is_matrices()) {
    PackedContent content = content_;
    change_bytes(content, [&](const Bytes& bytes, const char*) { return host_copy(bytes, ordinal); });
    content.on_device = false;
    return content;
  }
  std::vector<Keeper> keepers;
  PackedContent content = packed_content(copied_to({}, weights_, ordinal, keepers), numerics());
  content.keepers = std::move(keepers);
  return content;
}

PackedContent PackedProduct::held() const {
  if (!is_matrices()) {
    return content_;
  }
  if (device_.kind() == DeviceKind::cpu || !is_seen_whole(weights_)) {
    return content();
  }
  PackedContent content = packed_content(weights_, numerics());
  content.on_device = true;
  return content;
}

PackedPointer pack_product(const Device& device, const GroupedWeights& weights, const PackOptions& options) {
  require_exact_on_cpu(device, options.numerics);
  if (device.kind() == DeviceKind::cpu) {
    return std::make_shared<const PackedProduct>(device, weights, options.numerics);
  }
  const int ordinal = device.id().ordinal;
  require_weights_on_gpu(weights, ordinal);
  const PlannedCall call = packing_choice(device, shape_of(weights), options.numerics);
  if (call.packing != nullptr) {
    return pack_by(call, device, weights, options.numerics);
  }
  std::vector<Keeper> keepers;
  const GroupedWeights copies = copied_to(device.id(), weights, ordinal, keepers);
  return std::make_shared<const PackedProduct>(device, copies, options.numerics, std::move(keepers));
}

PackedPointer pack_by(const PlannedCall& call, const Device& device, const GroupedWeights& weights, Numerics numerics) {
  const int ordinal = device.id().ordinal;
  const WeightViews views = weight_views(weights);
  PackedContent content = outline(weights, numerics, call.packed_layout);
  content.on_device = true;
  content.packed = gpu_bytes(call.packed_bytes(), ordinal, "the packed weights");
  run_packing(*call.packing, views, content.packed, ordinal);
  for (const auto& [matrix, view] : {std::pair{0, &views.gate}, std::pair{1, &views.up}}) {
    content.matrices.at(matrix).global_scale =
        gpu_copy(view->global_scale, global_scales(*view) * sizeof(float), ordinal, "the global scales");
  }
  content.matrices[0].bias = bias_copy(weights.bias1, ordinal);
  content.matrices[1].bias = bias_copy(weights.bias2, ordinal);
  runtime::synchronize({}, ordinal);
  return std::make_shared<const PackedProduct>(device, std::move(content));
}

PackedPointer restore_product(const Device& device, PackedContent content) {
  if (device.kind() == DeviceKind::cpu) {
    return restore_on_cpu(device, std::move(content));
  }
  if (content.layout == matrices_layout) {
    return content.on_device
               ? std::make_shared<const PackedProduct>(device, weights_in(content, device.id()), content.numerics)
               : restore_matrices(device, content);
  }
  const PlannedCall call = packing_choice(device, shape_of(weights_in(content)), content.numerics);
  require_layout(device, content, call);
  if (!content.on_device) {
    const int ordinal = device.id().ordinal;
    change_bytes(content, [&](const Bytes& bytes, const char* purpose) {
      return gpu_copy(bytes.data(), bytes.size(), ordinal, purpose);
    });
    content.on_device = true;
  }
  return std::make_shared<const PackedProduct>(device, std::move(content));
}

void require_exact_on_cpu(const Device& device, Numerics numerics) {
  if (device.kind() == DeviceKind::cpu && numerics != Numerics::exact) {
    throw Error(
        ErrorCode::unsupported,
        "numerics fast is for NVFP4 and FP8 weights on a Hopper GPU; the CPU computes exactly: use numerics exact");
  }
}

void require_matrix_on_gpu(const Tensor& matrix, int ordinal, const std::string& argument) {
  if (extent_bytes(matrix) == 0) {
    return;
  }
  runtime::require_on_gpu(matrix.data, ordinal, argument.c_str());
  if (format_traits(matrix.format).has_scales()) {
    runtime::require_on_gpu(matrix.scales.data, ordinal, (argument + ".scales").c_str());
  }
  if (matrix.global_scale != nullptr) {
    runtime::require_on_gpu(matrix.global_scale, ordinal, (argument + ".global_scale").c_str());
  }
}

void require_weights_on_gpu(const GroupedWeights& weights, int ordinal) {
  require_matrix_on_gpu(weights.b1, ordinal, weights.b1.rank == 2 ? "b1 (gate)" : "b1");
  require_matrix_on_gpu(weights.b2, ordinal, "b2 (up)");
  require_matrix_on_gpu(weights.bias1, ordinal, "bias1");
  require_matrix_on_gpu(weights.bias2, ordinal, "bias2");
  if (weights.up_global_scale != nullptr) {
    runtime::require_on_gpu(weights.up_global_scale, ordinal, "up_global_scale");
  }
}

}  // namespace thresher::ops
