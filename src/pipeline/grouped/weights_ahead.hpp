#pragma once
/// Weights of the product behind a launch, which its blocks prefetch into the L2 cache. Memory would else be idle while
/// one launch ends and the next one begins.
#include "machine/global.hpp"
#include "machine/tma.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// Together 16 MiB, a third of the L2 cache of an H200.
inline constexpr u32 max_prefetching_blocks = 128;
inline constexpr u32 prefetched_block_bytes = 128 * 1024;

/// One matrix or two of each expert, which no launch writes. Part of the kernel's parameter.
struct WeightsAhead {
  Global<u8> gate;        ///< null: nothing is prefetched
  Global<u8> up;          ///< a second matrix that lies alike; null without one
  u64 expert_stride = 0;  ///< bytes, a multiple of 16, as all numbers of bytes are
  u32 expert_bytes = 0;   ///< of one matrix
  u32 piece_bytes = 0;    ///< that a block prefetches of each matrix

  TH_DEVICE bool is_none() const { return gate.is_null(); }
  /// Pieces of an expert.
  TH_DEVICE constexpr u32 pieces() const { return (expert_bytes + piece_bytes - 1) / piece_bytes; }

  /// One thread prefetches a piece of an expert's matrices, in instructions between which TMA serves other blocks.
  TH_DEVICE void prefetch(u32 expert, u32 piece) const {
    constexpr u32 max_bytes = 16 * 1024;
    const u32 first = piece * piece_bytes;
    const u32 rest = expert_bytes - first;
    const u32 bytes = rest < piece_bytes ? rest : piece_bytes;
    TH_NO_UNROLL
    for (u32 at = 0; at < bytes; at += max_bytes) {
      const i64 offset = static_cast<i64>(expert * expert_stride + first + at);
      const u32 count = bytes - at < max_bytes ? bytes - at : max_bytes;
      tma::prefetch_bulk(gate.offset(offset), count);
      if (!up.is_null()) {
        tma::prefetch_bulk(up.offset(offset), count);
      }
    }
  }
};

}  // namespace thresher::pipeline
