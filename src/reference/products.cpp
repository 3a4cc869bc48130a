#include "reference/products.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "core/integers.hpp"
#include "formats/decode.hpp"
#include "formats/elements.hpp"
#include "reference/aligned_product.hpp"
#include "reference/panel_product.hpp"
#include "reference/parallel.hpp"

namespace thresher::reference {
namespace {

/// Elements of K that one panel of each operand keeps in the L1 cache.
constexpr std::int64_t k_block = 128;
/// Rows of A decoded at a time, which bounds the memory.
constexpr std::int64_t rows_at_once = 85 * panel_rows;

/// Some rows of a matrix, decoded, as panels [panel][k][width], padded with rows of zeros.
template <typename Real>
class Panels {
 public:
  Panels(const Tensor& matrix, std::span<const std::int64_t> rows, std::int64_t width)
      : k_(matrix.shape[1]), width_(width) {
    values_.resize(static_cast<std::size_t>(round_up(std::ssize(rows), width) * k_), Real(0));
    std::vector<Real> decoded(static_cast<std::size_t>(k_));
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
      formats::decode_row(matrix, rows[static_cast<std::size_t>(i)], decoded);
      Real* lane = values_.data() + i / width * k_ * width + i % width;
      for (std::int64_t k = 0; k < k_; ++k) {
        lane[k * width] = decoded[static_cast<std::size_t>(k)];
      }
    }
  }

  [[nodiscard]] const Real* at(std::int64_t panel, std::int64_t k) const {
    return values_.data() + (panel * k_ + k) * width_;
  }

 private:
  std::int64_t k_;
  std::int64_t width_;
  std::vector<Real> values_;
};

/// Keeps the sign, the exponent and `fraction_bits` bits of fraction.
template <int fraction_bits>
void truncate(double* sums, std::int64_t count) {
  constexpr std::uint64_t kept = ~((std::uint64_t{1} << (52 - fraction_bits)) - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(sums[i]) & kept);
  }
}

template <std::int64_t at_once, int fraction_bits>
void add_truncating(const double* a, const double* b, std::int64_t k, double* sums) {
  for (std::int64_t start = 0; start < k; start += at_once) {
    add_panel_product(a + start * panel_rows, b + start * panel_columns, std::min(at_once, k - start), sums);
    truncate<fraction_bits>(sums, panel_rows * panel_columns);
  }
}

void add_aligning(const double* a, const double* b, std::int64_t k, double* sums) {
  for (std::int64_t start = 0; start < k; start += aligned_elements) {
    add_aligned_product(a + start * panel_rows, b + start * panel_columns, std::min(aligned_elements, k - start), sums);
  }
}

/// Accumulates in few bits within one block of K, and in float32 across blocks.
void add_promoting(const double* a, const double* b, std::int64_t k, double* sums) {
  std::array<double, panel_rows * panel_columns> block{};
  add_aligning(a, b, k, block.data());
  for (std::size_t i = 0; i < block.size(); ++i) {
    sums[i] = static_cast<double>(static_cast<float>(sums[i]) + static_cast<float>(block[i]));
  }
}

template <typename Real>
using AddProduct = void (*)(const Real* a, const Real* b, std::int64_t k, Real* sums);

/// Row-major [panels of A, panel_rows, panel_columns]: all of A times one panel of B.
template <typename Real>
std::vector<Real> multiply(const Panels<Real>& a, std::int64_t a_panels, const Panels<Real>& b, std::int64_t k,
                           AddProduct<Real> add) {
  std::vector<Real> sums(static_cast<std::size_t>(a_panels * panel_rows * panel_columns), Real(0));
  for (std::int64_t start = 0; start < k; start += k_block) {
    const std::int64_t depth = std::min(k_block, k - start);
    for (std::int64_t panel = 0; panel < a_panels; ++panel) {
      add(a.at(panel, start), b.at(0, start), depth, sums.data() + panel * panel_rows * panel_columns);
    }
  }
  return sums;
}

/// `Scalar` is the precision of the multiplication by global scales.
template <typename Scalar, typename Real>
void products_with(const SomeRows& a, const SomeRows& b1_gate, const SomeRows* b2_up, int threads,
                   const OutputSink& sink, AddProduct<Real> add) {
  const auto scaled = [&a](Real sum, const SomeRows& b) {
    return static_cast<Scalar>(sum) * static_cast<Scalar>(formats::global_scale(a.matrix)) *
           static_cast<Scalar>(formats::global_scale(b.matrix));
  };
  const std::int64_t k = a.matrix.shape[1];
  const std::size_t all_columns = b1_gate.rows.size();
  const std::int64_t column_panels = round_up(static_cast<std::int64_t>(all_columns), panel_columns) / panel_columns;
  for (std::size_t first_row = 0; first_row < a.rows.size(); first_row += rows_at_once) {
    const std::size_t row_count = std::min(a.rows.size() - first_row, std::size_t{rows_at_once});
    const Panels<Real> a_panels(a.matrix, a.rows.subspan(first_row, row_count), panel_rows);
    const std::int64_t row_panels = round_up(static_cast<std::int64_t>(row_count), panel_rows) / panel_rows;
    parallel_for(column_panels, threads, [&](std::int64_t panel) {
      const auto first_column = static_cast<std::size_t>(panel * panel_columns);
      const std::size_t column_count = std::min(all_columns - first_column, std::size_t{panel_columns});
      const auto sums_of = [&](const SomeRows& b) {
        const Panels<Real> own(b.matrix, b.rows.subspan(first_column, column_count), panel_columns);
        return multiply(a_panels, row_panels, own, k, add);
      };
      const std::vector<Real> gates = sums_of(b1_gate);
      const std::vector<Real> ups = b2_up == nullptr ? std::vector<Real>{} : sums_of(*b2_up);
      for (std::size_t row = 0; row < row_count; ++row) {
        for (std::size_t column = 0; column < column_count; ++column) {
          const std::size_t at = row * panel_columns + column;
          sink(first_row + row, first_column + column, scaled(gates[at], b1_gate),
               b2_up == nullptr ? 0.0 : static_cast<double>(scaled(ups[at], *b2_up)));
        }
      }
    });
  }
}

}  // namespace

void products(const SomeRows& a, const SomeRows& b1_gate, const SomeRows* b2_up, Accumulation accumulation, int threads,
              const OutputSink& sink) {
  switch (accumulation) {
    case Accumulation::float64:
      return products_with<double, double>(a, b1_gate, b2_up, threads, sink, add_panel_product);
    case Accumulation::float32: return products_with<float, float>(a, b1_gate, b2_up, threads, sink, add_panel_product);
    case Accumulation::float32_truncated:
      return products_with<float, double>(a, b1_gate, b2_up, threads, sink, add_truncating<16, 23>);
    case Accumulation::float14_truncated:
      return products_with<float, double>(a, b1_gate, b2_up, threads, sink, add_aligning);
    case Accumulation::float14_promoted:
      return products_with<float, double>(a, b1_gate, b2_up, threads, sink, add_promoting);
  }
}

void products(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Region& region,
              Accumulation accumulation, int threads, const OutputSink& sink) {
  const SomeRows up{b2_up, region.columns};
  products({a, region.rows}, {b1_gate, region.columns}, &up, accumulation, threads, sink);
}

}  // namespace thresher::reference
