#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/integers.hpp"
#include "strategies/gemm/wgmma/config.hpp"

namespace thresher::strategies::gemm::wgmma {

/// A tile, and how its blocks share a multiprocessor; the ring takes what is left of its memory, for up to 1024
/// experts.
struct TileShape {
  int math_warpgroups = 2;
  int block_tokens = 128;
  int block_outputs = 64;  ///< rows
  int stages = 4;
  int blocks_resident = 1;
  bool by_turns = false;
};
constexpr TileShape rows_tile(int tokens, int outputs, int stages, bool by_turns = true) {
  return {.block_tokens = tokens, .block_outputs = outputs, .stages = stages, .by_turns = by_turns};
}
constexpr TileShape columns_tile(int math_warpgroups, int tokens, int stages, int blocks_resident,
                                 bool by_turns = false) {
  return {.math_warpgroups = math_warpgroups,
          .block_tokens = tokens,
          .stages = stages,
          .blocks_resident = blocks_resident,
          .by_turns = by_turns};
}

/// Slots are 128 bytes wide.
constexpr Config with_tile(Config config, const TileShape& tile) {
  config.math_warpgroups = tile.math_warpgroups;
  config.by_turns = tile.by_turns;
  config.block_tokens = tile.block_tokens;
  config.block_outputs = tile.block_outputs;
  config.block_k = 128 / element_bytes(config.operand);
  config.stages = tile.stages;
  config.blocks_resident = tile.blocks_resident;
  const int registers = sum_registers(config);
  if (config.tokens_are_rows) {
    if (registers > 128 || config.output_scaling == Scaling::block) {
      config.loader_registers = 40;
      config.math_registers = 232;
    }
  } else if (registers >= 128 && tile.blocks_resident == 1) {
    // 192 sums leave few registers for scales.
    config.loader_registers = promotes(config) ? 24 : 40;
    config.math_registers = promotes(config) ? 240 : 232;
  }
  return config;
}

/// Several small configurations share these.
constexpr Config of_rows(Config config) {
  config.tokens_are_rows = true;
  return config;
}
constexpr Config fp8(Scaling tokens, Scaling weights, Config config) {
  config.operand = Number::e4m3;
  config.token_scaling = tokens;
  config.weight_scaling = weights;
  return config;
}
constexpr Config with_registers(int loader, int math, Config config) {
  config.loader_registers = loader;
  config.math_registers = math;
  return config;
}

namespace rows {

inline constexpr std::array tile_shapes{rows_tile(128, 64, 6), rows_tile(128, 96, 5), rows_tile(192, 64, 5)};
/// For FP8 whose sums are promoted, and take twice the registers; warpgroups that share a tile hide their additions.
inline constexpr std::array promoted_tile_shapes{rows_tile(128, 48, 7), rows_tile(64, 96, 6),
                                                 rows_tile(128, 64, 6, false), rows_tile(128, 96, 5, false),
                                                 rows_tile(128, 128, 4, false)};

/// For outputs that are quantized in blocks: a tile has all that share a scale.
inline constexpr std::array gate_up_block_tile_shapes{rows_tile(64, 128, 5)};
inline constexpr std::array block_tile_shapes{rows_tile(128, 64, 6)};
inline constexpr std::array promoted_gate_up_block_tile_shapes{rows_tile(128, 128, 4, false)};
inline constexpr std::array promoted_block_tile_shapes{rows_tile(64, 64, 8), rows_tile(128, 64, 6, false)};

inline std::span<const TileShape> block_shapes_for(const Config& config) {
  if (config.matrices == 2) {
    return promotes(config) ? promoted_gate_up_block_tile_shapes
                            : std::span<const TileShape>(gate_up_block_tile_shapes);
  }
  return promotes(config) ? promoted_block_tile_shapes : std::span<const TileShape>(block_tile_shapes);
}

inline std::span<const TileShape> shapes_for(const Config& config) {
  if (config.output_scaling == Scaling::block) {
    return block_shapes_for(config);
  }
  return promotes(config) ? std::span<const TileShape>(promoted_tile_shapes) : tile_shapes;
}

/// Small tiles, so that a few groups of rows have many of them; each knob is set somewhere.
inline constexpr std::array small_config_list{
    of_rows({.by_turns = true, .block_tokens = 128, .block_outputs = 32, .stages = 3}),
    of_rows({.operand = Number::fp16,
             .output = Number::fp16,
             .activation = ActivationCode::swiglu_clamped,
             .bias = true,
             .row_weights = true,
             .math_warpgroups = 3,
             .by_turns = true,
             .block_tokens = 64,
             .block_outputs = 24,
             .block_k = 128,
             .stages = 2}),
    of_rows(with_registers(40, 232,
                           {.output = Number::fp32,
                            .matrices = 1,
                            .bias = true,
                            .gathered = true,
                            .by_turns = true,
                            .block_tokens = 128,
                            .block_outputs = 16,
                            .block_k = 32,
                            .stages = 3,
                            .dependent_launch = false})),
    of_rows(fp8(Scaling::row, Scaling::row,
                {.bias = true,
                 .gathered = true,
                 .by_turns = true,
                 .block_tokens = 128,
                 .block_outputs = 16,
                 .block_k = 128,
                 .stages = 3})),
    of_rows(with_registers(40, 232,
                           fp8(Scaling::block, Scaling::block,
                               {.output = Number::fp16,
                                .activation = ActivationCode::swiglu_clamped,
                                .row_weights = true,
                                .block_tokens = 128,
                                .block_outputs = 96,
                                .block_k = 128,
                                .stages = 2}))),
    of_rows(fp8(Scaling::block, Scaling::block,
                {.output = Number::fp32,
                 .matrices = 1,
                 .gathered = true,
                 .math_warpgroups = 3,
                 .by_turns = true,
                 .block_tokens = 64,
                 .block_outputs = 40,
                 .block_k = 64,
                 .stages = 4})),
    of_rows(fp8(Scaling::tensor, Scaling::block,
                {.output = Number::fp32, .block_tokens = 128, .block_outputs = 32, .block_k = 128, .stages = 3})),
    of_rows(
        fp8(Scaling::block, Scaling::tensor,
            {.matrices = 1, .by_turns = true, .block_tokens = 64, .block_outputs = 16, .block_k = 128, .stages = 2})),
    of_rows(fp8(Scaling::tensor, Scaling::row,
                {.numerics = Numerics::fast,
                 .by_turns = true,
                 .block_tokens = 128,
                 .block_outputs = 24,
                 .block_k = 256,
                 .stages = 2})),
    of_rows(with_registers(40, 232,
                           {.output = Number::e4m3,
                            .output_scaling = Scaling::block,
                            .matrices = 1,
                            .bias = true,
                            .by_turns = true,
                            .block_tokens = 128,
                            .block_outputs = 64,
                            .stages = 2})),
    of_rows({.output = Number::e4m3,
             .output_scaling = Scaling::block,
             .gathered = true,
             .by_turns = true,
             .block_tokens = 64,
             .block_outputs = 128,
             .stages = 2}),
    of_rows(fp8(Scaling::row, Scaling::row,
                {.output = Number::e4m3,
                 .output_scaling = Scaling::tensor,
                 .row_weights = true,
                 .by_turns = true,
                 .block_tokens = 64,
                 .block_outputs = 24,
                 .block_k = 128,
                 .stages = 2})),
    of_rows(with_registers(40, 232,
                           fp8(Scaling::block, Scaling::block,
                               {.output = Number::e4m3,
                                .output_scaling = Scaling::block,
                                .block_tokens = 128,
                                .block_outputs = 128,
                                .block_k = 128,
                                .stages = 2}))),
    of_rows(with_registers(40, 232,
                           fp8(Scaling::block, Scaling::block,
                               {.bias = true,
                                .row_weights = true,
                                .block_tokens = 128,
                                .block_outputs = 104,
                                .block_k = 128,
                                .stages = 2}))),
    of_rows(with_registers(40, 232,
                           fp8(Scaling::row, Scaling::row,
                               {.output = Number::fp32,
                                .matrices = 1,
                                .gathered = true,
                                .by_turns = true,
                                .block_tokens = 128,
                                .block_outputs = 56,
                                .block_k = 128,
                                .stages = 2}))),
};

}  // namespace rows

namespace columns {

inline constexpr std::array tile_shapes{
    columns_tile(2, 16, 6, 1),        columns_tile(1, 16, 5, 2),        columns_tile(2, 64, 5, 1),
    columns_tile(1, 64, 4, 2),        columns_tile(2, 128, 4, 1),       columns_tile(2, 160, 4, 1),
    columns_tile(2, 128, 6, 1, true), columns_tile(2, 192, 5, 1, true),
};
/// For FP8 whose sums are promoted, and take twice the registers.
inline constexpr std::array promoted_tile_shapes{
    columns_tile(2, 16, 6, 1),       columns_tile(1, 16, 5, 2), columns_tile(2, 64, 5, 1),
    columns_tile(1, 64, 4, 2),       columns_tile(2, 96, 4, 1), columns_tile(2, 64, 8, 1, true),
    columns_tile(2, 96, 7, 1, true),
};

inline std::span<const TileShape> shapes_for(const Config& config) {
  return promotes(config) ? std::span<const TileShape>(promoted_tile_shapes) : tile_shapes;
}

/// How the blocks of static tiles lie on the card. Measured with weights from memory
/// (measurements/static_tiles_h200_2026-11-29.txt.xz): more bytes in flight than these rings hold slow memory down.
/// Blocks on half of the multiprocessors leave the others to the next launch, whose weights then come early.
struct StaticLayout {
  int math_warpgroups = 1;
  int blocks_resident = 1;
  int max_stages = 8;
  int min_blocks = 1;
  int max_blocks = 1;
  int min_split = 1;
  int max_split = pipeline::max_split_blocks;
  bool takes_rounds = false;  ///< of more tiles than max_blocks

  [[nodiscard]] constexpr int split_of(std::int64_t tiles) const {
    const std::int64_t split = std::min<std::int64_t>(max_split, max_blocks / tiles);
    return static_cast<int>(takes_rounds ? std::max<std::int64_t>(1, split) : split);
  }
  /// Few tiles have as many blocks as a cluster can give them, although they are not enough.
  [[nodiscard]] constexpr bool takes(std::int64_t tiles) const {
    const int split = split_of(tiles);
    return split >= min_split && (split == pipeline::max_split_blocks || tiles * split >= min_blocks);
  }
};
inline constexpr std::array static_layouts{
    StaticLayout{.min_blocks = 54, .max_blocks = 66}, StaticLayout{.min_blocks = 88, .max_blocks = 132, .max_split = 2},
    StaticLayout{.blocks_resident = 2, .max_stages = 6, .min_blocks = 88, .max_blocks = 132}};
/// The same for tiles of 128 tokens, whose reads from L2 need more multiprocessors.
inline constexpr std::array wide_static_layouts{StaticLayout{.min_blocks = 120, .max_blocks = 132, .max_split = 2}};
/// For FP8 whose sums are promoted: two blocks of a multiprocessor multiply and add in turn
/// (measurements/fp8_tiles_h200_2026-11-29.json.xz).
inline constexpr std::array promoted_static_layouts{
    StaticLayout{.min_blocks = 54, .max_blocks = 66}, StaticLayout{.min_blocks = 88, .max_blocks = 132, .max_split = 2},
    StaticLayout{.blocks_resident = 2, .max_stages = 6, .min_blocks = 88, .max_blocks = 132},
    StaticLayout{
        .blocks_resident = 2, .max_stages = 6, .min_blocks = 128, .max_blocks = 192, .min_split = 4, .max_split = 6},
    StaticLayout{.blocks_resident = 2, .max_stages = 6, .min_blocks = 200, .max_blocks = 264, .max_split = 3}};
/// Two warpgroups make all outputs that share a scale.
inline constexpr std::array quantized_static_layouts{
    StaticLayout{.math_warpgroups = 2, .max_stages = 6, .min_blocks = 88, .max_blocks = 132, .takes_rounds = true}};

inline std::span<const StaticLayout> static_layouts_for(const Config& config, int tokens) {
  if (config.output_scaling == Scaling::block) {
    return quantized_static_layouts;
  }
  if (promotes(config)) {
    return promoted_static_layouts;
  }
  return tokens > 64 ? wide_static_layouts : std::span<const StaticLayout>(static_layouts);
}

/// A block's one tile, in a cluster that divides K.
constexpr Config with_static_tile(const Config& config, int tokens, const StaticLayout& layout, int split) {
  Config found = with_tile(config, columns_tile(layout.math_warpgroups, tokens, 1, layout.blocks_resident));
  found.static_tiles = true;
  found.split_k = split;
  if (promotes(found) && layout.blocks_resident == 2 && sum_registers(found) >= 128) {
    found.loader_registers = 40;
    found.math_registers = 216;
  }
  constexpr int block_memory = 225 * 1024;
  found.stages = std::min(layout.max_stages, block_memory / layout.blocks_resident / shape_of(found).slot_bytes);
  return found;
}

/// The narrowest tile that holds `rows`, or as many of the widest as there must be, with K divided among as many blocks
/// as a layout takes.
inline std::vector<Config> in_static_tiles(const Config& config, std::int64_t rows, std::int64_t n) {
  const int widest = promotes(config) ? 64 : 128;
  int tokens = 16;
  while (tokens < widest && tokens < rows) {
    tokens *= 2;
  }
  std::vector<Config> found;
  for (const StaticLayout& layout : static_layouts_for(config, tokens)) {
    const Config whole = with_static_tile(config, tokens, layout, 1);
    const std::int64_t tiles = ceil_div(rows, std::int64_t{tokens}) * ceil_div(n, std::int64_t{tile_outputs(whole)});
    if (layout.takes(tiles)) {
      found.push_back(with_static_tile(config, tokens, layout, layout.split_of(tiles)));
    }
  }
  return found;
}

/// The narrowest tile for as many groups as have rows, where its layouts of static tiles divide K. None in FP8, where
/// whole layers gained nothing by it.
inline std::vector<Config> in_split_tiles(const Config& config, double groups, std::int64_t n) {
  constexpr int tokens = 16;
  std::vector<Config> found;
  if (config.operand == Number::e4m3) {
    return found;
  }
  for (const StaticLayout& layout : static_layouts_for(config, tokens)) {
    Config tile = with_static_tile(config, tokens, layout, 1);
    const auto tiles = static_cast<std::int64_t>(
        std::ceil(groups * static_cast<double>(ceil_div(n, std::int64_t{tile_outputs(tile)}))));
    tile.static_tiles = false;
    tile.split_k = layout.split_of(tiles);
    if (layout.takes(tiles) && tile.split_k > 1) {
      found.push_back(tile);
    }
  }
  return found;
}

/// Tiles that take the compiler so long that they are compiled where they are used.
constexpr bool is_large(const TileShape& tile) { return tile.block_tokens > 128 || tile.by_turns; }

/// Both products of a layer in BF16, with the tiles above but for large ones. FP16 and FP8 are compiled where they are
/// used.
inline constexpr auto default_config_list = [] {
  constexpr auto count =
      tile_shapes.size() - static_cast<std::size_t>(std::count_if(tile_shapes.begin(), tile_shapes.end(), is_large));
  std::array<Config, 2 * count> configs;
  std::size_t next = 0;
  for (const int matrices : {2, 1}) {
    for (const TileShape& tile : tile_shapes) {
      if (!is_large(tile)) {
        configs[next++] = with_tile({.operand = Number::bf16, .output = Number::bf16, .matrices = matrices}, tile);
      }
    }
  }
  return configs;
}();

/// Small tiles, so that a few groups of rows have many of them; each knob is set somewhere.
inline constexpr std::array small_config_list{
    Config{.math_warpgroups = 1, .block_tokens = 32, .stages = 3},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .math_warpgroups = 1,
           .block_tokens = 8,
           .stages = 2},
    Config{.output = Number::fp32,
           .matrices = 1,
           .activation = ActivationCode::relu2,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .stages = 3,
           .dependent_launch = false},
    Config{.operand = Number::fp16,
           .output = Number::bf16,
           .activation = ActivationCode::gelu_tanh,
           .gathered = true,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .block_k = 128,
           .stages = 2},
    // Groups of more than a tile are cut evenly, to widths that end in part of a box.
    Config{.math_warpgroups = 1, .block_tokens = 128, .token_step = 16, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 2,
           .by_turns = true,
           .block_tokens = 32,
           .block_k = 32,
           .stages = 3},
    with_registers(
        40, 232,
        {.matrices = 1, .math_warpgroups = 2, .block_tokens = 128, .token_step = 0, .stages = 2, .blocks_resident = 1}),
    fp8(Scaling::tensor, Scaling::tensor, {.math_warpgroups = 1, .block_tokens = 32, .block_k = 128, .stages = 2}),
    fp8(Scaling::row, Scaling::row,
        {.output = Number::fp16,
         .activation = ActivationCode::swiglu_clamped,
         .bias = true,
         .row_weights = true,
         .gathered = true,
         .math_warpgroups = 2,
         .block_tokens = 16,
         .block_k = 128,
         .stages = 3}),
    fp8(Scaling::block, Scaling::block, {.math_warpgroups = 2, .block_tokens = 64, .block_k = 128, .stages = 3}),
    with_registers(24, 240,
                   fp8(Scaling::block, Scaling::block,
                       {.output = Number::fp32,
                        .matrices = 1,
                        .bias = true,
                        .gathered = true,
                        .math_warpgroups = 2,
                        .by_turns = true,
                        .block_tokens = 96,
                        .block_k = 128,
                        .stages = 2})),
    fp8(Scaling::row, Scaling::block,
        {.row_weights = true, .math_warpgroups = 1, .block_tokens = 8, .block_k = 64, .stages = 4}),
    fp8(Scaling::block, Scaling::row,
        {.output = Number::fp16, .matrices = 1, .math_warpgroups = 1, .block_tokens = 16, .block_k = 128, .stages = 2}),
    fp8(Scaling::row, Scaling::tensor,
        {.numerics = Numerics::fast,
         .activation = ActivationCode::gelu_tanh,
         .math_warpgroups = 1,
         .block_tokens = 32,
         .block_k = 256,
         .stages = 2}),
    fp8(Scaling::tensor, Scaling::row,
        {.numerics = Numerics::fast,
         .matrices = 1,
         .row_weights = true,
         .math_warpgroups = 2,
         .by_turns = true,
         .block_tokens = 64,
         .block_k = 128,
         .stages = 3}),
    Config{.output = Number::e4m3,
           .output_scaling = Scaling::block,
           .bias = true,
           .row_weights = true,
           .gathered = true,
           .math_warpgroups = 2,
           .block_tokens = 64,
           .stages = 3},
    Config{.matrices = 1, .bias = true, .math_warpgroups = 1, .block_tokens = 16, .stages = 3, .static_tiles = true},
    Config{.matrices = 1, .math_warpgroups = 2, .block_tokens = 16, .stages = 2, .static_tiles = true, .split_k = 4},
    Config{.operand = Number::fp16,
           .output = Number::fp32,
           .matrices = 1,
           .bias = true,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .stages = 2,
           .blocks_resident = 2,
           .static_tiles = true,
           .split_k = 8},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .bias = true,
           .gathered = true,
           .math_warpgroups = 2,
           .block_tokens = 8,
           .stages = 2,
           .split_k = 8},
    fp8(Scaling::block, Scaling::block,
        {.output = Number::e4m3,
         .output_scaling = Scaling::block,
         .math_warpgroups = 2,
         .block_tokens = 16,
         .block_k = 128,
         .stages = 2,
         .split_k = 2}),
    fp8(Scaling::row, Scaling::row,
        {.matrices = 1,
         .math_warpgroups = 1,
         .block_tokens = 8,
         .block_k = 128,
         .stages = 3,
         .static_tiles = true,
         .split_k = 8}),
    fp8(Scaling::block, Scaling::block,
        {.output = Number::fp16,
         .activation = ActivationCode::situ,
         .math_warpgroups = 1,
         .block_tokens = 32,
         .block_k = 128,
         .stages = 2,
         .static_tiles = true,
         .split_k = 2}),
    fp8(Scaling::block, Scaling::block,
        {.output = Number::e4m3,
         .output_scaling = Scaling::block,
         .matrices = 1,
         .math_warpgroups = 4,
         .block_tokens = 8,
         .block_k = 128,
         .stages = 3}),
    with_registers(24, 240,
                   fp8(Scaling::row, Scaling::row,
                       {.output = Number::e4m3,
                        .output_scaling = Scaling::tensor,
                        .math_warpgroups = 2,
                        .by_turns = true,
                        .block_tokens = 96,
                        .block_k = 128,
                        .stages = 2})),
};

}  // namespace columns

inline std::span<const TileShape> shapes_for(const Config& config) {
  return config.tokens_are_rows ? rows::shapes_for(config) : columns::shapes_for(config);
}

/// Tells whether groups of up to `rows` rows may have a whole tile. In columns, no tile is for more rows than there can
/// be, and the smallest is not for many rows.
constexpr bool suits(const TileShape& tile, const Config& config, std::int64_t rows) {
  if (config.tokens_are_rows) {
    return rows >= tile.block_tokens;
  }
  const std::int64_t too_few = tile.block_tokens > 128 ? 128 : tile.block_tokens > 64 ? 64 : 16;
  return rows > 16 ? tile.block_tokens > 16 && rows > too_few : tile.block_tokens == 16;
}

/// `config`, which says what is multiplied and how it is summed, in each tile that suits.
inline std::vector<Config> in_tiles(const Config& config, std::int64_t rows) {
  std::vector<Config> found;
  for (const TileShape& tile : shapes_for(config)) {
    if (suits(tile, config, rows)) {
      found.push_back(with_tile(config, tile));
    }
  }
  return found;
}

}  // namespace thresher::strategies::gemm::wgmma
