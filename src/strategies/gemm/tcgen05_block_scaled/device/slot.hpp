#pragma once
/// A slot of the ring of NVFP4 operands on tcgen05: where its parts lie, and its products. The dual and the grouped
/// GEMMs fill it each in their way.
#include "machine/tcgen05.hpp"
#include "strategies/gemm/tcgen05_block_scaled/device/layout.hpp"

namespace thresher::strategies::gemm::tcgen05_block_scaled {

/// Weights, `token_bytes` of tokens, scales of the weights, scales of `token_groups` groups of 128 tokens. Each block
/// of a pair brings the scales of half of the blocks along K to both.
template <machine::Group group, u32 token_bytes, u32 token_groups>
class Slot {
  static constexpr u32 loaded_blocks = loaded_scale_blocks(static_cast<u32>(group));

 public:
  static constexpr u32 tokens_at = weight_block_bytes;
  static constexpr u32 weight_scales_at = tokens_at + token_bytes;
  static constexpr u32 token_scales_at = weight_scales_at + weight_scale_bytes;
  static constexpr u32 loaded_scale_bytes = token_groups * loaded_blocks * scale_block_bytes;

  /// All of the slot's products into `sums`, which `first` starts anew; `scales` is the slot's set of columns.
  static TH_DEVICE void multiply(machine::Shared<u8> slot, machine::tensor_memory::Columns sums,
                                 machine::tensor_memory::Columns scales, machine::tcgen05::Instruction word,
                                 bool first) {
    using machine::Swizzle;
    using machine::tcgen05::descriptor;
    const auto weights = descriptor<Swizzle::b128>(slot, 0, 8 * slot_row_bytes);
    const auto tokens = descriptor<Swizzle::b128>(slot.offset_bytes(tokens_at), 0, 8 * slot_row_bytes);
    TH_UNROLL
    for (u32 k = 0; k < slot_products; ++k) {
      const auto weight_scales = scales.plus(k * columns_of_product);
      const auto token_scales = weight_scales.plus(scale_block_columns);
      copy_scales(weight_scales, slot, weight_scales_at + k * scale_block_bytes);
      TH_UNROLL
      for (u32 g = 0; g < token_groups; ++g) {
        copy_scales(token_scales.plus(g * scale_block_columns), slot, token_scales_at + token_scale_block(k, g));
      }
      machine::tcgen05::multiply_scaled<group>(sums, weights.advance(k * product_row_bytes),
                                               tokens.advance(k * product_row_bytes), word, weight_scales, token_scales,
                                               !first || k != 0);
    }
  }

 private:
  static constexpr u32 columns_of_product = (1 + token_groups) * scale_block_columns;

  /// A block loads all groups of its part of the slot's blocks along K.
  static TH_DEVICE constexpr u32 token_scale_block(u32 k, u32 g) {
    return ((k / loaded_blocks * token_groups + g) * loaded_blocks + k % loaded_blocks) * scale_block_bytes;
  }

  static TH_DEVICE void copy_scales(machine::tensor_memory::Columns to, machine::Shared<u8> slot, u32 offset) {
    machine::tcgen05::copy_scales<group>(to, machine::tcgen05::scale_block(slot.offset_bytes(offset)));
  }
};

}  // namespace thresher::strategies::gemm::tcgen05_block_scaled
