#include "arena/dual_gemm/inspector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "arena/dual_gemm/judge.hpp"
#include "formats/elements.hpp"
#include "formats/scales.hpp"
#include "reference/activation.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"
#include "reference/output_format.hpp"
#include "reference/parallel.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;
using reference::Outputs;
using reference::PlainErrors;
using reference::Rule;

constexpr std::int64_t gauged_rows = 24;
constexpr std::int64_t gauged_columns = 64;
/// Elements that stand beside each other in a look, and how many of them are computed.
constexpr std::int64_t columns_of_a_look = 64;
constexpr std::size_t judged_of_a_look = 2;
/// Of a few elements the largest error is a little less than of all.
constexpr double beyond_the_gauge = 1.5;
constexpr std::int64_t tile_side = 64;

/// So many of [0, extent) without repetition, ascending.
std::vector<std::int64_t> some_of(std::int64_t extent, std::int64_t most, Random& random) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) {
    all[static_cast<std::size_t>(i)] = i;
  }
  if (extent > most) {
    random.shuffle(all);
    all.resize(static_cast<std::size_t>(most));
    std::sort(all.begin(), all.end());
  }
  return all;
}

/// These rows of a matrix, its scales by rows.
HostTensor rows_of(const HostTensor& matrix, const std::vector<std::int64_t>& rows) {
  HostTensor some = make_host_tensor(matrix.name, matrix.format, {std::ssize(rows), matrix.shape[1]});
  some.global_scale = matrix.global_scale;
  const std::size_t row_bytes = some.values.size() / std::max<std::size_t>(rows.size(), 1);
  const std::int64_t columns = matrix.scales.empty() ? 0 : matrix.shape[1] / formats::scale_block;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto from = static_cast<std::size_t>(rows[i]) * row_bytes;
    std::copy_n(matrix.values.begin() + static_cast<std::ptrdiff_t>(from), row_bytes,
                some.values.begin() + static_cast<std::ptrdiff_t>(i * row_bytes));
    for (std::int64_t column = 0; column < columns; ++column) {
      some.scales[formats::scale_offset(static_cast<std::int64_t>(i), column, columns, ScaleLayout::row_major)] =
          matrix.scales[formats::scale_offset(rows[i], column, columns, matrix.scale_layout)];
    }
  }
  return some;
}

/// The rows of A, B1 and B2 that some rows crossed with some columns of the output are made of.
struct Operands {
  Operands(const HostTensor& all_a, const HostTensor& all_b1, const HostTensor& all_b2,
           const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns)
      : a(rows_of(all_a, rows)), b1(rows_of(all_b1, columns)), b2(rows_of(all_b2, columns)) {}
  HostTensor a, b1, b2;
};

class DualGemmInspector final : public Inspector {
 public:
  DualGemmInspector(const DualGemmProblem& problem, Distribution distribution, const std::vector<HostTensor>& inputs,
                    const Maker& maker, std::uint64_t seed)
      : problem_(problem),
        rule_(dual_gemm_rule(problem, distribution)),
        accumulation_(maker.device == DeviceKind::cuda ? Accumulation::float32_truncated : Accumulation::float32),
        has_specials_(distribution == Distribution::specials),
        is_folded_(maker.numerics == Numerics::fast && format_traits(problem.b).has_scales()) {
    Random random(seed);
    const Operands some(inputs.at(0), inputs.at(1), inputs.at(2), some_of(problem.m, gauged_rows, random),
                        some_of(problem.n, gauged_columns, random));
    rule_ = is_folded_ ? Rule::general : rule_;
    if (rule_ != Rule::general) {
      return;
    }
    accumulation_ = is_folded_ ? Accumulation::float14_truncated : accumulation_;
    const Outputs definition = compute(some, Accumulation::float64, is_folded_);
    errors_ = reference::plain_errors(problem_.activation, definition, compute(some, accumulation_, is_folded_));
    errors_.gate *= beyond_the_gauge;
    errors_.up *= beyond_the_gauge;
    errors_.activation *= beyond_the_gauge;
    for (std::size_t i = 0; i < definition.value.size(); ++i) {
      const double bound = reference::bound_for(problem_, rule_, definition.gate[i], definition.up[i], errors_) -
                           2 * reference::ulp(problem_.out, definition.value[i]);
      widest_ = std::isfinite(bound) ? std::max(widest_, bound) : widest_;
    }
    if (is_folded_) {
      folding_error_ = distance(definition.value, compute(some, Accumulation::float64, false).value);
    }
  }

  [[nodiscard]] Look choose(Random& random) const override {
    const std::int64_t columns = std::min(columns_of_a_look, problem_.n);
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
    };
    Look look{{{0, below(problem_.m), below(problem_.n - columns + 1), columns}}, {}};
    for (std::size_t i = 0; i < judged_of_a_look; ++i) {
      look.place.push_back(below(columns));
    }
    return look;
  }

  [[nodiscard]] std::string fault_in(const Look& look, const InputsOfCall& inputs, std::uint8_t poison) const override {
    const RowPart& part = look.parts.front();
    std::vector<std::uint8_t> bytes = part.bytes;
    const Tensor there = Tensor::contiguous(bytes.data(), problem_.out, {1, part.columns});
    const std::size_t element_bytes = bytes.size() / static_cast<std::size_t>(part.columns);
    const auto holds_poison = [&](std::int64_t column) {
      return is_poison(&bytes[static_cast<std::size_t>(column) * element_bytes], element_bytes, poison);
    };
    std::vector<std::int64_t> judged;
    for (std::int64_t column = 0; column < part.columns && judged.size() < judged_of_a_look; ++column) {
      if (holds_poison(column)) {
        judged.push_back(column);
      }
    }
    judged.insert(judged.end(), look.place.begin(), look.place.end());
    judged.resize(judged_of_a_look);
    std::vector<std::int64_t> columns;
    for (const std::int64_t column : judged) {
      columns.push_back(part.first_column + column);
    }
    const Operands operands(*inputs.at(0), *inputs.at(1), *inputs.at(2), {part.row}, columns);
    const Outputs definition = compute(operands, Accumulation::float64, is_folded_);
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const double value = formats::element(there, 0, judged[i]);
      const double wanted = definition.value[i];
      const double bound = reference::bound_for(problem_, rule_, definition.gate[i], definition.up[i], errors_);
      if (reference::error_ratio(rule_, problem_.out, value, wanted, bound) > 1 && !is_plain(value, operands, i)) {
        return holds_poison(judged[i])
                   ? fmt::format("c[{}, {}] was not written, the definition gives {}", part.row, columns[i], wanted)
                   : fmt::format("c[{}, {}] is {}, the definition gives {} ± {:.3g}", part.row, columns[i], value,
                                 wanted, bound);
      }
    }
    return {};
  }

  [[nodiscard]] std::string fault_against(const std::vector<HostTensor>& outputs,
                                          const std::vector<HostTensor>& trusted) const override {
    const Tensor c = outputs.at(0).view();
    const Tensor other = trusted.at(0).view();
    std::mutex guard;
    std::string first;
    const std::int64_t bands = (problem_.m + tile_side - 1) / tile_side;
    reference::parallel_for(bands, 0, [&](std::int64_t band) {
      const std::int64_t last = std::min((band + 1) * tile_side, problem_.m);
      std::string found = is_folded_ ? fault_of_tiles(c, other, band * tile_side, last)
                                     : fault_of_elements(c, other, band * tile_side, last);
      if (!found.empty()) {
        const std::lock_guard lock(guard);
        first = first.empty() ? std::move(found) : first;
      }
    });
    return first;
  }

 private:
  [[nodiscard]] Outputs compute(const Operands& of, Accumulation accumulation, bool is_folded) const {
    DualGemmProblem part = problem_;
    part.m = of.a.rows();
    part.n = of.b1.rows();
    const auto over = [&](const Tensor& a, const Tensor& b1, const Tensor& b2) {
      const reference::Region all = reference::whole(part);
      return accumulation == Accumulation::float64
                 ? reference::dual_gemm_fast(part, a, b1, b2, all, 1)
                 : reference::plain_low_precision(part, a, b1, b2, all, accumulation, 1);
    };
    if (!is_folded) {
      return over(of.a.view(), of.b1.view(), of.b2.view());
    }
    part.a = part.b = Format::fp32;
    const reference::Folded tokens = reference::fold_tokens(of.a.view());
    const reference::Folded gate = reference::fold_weights(of.b1.view());
    const reference::Folded up = reference::fold_weights(of.b2.view());
    return over(tokens.view, gate.view, up.view);
  }

  /// Whether the plain computation gives the same infinity or NaN, which is right then, as it is to the judge.
  [[nodiscard]] bool is_plain(double value, const Operands& operands, std::size_t place) const {
    if (std::isfinite(value) || rule_ != Rule::general) {
      return false;
    }
    const double plain = compute(operands, accumulation_, is_folded_).value[place];
    return (std::isnan(value) && std::isnan(plain)) || value == plain;
  }

  static double distance(const std::vector<double>& values, const std::vector<double>& exact) {
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

  /// How far two right computations may lie apart.
  [[nodiscard]] double reach(double value) const {
    switch (rule_) {
      case Rule::exact: return 0;
      case Rule::contest: return 2 * (1e-3 + 1e-3 * std::fabs(value));
      case Rule::general: break;
    }
    return 2 * (2 * widest_ + 2 * reference::ulp(problem_.out, value));
  }

  [[nodiscard]] std::string fault_of_elements(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                              std::int64_t last_row) const {
    const double edge = 0.99 * reference::overflow_threshold(problem_.out);
    for (; row < last_row; ++row) {
      for (std::int64_t column = 0; column < problem_.n; ++column) {
        const double value = formats::element(c, row, column);
        const double wanted = formats::element(trusted, row, column);
        if (has_specials_ && (!std::isfinite(value) || !std::isfinite(wanted))) {
          continue;  // what becomes of infinities is for the definition to say, at the places that are held against it
        }
        const bool is_same = std::isfinite(value) && std::isfinite(wanted)
                                 ? std::fabs(value - wanted) <= reach(wanted)
                                 : (std::isnan(value) && std::isnan(wanted)) || value == wanted ||
                                       (std::fabs(value) >= edge && std::fabs(wanted) >= edge);
        if (!is_same) {
          return fmt::format(
              "c[{}, {}] is {}, a trusted computation of the same inputs gives {} and may lie {:.3g} off", row, column,
              value, wanted, reach(wanted));
        }
      }
    }
    return {};
  }

  /// What folding costs is the same everywhere; it is held against thrice that.
  [[nodiscard]] std::string fault_of_tiles(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                           std::int64_t last_row) const {
    const double limit = 3 * folding_error_ + 1e-2;
    for (std::int64_t column = 0; column < problem_.n; column += tile_side) {
      std::vector<double> values;
      std::vector<double> wanted;
      for (std::int64_t r = row; r < last_row; ++r) {
        for (std::int64_t k = column; k < std::min(column + tile_side, problem_.n); ++k) {
          values.push_back(formats::element(c, r, k));
          wanted.push_back(formats::element(trusted, r, k));
          if (!has_specials_ && std::isfinite(values.back()) != std::isfinite(wanted.back())) {
            return fmt::format("c[{}, {}] is {}, a trusted computation of the same inputs gives {}", r, k,
                               values.back(), wanted.back());
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

  DualGemmProblem problem_;
  Rule rule_;
  Accumulation accumulation_;  ///< of the plain computation
  bool has_specials_;
  bool is_folded_;
  PlainErrors errors_{};
  double widest_ = 0;  ///< bound of any gauged element, less the rounding to the output format
  double folding_error_ = 0;
};

}  // namespace

std::unique_ptr<Inspector> make_dual_gemm_inspector(const DualGemmProblem& problem, Distribution distribution,
                                                    const std::vector<HostTensor>& inputs, const Maker& maker,
                                                    std::uint64_t seed) {
  return std::make_unique<DualGemmInspector>(problem, distribution, inputs, maker, seed);
}

}  // namespace thresher::arena
