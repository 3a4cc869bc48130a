#pragma once
/// The strategy `packed`: NVFP4 weights, packed once, made into the matrix unit's operand in registers (Hopper).
#include <memory>

#include "ops/backend.hpp"
#include "ops/kernel_variant.hpp"
#include "runtime/memory.hpp"

namespace thresher::ops {

/// Weights in the layout of strategies/dual_gemm/packed/exact_layout.hpp or fast_layout.hpp, as numerics() says. What
/// was packed is not needed any more; `b1_gate()` and `b2_up()` tell its shapes and formats, not its data.
class CudaNvfp4Weights final : public PackedWeights::Storage {
 public:
  /// Both matrices are NVFP4 on `device`, a Hopper GPU. Finished on return. Throws Error(out_of_memory).
  CudaNvfp4Weights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics);
  /// From a file's content in one of the layouts below. Throws Error(invalid_argument) when its size is not that of its
  /// shape.
  CudaNvfp4Weights(const Device& device, const PackedContent& content);

  /// The layouts' names in files. A change of strategies/dual_gemm/packed/exact_layout.hpp or fast_layout.hpp is
  /// another name.
  [[nodiscard]] static const char* layout(Numerics numerics) noexcept {
    return numerics == Numerics::exact ? "nvfp4-exact-sm90-1" : "nvfp4-fast-sm90-1";
  }
  [[nodiscard]] PackedContent content() const override;

  [[nodiscard]] const void* packed() const noexcept { return packed_.data(); }
  /// On the GPU; null for 1.
  [[nodiscard]] const float* gate_scale() const noexcept { return static_cast<const float*>(gate_scale_.data()); }
  [[nodiscard]] const float* up_scale() const noexcept { return static_cast<const float*>(up_scale_.data()); }

 private:
  CudaNvfp4Weights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics,
                   runtime::DeviceBuffer packed);
  CudaNvfp4Weights(const Device& device, const PackedContent& content, runtime::DeviceBuffer packed);
  runtime::DeviceBuffer packed_;
  runtime::DeviceBuffer gate_scale_;
  runtime::DeviceBuffer up_scale_;
};

/// Whether `device` has what `packed` needs: compute capability 9.0.
bool runs_packed_nvfp4(const Device& device);

/// `knobs` as ops/nvfp4_choice.hpp takes them; empty: the measured choice.
std::shared_ptr<const DualGemm::Backend> make_cuda_nvfp4(const Device& device, const DualGemmProblem& problem,
                                                         std::shared_ptr<const CudaNvfp4Weights> weights,
                                                         const std::string& knobs, const KernelVariant& variant = {});

}  // namespace thresher::ops
