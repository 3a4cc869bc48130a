#pragma once
/// The steps of a MoE layer around its products: permutation by expert, and the combination of rows.
#include <cstdint>
#include <span>

#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// Permutes top-k assignments by expert, stably. `offsets` has one entry more than there are experts; `row_ids` and
/// `inverse` have one per assignment. `row_ids` holds each row's assignment, −1 behind the last row. `inverse` holds
/// each assignment's row, −1 if its id is outside the experts.
void sort_choices(std::span<const std::int32_t> ids, std::span<std::int32_t> offsets, std::span<std::int32_t> row_ids,
                  std::span<std::int32_t> inverse);

/// out [tokens, columns]: the weighted sum of each token's rows, in float32 in the order of the assignments. `rows`
/// [assignments, columns] is fp16, bf16 or fp32, `inverse` and `weights` are [tokens, top_k]. Negative entries of
/// `inverse` are skipped.
void combine_rows(const Tensor& rows, const Tensor& inverse, const Tensor& weights, const Tensor& out, int threads);

}  // namespace thresher::cpu
