#pragma once
/// The parameter of kernels that copy rows of A to where TMA can load them. Strides and addresses are multiples of 16
/// bytes.
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

}  // namespace thresher::strategies::gemm
