#include "strategies/dual_gemm/packed/launches.hpp"

#include "core/integers.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

constexpr std::int64_t factors_alignment = 256;

std::int64_t token_elements(Numerics numerics) { return numerics == Numerics::fast ? 128 : 64; }

machine::TensorMapDescription unboxed_tokens(const Config& config, std::uint64_t address) {
  machine::TensorMapDescription map;
  map.address = address;
  map.element = config.numerics == Numerics::fast ? machine::ElementType::uint8
                : config.operand == Number::bf16  ? machine::ElementType::bf16
                                                  : machine::ElementType::fp16;
  map.swizzle = machine::Swizzle::b128;
  return map;
}

}  // namespace

Numerics numerics_of(thresher::Numerics numerics) {
  return numerics == thresher::Numerics::fast ? Numerics::fast : Numerics::exact;
}

Matrix matrix_of(const Tensor& operand) {
  const bool is_nvfp4 = operand.format == Format::nvfp4;
  Matrix matrix;
  matrix.values = {reinterpret_cast<std::uintptr_t>(operand.data)};
  matrix.scales = {reinterpret_cast<std::uintptr_t>(operand.scales.data)};
  matrix.row_bytes = static_cast<machine::u64>(is_nvfp4 ? operand.strides[0] / 2 : operand.strides[0] * 2);
  matrix.rows = narrow(operand.shape[0]);
  matrix.scale_columns = narrow(operand.shape[1] / 16);
  matrix.scale_stride = matrix.scale_columns;
  matrix.scales_blocked = operand.scales.layout == ScaleLayout::blocked ? 1 : 0;
  return matrix;
}

TokenFormat token_format(Format format) {
  return format == Format::nvfp4 ? TokenFormat::nvfp4 : format == Format::bf16 ? TokenFormat::bf16 : TokenFormat::fp16;
}

FoldTokensParams fold_params(const Tensor& a) {
  FoldTokensParams params{};
  params.tokens = matrix_of(a);
  params.groups = narrow(prepared_tokens(Numerics::fast, a.shape[0], a.shape[1]).row_bytes / 16);
  // Values are 16-byte aligned (DualGemm's backends ask for it).
  const bool whole_words = params.tokens.scale_columns % 4 == 0 && params.tokens.row_bytes % 8 == 0;
  const bool whole_scales = a.format != Format::nvfp4 || params.tokens.scales.address % 4 == 0;
  params.whole = whole_words && whole_scales ? 1 : 0;
  return params;
}

WidenTokensParams widen_params(const Tensor& a) {
  WidenTokensParams params{};
  params.tokens = matrix_of(a);
  params.row_blocks = narrow(prepared_tokens(Numerics::exact, a.shape[0], a.shape[1]).row_bytes / token_row_bytes);
  return params;
}

std::uint32_t widen_blocks(const Tensor& a) {
  constexpr std::int64_t elements_per_thread = 8 * widen_parts;
  const std::int64_t elements = prepared_tokens(Numerics::exact, a.shape[0], a.shape[1]).bytes / 2;
  return narrow(ceil_div(elements, elements_per_thread * widen_threads));
}

std::size_t factors_offset(std::int64_t n, std::int64_t k) { return fast::factors_offset(narrow(n), narrow(k)); }

std::size_t packed_bytes(Numerics numerics, std::int64_t n, std::int64_t k) {
  if (numerics == Numerics::fast) {
    return factors_offset(n, k) + std::size_t{output_groups(narrow(n))} * fast::group_factors * sizeof(float);
  }
  return std::size_t{output_groups(narrow(n))} * k_blocks(narrow(k)) * block_bytes;
}

std::uint32_t weight_k_blocks(Numerics numerics, std::int64_t k) {
  return numerics == Numerics::fast ? fast::k_blocks(narrow(k)) : k_blocks(narrow(k));
}

std::uint32_t packing_blocks(Numerics numerics, std::int64_t n, std::int64_t k) {
  return output_groups(narrow(n)) * weight_k_blocks(numerics, k);
}

std::uint32_t row_factor_blocks(std::int64_t n) { return output_groups(narrow(n)) * fast::group_factors / 4; }

PreparedTokens prepared_tokens(Numerics numerics, std::int64_t m, std::int64_t k) {
  PreparedTokens tokens;
  tokens.row_bytes = ceil_div(k, token_elements(numerics)) * static_cast<std::int64_t>(token_row_bytes);
  tokens.factors_offset = round_up(m * tokens.row_bytes, factors_alignment);
  tokens.bytes = numerics == Numerics::fast ? tokens.factors_offset + m * static_cast<std::int64_t>(sizeof(float))
                                            : m * tokens.row_bytes;
  return tokens;
}

machine::TensorMapDescription tokens_map(const Config& config, const Extents& extents, std::uint64_t address,
                                         std::int64_t row_bytes) {
  const std::int64_t elements = token_elements(config.numerics);
  machine::TensorMapDescription map = unboxed_tokens(config, address);
  map.rank = 3;
  map.extent[0] = static_cast<machine::u64>(elements);
  map.extent[1] = static_cast<machine::u64>(extents.m);
  map.extent[2] = static_cast<machine::u64>(ceil_div(extents.k, elements));
  map.stride_bytes[1] = static_cast<machine::u64>(row_bytes);
  map.stride_bytes[2] = token_row_bytes;
  map.box[0] = narrow(elements);
  map.box[1] = narrow(config.block_tokens);
  map.box[2] = narrow(config.blocks_per_slot);
  return map;
}

/// Rows of 16-bit tokens that are no whole blocks begin anywhere in a line of 128 bytes, so the copy engine reads one
/// more for each of them: measured, that costs more than copying them together once, but for the fewest.
Preparation preparation_of(const Config& config, Format tokens, std::int64_t k) {
  constexpr int few_tokens = 8;
  if (config.numerics == Numerics::fast) {
    return Preparation::fold;
  }
  if (tokens == Format::nvfp4) {
    return Preparation::widen;
  }
  return k % block_k != 0 && config.block_tokens > few_tokens ? Preparation::pad : Preparation::none;
}

machine::TensorMapDescription ragged_tokens_map(const Config& config, const Extents& extents, std::uint64_t address,
                                                std::int64_t row_bytes) {
  machine::TensorMapDescription map = unboxed_tokens(config, address);
  map.rank = 2;
  map.extent[0] = static_cast<machine::u64>(extents.k);
  map.extent[1] = static_cast<machine::u64>(extents.m);
  map.stride_bytes[1] = static_cast<machine::u64>(row_bytes);
  map.box[0] = block_k;
  map.box[1] = narrow(config.block_tokens);
  return map;
}

std::uint32_t ragged_slot(const Config& config, std::int64_t k) {
  return k % block_k == 0 ? no_ragged_slot : narrow(k / (std::int64_t{block_k} * config.blocks_per_slot));
}

Params scalars(const Config& config, const Extents& extents, std::int64_t c_row_stride, const Activation& activation) {
  Params params{};
  params.c_row_stride = static_cast<machine::u64>(c_row_stride);
  params.m = narrow(extents.m);
  params.n = narrow(extents.n);
  params.k_blocks = weight_k_blocks(config.numerics, extents.k);
  params.output_groups = output_groups(params.n);
  params.c_wide = extents.n % 8 == 0 && c_row_stride % 8 == 0 ? 1 : 0;
  params.token_tiles = narrow(ceil_div(extents.m, config.block_tokens));
  params.output_tiles = narrow(ceil_div(extents.n, tile_outputs(config)));
  params.result_scale = config.numerics == Numerics::fast ? 1.0F : 1.0F / exact_result_scale;
  params.alpha = activation.alpha;
  params.limit = activation.limit;
  params.up_offset = activation.up_offset;
  return params;
}

std::uint32_t blocks(const Config& config, const Params& params) {
  return params.token_tiles * params.output_tiles * narrow(config.split_k);
}

}  // namespace thresher::strategies::dual_gemm::packed
