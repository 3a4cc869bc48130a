#pragma once
/// Common parts of the layers, which run two products one behind the other.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/device_memory.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_product.hpp"
#include "runtime/driver.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/error.hpp"
#include "thresher/gated_mlp.hpp"

namespace thresher::ops {

/// Calls `function`; an error of it says which product of the layer it is about.
template <class Function>
auto of_product(std::string_view product, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", product, error.what()));
  }
}

/// The products of a gated MLP, as those of MoeProblem are. `up_problem` is that of one without a gate.
[[nodiscard]] DualGemmProblem gate_up_problem(const GatedMlpProblem& problem) noexcept;
[[nodiscard]] GemmProblem up_problem(const GatedMlpProblem& problem) noexcept;
[[nodiscard]] GemmProblem down_problem(const GatedMlpProblem& problem) noexcept;

/// The intermediate in its format, and the scale that it is given.
void check_intermediate(Format format, float scale, std::int64_t columns);
/// A matrix of the workspace. Memory holds fewer elements than this, so that sizes in bytes are far from overflow.
void check_layer_elements(std::string_view rows_argument, std::int64_t rows, std::string_view columns_argument,
                          std::int64_t columns);

/// Checks the members that the problems of both layers have. The intermediate has `rows` rows.
template <class Problem>
void check_layer(const Problem& problem, std::string_view rows_argument, std::int64_t rows) {
  check_operand_format("problem.x", problem.x);
  check_operand_format("problem.gate_up", problem.gate_up);
  check_operand_format("problem.down", problem.down);
  check_unscaled_output("problem.out", problem.out);
  check_extent("tokens", problem.tokens, 0);
  check_extent("hidden_size", problem.hidden_size, 1);
  check_multiples("hidden_size", problem.hidden_size, {problem.x, problem.gate_up});
  check_extent("intermediate_size", problem.intermediate_size, 1);
  check_multiples("intermediate_size", problem.intermediate_size, {problem.intermediate, problem.down});
  check_intermediate(problem.intermediate, problem.intermediate_scale, problem.intermediate_size);
  check_layer_elements(rows_argument, rows, "hidden_size", problem.hidden_size);
  check_layer_elements(rows_argument, rows, "intermediate_size", problem.intermediate_size);
  check_activation(problem.activation);
}

inline std::byte* part_of(void* workspace, const strategies::WorkspacePiece& piece) {
  return static_cast<std::byte*>(workspace) + piece.offset;
}

/// How the rows of an intermediate are read.
enum class RowOrder : std::uint8_t {
  neighbors,  ///< a kernel reads the scales of neighboring rows at once
  by_id,      ///< rows are gathered, so that only a row's own scales are read together
};

/// The intermediate, in two pieces of a layer's workspace.
class Intermediate {
 public:
  /// Adds the pieces, with room for `max_rows` rows.
  Intermediate(const Device& device, Format format, float scale, std::int64_t max_rows, std::int64_t columns,
               std::vector<strategies::WorkspacePiece>& pieces, RowOrder order = RowOrder::neighbors);

  [[nodiscard]] Tensor tensor(std::int64_t rows, void* workspace) const;

 private:
  Format format_;
  ScaleLayout layout_;
  std::int64_t columns_;
  DeviceId device_;
  strategies::WorkspacePiece values_;
  strategies::WorkspacePiece scales_;
  std::optional<DeviceTensor> given_scale_{};  ///< if the format has one
};

/// The common part of a planned layer: its workspace, and the checks of x and of out.
template <class Problem>
class PlannedLayer {
 public:
  [[nodiscard]] const Problem& problem() const noexcept { return problem_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return strategies::total_bytes(pieces_); }

 protected:
  PlannedLayer(const Device& device, const Problem& problem) : problem_(problem), device_(device.id()) {}

  using NamedPointers = std::initializer_list<std::pair<const char*, const void*>>;

  void check_x(const Tensor& x) const {
    if (x.rank != 2) {
      refuse("x has {} dimensions, expected 2: [tokens, hidden_size]", x.rank);
    }
    if (x.shape[0] < 0 || x.shape[0] > problem_.tokens) {
      refuse("x has {} rows, expected 0 to {}, the tokens that the plan was made for", x.shape[0], problem_.tokens);
    }
    check_matrix("x", x, problem_.x, x.shape[0], problem_.hidden_size, device_, OperandRole::tokens);
  }
  /// `operands` must not overlap out or the workspace.
  void check_out(const Tensor& out, std::int64_t rows, NamedTensors operands, const void* workspace) const {
    check_matrix("out", out, problem_.out, rows, problem_.hidden_size, device_, OperandRole::tokens);
    check_alignment("out", out, static_cast<std::size_t>(bits(problem_.out)) / 8);
    check_workspace(workspace, workspace_bytes());
    check_apart(out, operands, {workspace, workspace_bytes()}, "out");
    check_outside_workspace("out", out, workspace, workspace_bytes());
  }
  void require_on_gpu(NamedPointers pointers) const {
    for (const auto& [argument, pointer] : pointers) {
      if (device_.kind == DeviceKind::cuda) {
        runtime::require_on_gpu(pointer, device_.ordinal, argument);
      }
    }
  }
  [[nodiscard]] std::byte* at(void* workspace, std::size_t piece) const { return part_of(workspace, pieces_[piece]); }

  Problem problem_;
  DeviceId device_;
  std::vector<strategies::WorkspacePiece> pieces_{};
};

}  // namespace thresher::ops
