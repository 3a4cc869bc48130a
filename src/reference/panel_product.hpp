#pragma once
/// The inner loop of the fast reference: a small block of outputs, vectorised for the CPU it runs on.
#include <cstdint>

namespace thresher::reference {

/// Rows and columns of one block of outputs. Columns are a multiple of every vector length in use.
inline constexpr std::int64_t panel_rows = 6;
inline constexpr std::int64_t panel_columns = 32;

/// sums[row][column] += Σ a[k][row]·b[k][column], K in ascending order. Every output is summed separately, so that the
/// result does not depend on the vector length. a is [k][panel_rows], b [k][panel_columns], sums
/// [panel_rows][panel_columns].
void add_panel_product(const double* a, const double* b, std::int64_t k, double* sums);
void add_panel_product(const float* a, const float* b, std::int64_t k, float* sums);

}  // namespace thresher::reference
