#pragma once
/// Weights as a strategy's packing call left them on a GPU.
#include "ops/backend.hpp"
#include "ops/cuda_weights.hpp"
#include "runtime/memory.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::ops {

/// What was packed is not needed any more; `b1_gate()` and `b2_up()` tell its shapes, formats and global scales, not
/// its data.
class CudaPackedWeights final : public PackedWeights::Storage {
 public:
  /// Runs `call.packing` on matrices on `device`. Finished on return. Throws Error(out_of_memory).
  CudaPackedWeights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics,
                    const strategies::PlannedCall& call);
  /// From a content in `call`'s layout, seen where it lies if that is on the device. Throws Error(invalid_argument)
  /// when its size is not that of its shape.
  CudaPackedWeights(const Device& device, const PackedContent& content, const strategies::PlannedCall& call);

  [[nodiscard]] PackedContent content() const override;
  [[nodiscard]] PackedContent held() const override;
  /// PlannedCall::packed_layout of the calls that can read it.
  [[nodiscard]] const std::string& layout() const noexcept { return layout_; }
  [[nodiscard]] void* packed() const noexcept { return memory_.packed.data(); }

 private:
  struct Memory {
    GpuBytes packed;
    GpuBytes gate_scale;  ///< empty for 1
    GpuBytes up_scale;
  };
  CudaPackedWeights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics,
                    std::string layout, Memory memory);

  std::string layout_;
  Memory memory_;
};

}  // namespace thresher::ops
