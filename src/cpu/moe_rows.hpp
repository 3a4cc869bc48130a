#pragma once
/// What a layer of experts does around its products: choices sorted by expert, and rows added up.
#include <cstdint>
#include <span>

#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// Sorts choices by their expert, stably. `offsets` has one entry more than there are experts, `row_ids` and `inverse`
/// one for each choice: a row's choice, −1 behind the last row, and a choice's row, −1 where its id is of no expert.
void sort_choices(std::span<const std::int32_t> ids, std::span<std::int32_t> offsets, std::span<std::int32_t> row_ids,
                  std::span<std::int32_t> inverse);

/// out [tokens, columns]: the rows of each token's choices times their weights, in float32 in the order of the choices.
/// `rows` [choices, columns] in fp16, bf16 or fp32, `inverse` and `weights` [tokens, top_k]; negative places of
/// `inverse` are skipped.
void combine_rows(const Tensor& rows, const Tensor& inverse, const Tensor& weights, const Tensor& out, int threads);

}  // namespace thresher::cpu
