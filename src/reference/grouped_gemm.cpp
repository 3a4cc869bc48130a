#include "reference/grouped_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/grouped_weights.hpp"
#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

/// The row of gate or up row `n` in the fused tensor of one expert.
std::int64_t fused_row(GateUpOrder order, bool is_up, std::int64_t n, std::int64_t outputs) {
  switch (order) {
    case GateUpOrder::gate_first: return is_up ? outputs + n : n;
    case GateUpOrder::up_first: return is_up ? n : outputs + n;
    case GateUpOrder::interleaved: return is_up ? 2 * n + 1 : 2 * n;
  }
  return n;
}

/// The values of one of an expert's two matrices.
class Weight {
 public:
  Weight(const GroupedProblem& problem, const GroupedWeights& weights, std::int64_t expert, bool is_up)
      : matrix_(slot_matrix(is_up && !weights.order ? weights.b2 : weights.b1, expert)),
        bias_(is_up && !weights.order ? weights.bias2 : weights.bias1),
        order_(weights.order),
        is_up_(is_up),
        outputs_(problem.n),
        expert_(expert) {
    if (is_up && order_ && weights.up_global_scale != nullptr) {
      matrix_.global_scale = weights.up_global_scale + expert;
    }
    formats::check_matrix(matrix_, is_up ? "b2 (up)" : "b1 (gate)", (order_ ? 2 : 1) * problem.n, problem.k, problem.b);
  }

  [[nodiscard]] double product(const Tensor& a, std::int64_t row, std::int64_t n) const {
    double sum = 0.0;
    for (std::int64_t k = 0; k < a.shape[1]; ++k) {
      sum += formats::element(a, row, k) * formats::element(matrix_, this->row(n), k);
    }
    sum = sum * formats::global_scale(a) * formats::global_scale(matrix_);
    return bias_.rank == 0 ? sum : sum + formats::element(bias_, expert_, this->row(n));
  }

 private:
  [[nodiscard]] std::int64_t row(std::int64_t n) const { return order_ ? fused_row(*order_, is_up_, n, outputs_) : n; }

  Tensor matrix_;
  Tensor bias_;
  std::optional<GateUpOrder> order_;
  bool is_up_;
  std::int64_t outputs_;
  std::int64_t expert_;
};

void require_shape(const Tensor& tensor, const char* role, Format format, std::initializer_list<std::int64_t> shape) {
  const bool fits = tensor.format == format && tensor.rank == static_cast<int>(shape.size()) &&
                    tensor.device.kind == DeviceKind::cpu &&
                    std::equal(shape.begin(), shape.end(), tensor.shape.begin());
  if (!fits || (tensor.elements() != 0 && tensor.data == nullptr)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is not as the problem says", role));
  }
}

void check_tensors(const GroupedProblem& problem, const GroupedTensors& tensors) {
  const bool has_slots = problem.layout == RowLayout::slots;
  const std::int64_t rows = tensors.c.shape[has_slots ? 1 : 0];
  if (has_slots) {
    require_shape(tensors.a, "a", problem.a, {problem.experts, rows, problem.k});
    require_shape(tensors.counts, "counts", Format::int32, {problem.experts});
  } else {
    const bool is_gathered = problem.layout == RowLayout::gathered;
    formats::check_matrix(tensors.a, "a", is_gathered ? tensors.a.shape[0] : rows, problem.k, problem.a);
    require_shape(tensors.offsets, "offsets", Format::int32, {problem.experts + 1});
    if (is_gathered) {
      require_shape(tensors.row_ids, "row_ids", Format::int32, {rows});
    }
  }
  if (problem.row_weights) {
    const std::initializer_list<std::int64_t> of_slots{problem.experts, rows};
    require_shape(tensors.row_weights, "row_weights", Format::fp32, has_slots ? of_slots : std::initializer_list{rows});
  }
}

/// Row `row` of A, with the numbering of owned_rows.
struct TokenRow {
  Tensor matrix;
  std::int64_t row;
};

TokenRow token_row(const Tensor& a, std::int64_t row) {
  return a.rank == 2 ? TokenRow{a, row} : TokenRow{slot_matrix(a, row / a.shape[1]), row % a.shape[1]};
}

}  // namespace

GroupedOutputs grouped_gemm(const GroupedProblem& problem, const GroupedWeights& weights,
                            const GroupedTensors& tensors) {
  check_tensors(problem, tensors);
  GroupedOutputs out{{}, owned_rows(problem, tensors)};
  out.values.assign(out.owned.tokens.size() * static_cast<std::size_t>(problem.n), 0.0);
  for (std::int64_t expert = 0; expert < problem.experts; ++expert) {
    const Weight gate(problem, weights, expert, false);
    const std::optional<Weight> up = is_gated(problem.activation)
                                         ? std::optional<Weight>(std::in_place, problem, weights, expert, true)
                                         : std::nullopt;
    const GroupRows& group = out.owned.groups[static_cast<std::size_t>(expert)];
    for (std::int64_t row = group.first; row < group.end(); ++row) {
      const std::int64_t token = out.owned.tokens[static_cast<std::size_t>(row)];
      if (token < 0) {
        continue;
      }
      const TokenRow a = token_row(tensors.a, token);
      const double row_weight =
          problem.row_weights ? static_cast<double>(static_cast<const float*>(tensors.row_weights.data)[row]) : 1.0;
      for (std::int64_t n = 0; n < problem.n; ++n) {
        out.values[static_cast<std::size_t>(row * problem.n + n)] =
            output_element(gate.product(a.matrix, a.row, n), up ? up->product(a.matrix, a.row, n) : 0.0,
                           problem.activation, row_weight);
      }
    }
  }
  return out;
}

}  // namespace thresher::reference
