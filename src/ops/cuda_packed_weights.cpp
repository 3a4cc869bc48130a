#include "ops/cuda_packed_weights.hpp"

#include <fmt/format.h>

#include <array>

#include "ops/cuda_call.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

runtime::DeviceBuffer scale_from(const float* scale, int ordinal) {
  if (scale == nullptr) {
    return {};
  }
  runtime::DeviceBuffer buffer(ordinal, sizeof(float), "a global scale");
  runtime::copy(buffer.data(), scale, sizeof(float), ordinal);
  return buffer;
}

/// The shape of weights that were kept packed.
Tensor restored(const PackedContent& content, const Device& device) {
  Tensor weights = Tensor::contiguous(nullptr, content.format, {content.n, content.k}, device.id());
  return weights;
}

/// The shapes and formats of what was packed, with the packed memory as their data.
Tensor described(Tensor weights, const GpuBytes& packed, const GpuBytes& scale) {
  weights.data = packed.data();
  weights.scales.data = packed.data();
  weights.global_scale = scale.floats();
  return weights;
}

void run_packing(const strategies::PlannedCall& packing, const Tensor& b1_gate, const Tensor& b2_up, void* packed,
                 int ordinal) {
  std::array<Tensor, strategies::gemm::dense_tensor_count> all;
  all[strategies::dual_gemm::gate_index] = b1_gate;
  all[strategies::dual_gemm::up_index] = b2_up;
  const strategies::CallTensors tensors{all, nullptr, packed};
  CudaCall(packing, ordinal, tensors).run({}, tensors);
  runtime::synchronize({}, ordinal);
}

}  // namespace

CudaPackedWeights::CudaPackedWeights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up,
                                     Numerics numerics, std::string layout, Memory memory)
    : Storage(device, described(b1_gate, memory.packed, memory.gate_scale),
              described(b2_up, memory.packed, memory.up_scale), numerics),
      layout_(std::move(layout)),
      memory_(std::move(memory)) {}

CudaPackedWeights::CudaPackedWeights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up,
                                     Numerics numerics, const strategies::PlannedCall& call)
    : CudaPackedWeights(device, b1_gate, b2_up, numerics, call.packed_layout,
                        {runtime::DeviceBuffer(device.id().ordinal, call.packed_bytes(), "the packed weights"),
                         scale_from(b1_gate.global_scale, device.id().ordinal),
                         scale_from(b2_up.global_scale, device.id().ordinal)}) {
  if (memory_.packed.bytes() > 0) {
    run_packing(*call.packing, b1_gate, b2_up, memory_.packed.data(), device.id().ordinal);
  }
}

CudaPackedWeights::CudaPackedWeights(const Device& device, const PackedContent& content,
                                     const strategies::PlannedCall& call)
    : CudaPackedWeights(
          device, restored(content, device), restored(content, device), content.numerics, call.packed_layout,
          {GpuBytes(content.packed, content.on_device, device.id().ordinal, "the packed weights"),
           GpuBytes(content.matrices[0].global_scale, content.on_device, device.id().ordinal, "a global scale"),
           GpuBytes(content.matrices[1].global_scale, content.on_device, device.id().ordinal, "a global scale")}) {
  if (memory_.packed.bytes() != call.packed_bytes()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("they take {} bytes, expected {} for [{}, {}]", memory_.packed.bytes(), call.packed_bytes(),
                            content.n, content.k));
  }
}

PackedContent CudaPackedWeights::held() const {
  PackedContent content = outline(layout_);
  content.on_device = true;
  content.packed = memory_.packed.seen();
  content.matrices[0].global_scale = memory_.gate_scale.seen();
  content.matrices[1].global_scale = memory_.up_scale.seen();
  return content;
}

PackedContent CudaPackedWeights::content() const {
  const int ordinal = device().id().ordinal;
  PackedContent content = outline(layout_);
  runtime::synchronize({}, ordinal);
  content.packed = memory_.packed.to_host(ordinal);
  content.matrices[0].global_scale = memory_.gate_scale.to_host(ordinal);
  content.matrices[1].global_scale = memory_.up_scale.to_host(ordinal);
  return content;
}

}  // namespace thresher::ops
