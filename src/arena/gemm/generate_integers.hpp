#pragma once
/// Operands of a dual GEMM for which every step is exact.
#include "arena/data/host_tensor.hpp"
#include "arena/random.hpp"

namespace thresher::arena {

/// Fills "a", "b1" or "b2" (told apart by name). Rows of a have few elements that are not 0, all one positive integer;
/// b1 holds 1 and 2, so that every gate is an integer of at least integer_gate_floor; b2 holds -2 … 2. Products and
/// sums stay under 2²⁴, so float32 in any order is exact. Scales are powers of two that differ.
[[nodiscard]] HostTensor integer_matrix(HostTensor tensor, Random& random);

}  // namespace thresher::arena
