#pragma once
/// Values that follow from the members that the configurations of both families of kernels on tcgen05 share.
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/tensor_shape.hpp"
#include "strategies/gemm/device/finish_params.hpp"

namespace thresher::strategies::gemm {

template <class Config>
concept TensorConfig = requires(const Config& c) {
  c.dense;
  c.blocks;
  c.persistent;
};

template <TensorConfig Config>
TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  constexpr u32 min_columns = 16;  // of a pair's product
  return {min_columns, static_cast<u32>(c.block_tokens), static_cast<u32>(c.token_step)};
}

/// The tokens of a slot that each block brings: in a pair half of them.
template <TensorConfig Config>
TH_DEVICE constexpr u32 loaded_tokens(const Config& c) {
  return static_cast<u32>(c.block_tokens / c.blocks);
}

/// Dense: tokens of a tile that one block finishes.
template <TensorConfig Config>
TH_DEVICE constexpr int finished_tokens(const Config& c) {
  return c.block_tokens / c.split_k;
}
/// Dense: those whose sums a thread holds at a time, at most `most`. Both are multiples of 8.
template <TensorConfig Config>
TH_DEVICE constexpr int chunk_tokens(const Config& c, int most) {
  while (finished_tokens(c) % most != 0) {
    most /= 2;
  }
  return most;
}

/// Everything but the bytes of a slot and of the staging, and the columns of tensor memory.
template <TensorConfig Config>
TH_DEVICE constexpr pipeline::TensorShape tensor_shape(const Config& c) {
  const bool persistent = !c.dense || c.persistent;
  return {.group = c.blocks == 2 ? machine::Group::pair : machine::Group::block,
          .stages = c.stages,
          .sums = persistent ? 2 : 1,
          .split_groups = c.split_k,
          .persistent = persistent,
          .profiled = c.profiled,
          .ablation = c.ablation};
}

}  // namespace thresher::strategies::gemm
