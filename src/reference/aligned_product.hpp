#pragma once
/// Products of 8-bit operands, accumulated as Hopper's tensor cores do.
#include <cstdint>

namespace thresher::reference {

/// Elements of K that tensor cores add at a time.
inline constexpr std::int64_t aligned_elements = 32;
/// Bits of an accumulator behind its leading one.
inline constexpr int aligned_fraction_bits = 13;

/// sums[row][column] += Σ a[k][row]·b[k][column] over `k` <= aligned_elements, laid out as in panel_product.hpp. Each
/// product and the previous sum are truncated towards zero behind the thirteenth bit below the largest of their
/// exponents. A product's exponent is the sum of its factors'. The truncated values are added exactly, and the new sum
/// is truncated to fourteen bits. The sums of e4m3 operands on an H200 are these, bit for bit
/// (measurements/fp8_unit_h200_2026-11-23.txt, which a test reads). Operands that include their scales are aligned
/// slightly differently than the FP8 values alone.
void add_aligned_product(const double* a, const double* b, std::int64_t k, double* sums);
/// The same for one row: `a` is [k], `b` as there, `sums` [panel_columns]. A value that is not finite affects only its
/// column.
void add_aligned_row(const double* a, const double* b, std::int64_t k, double* sums);

}  // namespace thresher::reference
