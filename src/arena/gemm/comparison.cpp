#include "arena/gemm/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "formats/elements.hpp"
#include "formats/scales.hpp"
#include "reference/output_format.hpp"
#include "reference/parallel.hpp"

namespace thresher::arena {

using reference::Rule;

namespace {

constexpr std::int64_t tile_side = 64;
/// The error of rounding to e4m3 twice, in the norm of many values.
constexpr double output_quantization_error = 0.05;

/// The dynamic scale of an element of an FP8 output; 1 elsewhere.
double found_scale(const Tensor& c, std::int64_t row, std::int64_t column) {
  return format_traits(c.format).has_scales() ? formats::fp8_scale(c, row, column) : 1.0;
}

}  // namespace

double distance(const std::vector<double>& values, const std::vector<double>& exact) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && std::isfinite(exact[i])) {
      difference += std::pow(values[i] - exact[i], 2);
      norm += std::pow(exact[i], 2);
    }
  }
  return norm > 0 ? std::sqrt(difference / norm) : 0;
}

/// The largest difference of two right computations.
double OutputComparison::reach(double value, double scale) const {
  if (format_traits(out).is_quantized_output()) {
    // Neighbouring FP8 values: three bits of significand, and the least number of e4m3.
    return 4 * widest + std::fabs(value) / 8 + scale * 0x1p-9;
  }
  switch (rule) {
    case Rule::exact: return 0;
    case Rule::contest: return 2 * (1e-3 + 1e-3 * std::fabs(value));
    case Rule::general: break;
  }
  return 2 * (2 * widest + 2 * reference::ulp(out, value));
}

/// Compares the scale that begins with the column. The largest of its values may differ by as much as any.
std::string OutputComparison::fault_of_scales(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                              std::int64_t column) const {
  const double scale = found_scale(c, row, column);
  const double wanted = found_scale(trusted, row, column);
  const double allowed = 4 * widest / 448 + wanted * 0x1p-20;
  const bool is_same = std::isnan(scale) ? std::isnan(wanted) : scale == wanted;  // poison in unowned rows, too
  if (is_same ||
      (std::isfinite(scale) && std::isfinite(wanted) ? std::fabs(scale - wanted) <= allowed : has_specials)) {
    return {};
  }
  return fmt::format("the scale of c[{}, {}] is {}, a trusted computation of the same inputs gives {}", row, column,
                     scale, wanted);
}

std::string OutputComparison::fault_of_elements(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                                std::int64_t last_row) const {
  const double edge = 0.99 * reference::overflow_threshold(out);
  for (; row < last_row; ++row) {
    for (std::int64_t column = 0; column < c.shape[1]; ++column) {
      const bool begins = format_traits(out).has_scales() && column % c.scales.block.columns == 0;
      if (std::string sentence = begins ? fault_of_scales(c, trusted, row, column) : ""; !sentence.empty()) {
        return sentence;
      }
      const double value = formats::element(c, row, column);
      const double wanted = formats::element(trusted, row, column);
      if (has_specials && (!std::isfinite(value) || !std::isfinite(wanted))) {
        continue;  // what becomes of infinities is for the definition to say, at the places that are held against it
      }
      const bool is_same = std::isfinite(value) && std::isfinite(wanted)
                               ? std::fabs(value - wanted) <= reach(wanted, found_scale(trusted, row, column))
                               : (std::isnan(value) && std::isnan(wanted)) || value == wanted ||
                                     (std::fabs(value) >= edge && std::fabs(wanted) >= edge);
      if (!is_same) {
        return fmt::format("c[{}, {}] is {}, a trusted computation of the same inputs gives {} and may lie {:.3g} off",
                           row, column, value, wanted, reach(wanted, found_scale(trusted, row, column)));
      }
    }
  }
  return {};
}

/// Quantizing the operands costs the same everywhere; a tile may differ by thrice that.
std::string OutputComparison::fault_of_tiles(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                             std::int64_t last_row) const {
  const double limit =
      3 * folding_error + 1e-2 + (format_traits(out).is_quantized_output() ? output_quantization_error : 0);
  for (std::int64_t column = 0; column < c.shape[1]; column += tile_side) {
    std::vector<double> values;
    std::vector<double> wanted;
    for (std::int64_t r = row; r < last_row; ++r) {
      for (std::int64_t k = column; k < std::min(column + tile_side, c.shape[1]); ++k) {
        values.push_back(formats::element(c, r, k));
        wanted.push_back(formats::element(trusted, r, k));
        if (!has_specials && std::isfinite(values.back()) != std::isfinite(wanted.back())) {
          return fmt::format("c[{}, {}] is {}, a trusted computation of the same inputs gives {}", r, k, values.back(),
                             wanted.back());
        }
      }
    }
    if (const double off = distance(values, wanted); off > limit) {
      return fmt::format(
          "the tile of c at [{}, {}] lies {:.3g} of its norm from a trusted computation of the same "
          "inputs, {:.3g} are allowed",
          row, column, off, limit);
    }
  }
  return {};
}

std::string OutputComparison::fault(const Tensor& c, const Tensor& trusted) const {
  std::mutex guard;
  std::string first;
  const std::int64_t rows = c.shape[0];
  reference::parallel_for((rows + tile_side - 1) / tile_side, 0, [&](std::int64_t band) {
    const std::int64_t last = std::min((band + 1) * tile_side, rows);
    std::string found = is_folded ? fault_of_tiles(c, trusted, band * tile_side, last)
                                  : fault_of_elements(c, trusted, band * tile_side, last);
    if (!found.empty()) {
      const std::lock_guard lock(guard);
      first = first.empty() ? std::move(found) : first;
    }
  });
  return first;
}

}  // namespace thresher::arena
