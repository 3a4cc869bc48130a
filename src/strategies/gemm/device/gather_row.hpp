#pragma once
/// Copies one row of A to where TMA can load it.
#include "machine/global.hpp"

namespace thresher::strategies::gemm {

struct GatherParams {
  machine::Global<machine::u8> from;  ///< rows of row_bytes, from_stride bytes apart
  machine::Global<machine::u8> to;    ///< the same, to_stride bytes apart
  machine::Global<machine::i32> row_ids;
  machine::u64 from_stride = 0;
  machine::u64 to_stride = 0;
  machine::u32 ids_end = 0;  ///< ids from there on, as unsigned numbers, are of no row
  machine::u32 divisor = 1;
  machine::u32 row_bytes = 0;  ///< a multiple of 2
};

/// Which of the threads that share a row one is.
struct RowThread {
  machine::u32 index = 0;
  machine::u32 count = 1;
};

/// Copies what `own` has of row `row`, whose id is below ids_end. Strides and addresses are multiples of 16 bytes.
TH_DEVICE void gather_row(const GatherParams& params, machine::u32 row, machine::u32 id, RowThread own) {
  using namespace machine;
  using Words = Vector<u32, 4>;
  const Global<u8> from = params.from.offset(static_cast<i64>(id / params.divisor * params.from_stride));
  const Global<u8> to = params.to.offset(static_cast<i64>(row * params.to_stride));
  const u32 chunks = params.row_bytes / 16;
  for (u32 chunk = own.index; chunk < chunks; chunk += 2 * own.count) {  // two are on their way at once
    const u32 second = chunk + own.count;
    const Words words = from.as<Words>().load(chunk);
    const Words others = second < chunks ? from.as<Words>().load(second) : words;
    to.as<Words>().store(chunk, words);
    if (second < chunks) {
      to.as<Words>().store(second, others);
    }
  }
  for (u32 at = chunks * 8 + own.index; at < params.row_bytes / 2; at += own.count) {
    to.as<u16>().store(at, from.as<u16>().load(at));
  }
}

}  // namespace thresher::strategies::gemm
