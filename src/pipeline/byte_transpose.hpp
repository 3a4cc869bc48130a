#pragma once
/// Transposes bytes of a warp's fragment.
#include "machine/numbers.hpp"
#include "machine/warp.hpp"

namespace thresher::pipeline {

using namespace machine;

/// Among the four lanes that differ in bits 2 and 3: lane i gets byte i of each lane's word, the first lane's first.
TH_DEVICE u32 transpose_bytes_of_rows(u32 word, u32 lane) {
  const u32 other = warp::shuffle_xor(word, 4);
  const u32 pairs = bits::permute(word, other, (lane & 4U) != 0 ? 0x3715U : 0x6240U);
  const u32 others = warp::shuffle_xor(pairs, 8);
  return bits::permute(pairs, others, (lane & 8U) != 0 ? 0x3276U : 0x5410U);
}

}  // namespace thresher::pipeline
