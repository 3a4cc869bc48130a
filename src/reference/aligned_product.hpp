#pragma once
/// Products of 8-bit operands as the matrix unit of a Hopper GPU sums them.
#include <cstdint>

namespace thresher::reference {

/// Elements of K that the unit adds at a time.
inline constexpr std::int64_t aligned_elements = 32;
/// Bits of a sum behind its leading one.
inline constexpr int aligned_fraction_bits = 13;

/// sums[row][column] += Σ a[k][row]·b[k][column] over `k` <= aligned_elements, laid out as in panel_product.hpp: each
/// product and the sum so far are cut off, towards zero, behind the thirteenth bit below the largest of their exponents
/// (a product's is the sum of its factors'), what is left is added exactly, and the new sum cut off to fourteen bits.
/// The sums of e4m3 operands on an H200 are these, bit for bit (measurements/fp8_unit_h200_2026-11-23.txt, which a test
/// reads). Operands that scales are multiplied into are aligned a little differently than the codes alone would be.
void add_aligned_product(const double* a, const double* b, std::int64_t k, double* sums);
/// The same of one row: `a` is [k], `b` as there, `sums` [panel_columns]. What is not finite stays in its column.
void add_aligned_row(const double* a, const double* b, std::int64_t k, double* sums);

}  // namespace thresher::reference
