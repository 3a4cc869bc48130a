#pragma once
/// Fused kernels for `thresher profile`: with timestamps, or with a part left out or done twice.
#include <memory>
#include <vector>

#include "ops/product_plan.hpp"
#include "pipeline/shape.hpp"
#include "runtime/memory.hpp"

namespace thresher::arena {

/// Where a profiled kernel leaves its timestamps (pipeline/timeline.hpp), on its GPU.
struct ProfileBuffer {
  runtime::DeviceBuffer words;
  int blocks = 0;
  pipeline::Shape shape;

  /// Makes room for a launch, all zero.
  void prepare(int ordinal, int launched_blocks, const pipeline::Shape& launched_shape);
  /// The timestamps of the last launch, which the GPU must have finished.
  [[nodiscard]] std::vector<std::uint64_t> read() const;
};

struct KernelVariant {
  pipeline::Ablation ablation = pipeline::Ablation::none;
  std::shared_ptr<ProfileBuffer> profile = nullptr;  ///< null: no timestamps; else prepared when planned
};

/// The kernel that `plan` would choose from raw weights with `options`, as `variant`. Throws Error(unsupported) when
/// that is no fused kernel on a GPU.
ops::PlanPointer plan_variant(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate,
                              const Tensor& b2_up, const DualGemmOptions& options, const KernelVariant& variant);

}  // namespace thresher::arena
