#include "reference/append.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/numbers.hpp"
#include "reference/append_view.hpp"
#include "reference/attention_view.hpp"
#include "reference/output_format.hpp"

namespace thresher::reference {
namespace {

struct Angle {
  double cosine;
  double sine;
};

Angle angle(const AppendProblem& problem, const AppendTensors& tensors, std::int64_t position, std::int64_t pair) {
  const std::int64_t columns = rotary_dim(problem);
  if (problem.max_position > 0) {
    const auto* const row = static_cast<const float*>(tensors.cos_sin.data) + position * tensors.cos_sin.strides[0];
    return {static_cast<double>(row[pair]), static_cast<double>(row[columns / 2 + pair])};
  }
  const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(columns);
  const double turn = static_cast<double>(position) * std::pow(static_cast<double>(problem.theta), exponent);
  return {std::cos(turn), std::sin(turn)};
}

/// The stored rows of [T,H,columns].
std::vector<double> dense_rows(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t token = 0; token < tensor.shape[0]; ++token) {
    for (std::int64_t head = 0; head < tensor.shape[1]; ++head) {
      for (std::int64_t column = 0; column < tensor.shape[2]; ++column) {
        values.push_back(static_cast<double>(stored(tensor, token_offset(tensor, token, head) + column)));
      }
    }
  }
  return values;
}

std::vector<double> turned(const AppendProblem& problem, const AppendTensors& tensors, const Tensor& of) {
  std::vector<double> values = dense_rows(of);
  const std::int64_t heads = of.shape[1];
  for (std::int64_t pair = 0; pair < rotary_dim(problem) / 2; ++pair) {
    const Pair columns = pair_of(problem, pair);
    for (std::int64_t row = 0; row < of.shape[0] * heads; ++row) {
      const Angle by = angle(problem, tensors, number(tensors.positions, row / heads), pair);
      double& x = values[static_cast<std::size_t>(row * problem.head_dim + columns.x)];
      double& y = values[static_cast<std::size_t>(row * problem.head_dim + columns.y)];
      const double before = x;
      x = before * by.cosine - y * by.sine;
      y = before * by.sine + y * by.cosine;
    }
  }
  return values;
}

/// A step of e4m3 at a magnitude.
double step_of_e4m3(double value) { return std::ldexp(1.0, std::max(std::ilogb(std::max(value, 0x1p-6)), -6) - 3); }

/// Whether `value`, read back, is what `wanted` rounds to; `pair` is the magnitude of the pair it was computed from.
bool is_right(Format format, double descale, double value, double wanted, double pair) {
  if (!std::isfinite(wanted)) {
    return std::isnan(wanted) ? std::isnan(value) : format == Format::fp8_e4m3 || value == wanted;
  }
  const double slack = std::ldexp(pair, -20);
  if (format == Format::fp8_e4m3) {
    const double most = static_cast<double>(formats::e4m3_max) * descale;
    const double limited = std::clamp(wanted, -most, most);
    return std::fabs(value - limited) <= step_of_e4m3(std::fabs(limited) / descale) * descale + slack;
  }
  return std::fabs(value - wanted) <= ulp(format, wanted) + slack || value == round_to(format, wanted);
}

/// Rows of `heads` heads of a token; `offset` gives their position in `tensor`.
template <class Offset>
std::string fault_in_rows(const char* what, const Tensor& tensor, const std::vector<double>& definition,
                          std::int64_t heads, std::int64_t columns, const Offset& offset, const Tensor* descale,
                          std::int64_t tokens) {
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t first = offset(token, head);
      if (first < 0) {
        continue;
      }
      const double factor = descale == nullptr ? 1.0 : static_cast<double>(descale_of(*descale, head));
      const double* const row = &definition[static_cast<std::size_t>((token * heads + head) * columns)];
      double largest = 0;
      for (std::int64_t column = 0; column < columns; ++column) {
        largest = std::isfinite(row[column]) ? std::max(largest, std::fabs(row[column])) : largest;
      }
      for (std::int64_t column = 0; column < columns; ++column) {
        const double value = static_cast<double>(stored(tensor, first + column)) * factor;
        if (!is_right(tensor.format, factor, value, row[column], largest)) {
          return fmt::format("{} of token {}, head {}, column {} is {}, the definition gives {}", what, token, head,
                             column, value, row[column]);
        }
      }
    }
  }
  return {};
}

}  // namespace

AppendResult append(const AppendProblem& problem, const AppendTensors& tensors) {
  AppendResult result;
  if (tensors.q.data != nullptr) {
    result.q = turned(problem, tensors, tensors.q);
  }
  result.k = turned(problem, tensors, tensors.k);
  result.v = dense_rows(tensors.v);
  return result;
}

std::string fault_in_append(const AppendProblem& problem, const AppendTensors& tensors,
                            const AppendResult& definition) {
  const std::int64_t tokens = tensors.k.shape[0];
  const auto of_tokens = [](const Tensor& tensor) {
    return [&tensor](std::int64_t token, std::int64_t head) { return token_offset(tensor, token, head); };
  };
  const auto of_slots = [&](const Tensor& pool) {
    return [&](std::int64_t token, std::int64_t head) {
      const std::int64_t slot = number(tensors.slots, token);
      return slot < 0 ? std::int64_t{-1} : slot_offset(pool, slot, head);
    };
  };
  std::string found;
  if (tensors.q.data != nullptr) {
    found = fault_in_rows("q_out", tensors.q_out, definition.q, problem.heads, problem.head_dim,
                          of_tokens(tensors.q_out), nullptr, tokens);
  }
  if (found.empty() && tensors.k_out.data != nullptr) {
    found = fault_in_rows("k_out", tensors.k_out, definition.k, problem.kv_heads, problem.head_dim,
                          of_tokens(tensors.k_out), nullptr, tokens);
  }
  if (found.empty()) {
    found = fault_in_rows("k_cache", tensors.k_cache, definition.k, problem.kv_heads, problem.head_dim,
                          of_slots(tensors.k_cache), &tensors.k_descale, tokens);
  }
  if (found.empty()) {
    found = fault_in_rows("v_cache", tensors.v_cache, definition.v, problem.kv_heads, value_dim(problem),
                          of_slots(tensors.v_cache), &tensors.v_descale, tokens);
  }
  return found;
}

}  // namespace thresher::reference
