#include "strategies/dual_gemm/tcgen05/launches.hpp"

#include "core/integers.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

constexpr u32 scale_words = scale_block_bytes / 2;  ///< of 16 bits: a row of a box has 256 elements at most

/// Blocks of 128 rows by 256 along K, one behind the other.
u64 weight_blocks(const Extents& extents) { return u64{row_tiles(extents.n)} * k_steps(extents.k); }

/// Blocks of scales in rows of 16-bit words: [groups][along K][a block].
machine::TensorMapDescription scales_map(u64 address, u64 along_k, u64 groups, u32 box_along_k, u32 box_groups) {
  machine::TensorMapDescription map;
  map.address = address;
  map.element = machine::ElementType::uint16;
  map.swizzle = machine::Swizzle::none;
  map.rank = 3;
  map.extent[0] = scale_words;
  map.extent[1] = along_k;
  map.extent[2] = groups;
  map.stride_bytes[1] = scale_block_bytes;
  map.stride_bytes[2] = along_k * scale_block_bytes;
  map.box[0] = scale_words;
  map.box[1] = box_along_k;
  map.box[2] = box_groups;
  return map;
}

}  // namespace

bool reads_in_place(const Config& config, const Tensor& tokens) {
  const bool is_addressable = (static_cast<u64>(tokens.strides[0]) / 2) % tma_alignment_bytes == 0 &&
                              device_address(tokens.data) % tma_alignment_bytes == 0 &&
                              device_address(tokens.scales.data) % tma_alignment_bytes == 0;
  return config.unsigned_scales && tokens.scales.layout == ScaleLayout::blocked && is_addressable &&
         blocked_scales_fit(narrow(tokens.shape[0]), narrow(tokens.shape[1]), narrow(config.block_tokens));
}

TokenOperand given_tokens(const Tensor& tokens) {
  TokenOperand operand;
  operand.codes = device_address(tokens.data);
  operand.row_bytes = static_cast<u64>(tokens.strides[0]) / 2;
  operand.used_bytes = static_cast<u64>(tokens.shape[1]) / 2;
  operand.scales = device_address(tokens.scales.data);
  operand.scale_groups = scale_groups(narrow(tokens.shape[0]));
  return operand;
}

TokenOperand prepared_tokens(const Config& config, const Extents& extents, u64 codes, u64 scales) {
  TokenOperand operand;
  operand.codes = codes;
  operand.row_bytes = prepared_row_bytes(extents.k);
  operand.used_bytes = operand.row_bytes;
  operand.scales = scales;
  operand.scale_groups = prepared_scale_groups(extents.m, narrow(config.block_tokens));
  return operand;
}

PrepareTokensParams prepare_params(const Config& config, const Tensor& tokens) {
  const u32 m = narrow(tokens.shape[0]);
  const u32 k = narrow(tokens.shape[1]);
  PrepareTokensParams params{};
  params.tokens = token_matrix(tokens);
  params.row_bytes = prepared_row_bytes(k);
  params.k_blocks = scale_k_blocks(k);
  params.block_tokens = narrow(config.block_tokens);
  params.scale_rows = 128 * prepared_scale_groups(m, narrow(config.block_tokens));
  return params;
}

u32 prepare_blocks(const PrepareTokensParams& params) {
  return static_cast<u32>((prepare_items(params) + prepare_threads - 1) / prepare_threads);
}

machine::TensorMapDescription weights_map(const Extents& extents, u64 codes) {
  machine::TensorMapDescription map;
  map.address = codes;
  map.element = machine::ElementType::uint8;
  map.swizzle = machine::Swizzle::b128;
  map.rank = 3;
  map.extent[0] = slot_row_bytes;
  map.extent[1] = tile_rows;
  map.extent[2] = weight_blocks(extents);
  map.stride_bytes[1] = slot_row_bytes;
  map.stride_bytes[2] = weight_block_bytes;
  map.box[0] = slot_row_bytes;
  map.box[1] = tile_rows;
  map.box[2] = 1;
  return map;
}

machine::TensorMapDescription weight_scales_map(const Extents& extents, u64 scales) {
  return scales_map(scales, slot_scale_blocks, weight_blocks(extents), slot_scale_blocks, 1);
}

machine::TensorMapDescription tokens_map(const Config& config, const Extents& extents, const TokenOperand& tokens) {
  machine::TensorMapDescription map;
  map.address = tokens.codes;
  map.element = machine::ElementType::uint8;
  map.swizzle = machine::Swizzle::b128;
  map.rank = 2;
  map.extent[0] = tokens.used_bytes;
  map.extent[1] = extents.m;
  map.stride_bytes[1] = tokens.row_bytes;
  map.box[0] = slot_row_bytes;
  map.box[1] = loaded_tokens(config);
  return map;
}

machine::TensorMapDescription token_scales_map(const Config& config, const Extents& extents,
                                               const TokenOperand& tokens) {
  return scales_map(tokens.scales, scale_k_blocks(extents.k), tokens.scale_groups, loaded_scale_blocks(config),
                    token_scale_groups(config));
}

Params scalars(const Config& config, const Extents& extents, std::int64_t c_row_stride, const Activation& activation) {
  Params params{};
  params.c_row_stride = static_cast<u64>(c_row_stride);
  params.m = extents.m;
  params.n = extents.n;
  params.k = extents.k;
  params.k_steps = k_steps(extents.k);
  params.c_wide = extents.n % 8 == 0 && c_row_stride % 8 == 0 ? 1 : 0;
  params.token_tiles = ceil_div(extents.m, narrow(config.block_tokens));
  params.output_tiles = ceil_div(extents.n, narrow(tile_outputs(config)));
  params.alpha = activation.alpha;
  params.limit = activation.limit;
  params.up_offset = activation.up_offset;
  return params;
}

u32 blocks(const Config& config, const Params& params) {
  return params.token_tiles * params.output_tiles * narrow(pipeline::cluster_blocks(shape_of(config)));
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
