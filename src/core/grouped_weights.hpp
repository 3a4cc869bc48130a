#pragma once
/// The weights of a grouped product in any of their forms, as one view of gate and one of up.
#include "thresher/grouped_gemm.hpp"

namespace thresher {

/// Views [E,N,K] of the values: `strides[0]` is from expert to expert, `strides[1]` from row to row (2·K where gate and
/// up are interleaved). The strides of row-major scales are those of the values divided by the values per scale.
/// Blocked scales (two tensors, contiguous) are stored expert behind expert. `global_scale` points to one float32 per
/// expert, or is null. Biases are views [E,N] with their own strides. Absent views have rank 0.
struct WeightViews {
  Tensor gate{};  ///< or the one matrix of a plain grouped GEMM
  Tensor up{};
  Tensor gate_bias{};
  Tensor up_bias{};
};

/// `weights` must be valid (ops/validate_product.hpp).
[[nodiscard]] WeightViews weight_views(const GroupedWeights& weights);

/// One expert's matrix of a view. Row n of the weights is row n · row_step of `matrix`, which has its own scales and
/// its own global scale.
struct ExpertMatrix {
  Tensor matrix;
  std::int64_t row_step = 1;
};
[[nodiscard]] ExpertMatrix expert_matrix(const Tensor& view, std::int64_t expert);

/// Bytes from the first scale of a matrix, or of a view of a stack, to the end of the last; 0 without scales.
[[nodiscard]] std::size_t scale_extent_bytes(const Tensor& view) noexcept;

/// A matrix [N,K] as the stack [1,N,K] of one expert, with the same scales. Rank 0 stays rank 0, and a vector [N]
/// becomes [1,N].
[[nodiscard]] Tensor stack_of_one(const Tensor& matrix);

/// One matrix of a stack [E,rows,K] as callers give it, with its own scales and its own global scale.
[[nodiscard]] Tensor slot_matrix(const Tensor& stack, std::int64_t slot);

}  // namespace thresher
