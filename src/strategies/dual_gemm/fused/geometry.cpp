#include "strategies/dual_gemm/fused/geometry.hpp"

#include <algorithm>

#include "core/integers.hpp"
#include "pipeline/staging.hpp"
#include "strategies/dual_gemm/formats.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

constexpr int max_tma_box_rows = 256;

machine::TensorMapDescription map_of(Number number, const Matrix& matrix, std::int64_t rows, std::int64_t columns,
                                     int box_rows, int box_columns, machine::Swizzle swizzle) {
  machine::TensorMapDescription map;
  map.address = matrix.address;
  map.element = element_type(number);
  map.swizzle = swizzle;
  map.rank = 2;
  map.extent[0] = static_cast<std::uint64_t>(columns);
  map.extent[1] = static_cast<std::uint64_t>(rows);
  map.stride_bytes[1] = static_cast<std::uint64_t>(matrix.row_stride * element_bytes(number));
  map.box[0] = static_cast<std::uint32_t>(box_columns);
  map.box[1] = static_cast<std::uint32_t>(box_rows);
  return map;
}

}  // namespace

Geometry geometry(const Config& config, const Extents& extents) {
  const std::int64_t token_tiles = round_up(ceil_div(extents.m, block_tokens(config)), config.multicast);
  const std::int64_t output_tiles = ceil_div(extents.n, config.block_outputs);
  const std::int64_t few_rows = round_up(extents.m, 8);
  return {.token_tiles = static_cast<std::uint32_t>(token_tiles),
          .output_tiles = static_cast<std::uint32_t>(output_tiles),
          .token_rows =
              static_cast<std::uint32_t>(std::min<std::int64_t>({few_rows, block_tokens(config), max_tma_box_rows})),
          .blocks = static_cast<std::uint32_t>(token_tiles * output_tiles * config.split_k)};
}

machine::TensorMapDescription tokens_map(const Config& config, const Extents& extents, const Matrix& a,
                                         const Geometry& geometry) {
  return map_of(config.operand, a, extents.m, extents.k, static_cast<int>(geometry.token_rows), panel_k,
                machine::Swizzle::b128);
}

machine::TensorMapDescription weights_map(const Config& config, const Extents& extents, const Matrix& b) {
  return map_of(config.operand, b, extents.n, extents.k, piece_rows(config), panel_k, machine::Swizzle::b128);
}

machine::TensorMapDescription output_map(const Config& config, const Extents& extents, const Matrix& c) {
  const int panel = pipeline::staging_panel_columns(finished_columns(config));
  return map_of(config.output, c, extents.m, extents.n, 64, panel, pipeline::staging_swizzle(panel));
}

Params scalars(const Config& config, const Extents& extents, const Matrix& c, const Geometry& geometry,
               const Activation& activation) {
  Params params{};
  params.c.address = c.address;
  params.c_row_stride = static_cast<machine::u64>(c.row_stride);
  params.m = static_cast<machine::u32>(extents.m);
  params.n = static_cast<machine::u32>(extents.n);
  params.k = static_cast<machine::u32>(extents.k);
  constexpr std::int64_t wide_bytes = 16;
  const std::int64_t bytes = element_bytes(config.output);
  params.c_wide = static_cast<std::int64_t>(c.address % wide_bytes) == 0 && c.row_stride * bytes % wide_bytes == 0 &&
                          extents.n * bytes % wide_bytes == 0
                      ? 1
                      : 0;
  params.token_tiles = geometry.token_tiles;
  params.output_tiles = geometry.output_tiles;
  params.token_rows = geometry.token_rows;
  params.alpha = activation.alpha;
  params.limit = activation.limit;
  params.up_offset = activation.up_offset;
  return params;
}

}  // namespace thresher::strategies::dual_gemm::fused
