#include "thresher/gated_mlp.hpp"

#include <utility>

#include "core/integers.hpp"
#include "ops/layer_calls.hpp"
#include "ops/layer_parts.hpp"
#include "ops/products.hpp"
#include "ops/tensor_checks.hpp"
#include "runtime/driver.hpp"
#include "runtime/known_places.hpp"

namespace thresher {
namespace {

void validate(const GatedMlpProblem& problem) {
  ops::check_operand_format("problem.x", problem.x);
  ops::check_operand_format("problem.gate_up", problem.gate_up);
  ops::check_operand_format("problem.down", problem.down);
  ops::check_unscaled_output("problem.out", problem.out);
  ops::check_layer_extent("tokens", problem.tokens, 0);
  ops::check_layer_extent("hidden_size", problem.hidden_size, 1);
  ops::check_layer_depth("hidden_size", problem.hidden_size, {problem.x, problem.gate_up});
  ops::check_layer_extent("intermediate_size", problem.intermediate_size, 1);
  ops::check_layer_depth("intermediate_size", problem.intermediate_size, {problem.intermediate, problem.down});
  ops::check_intermediate(problem.intermediate, problem.intermediate_scale, problem.intermediate_size);
  ops::check_layer_elements("problem.tokens", problem.tokens, "hidden_size", problem.hidden_size);
  ops::check_layer_elements("problem.tokens", problem.tokens, "intermediate_size", problem.intermediate_size);
  ops::check_activation(problem.activation);
}

}  // namespace

class PackedGatedMlpWeights::Storage {
 public:
  Storage(PackedWeights gate_up, PackedGemmWeights down) : gate_up_(std::move(gate_up)), down_(std::move(down)) {}

  [[nodiscard]] const PackedWeights& gate_up() const noexcept { return gate_up_; }
  [[nodiscard]] const PackedGemmWeights& down() const noexcept { return down_; }

 private:
  PackedWeights gate_up_;
  PackedGemmWeights down_;
};

class GatedMlp::Backend {
 public:
  /// The weights are those that calls read where the caller left them.
  Backend(const Device& device, const GatedMlpProblem& problem, ops::PlanPointer gate_up, ops::PlanPointer down,
          const GatedMlpWeights& weights)
      : problem_(problem),
        device_(device.id()),
        gate_up_(std::move(gate_up)),
        down_(std::move(down)),
        weights_(weights),
        intermediate_(device, problem.intermediate, problem.intermediate_scale, problem.tokens,
                      problem.intermediate_size, pieces_),
        of_gate_up_(strategies::add_piece(pieces_, "of gate and up", gate_up_->workspace_bytes())),
        of_down_(strategies::add_piece(pieces_, "of down", down_->workspace_bytes())) {}

  [[nodiscard]] const GatedMlpProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const ops::ProductPlan& gate_up() const noexcept { return *gate_up_; }
  [[nodiscard]] const ops::ProductPlan& down() const noexcept { return *down_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return ops::bytes_of(pieces_); }

  void run(Stream stream, const Tensor& x, const Tensor& out, void* workspace) const {
    validate_run(x, out, workspace);
    const std::int64_t tokens = x.shape[0];
    if (tokens == 0) {
      return;
    }
    if (device_.kind == DeviceKind::cuda) {
      for (const auto& [argument, pointer] :
           {std::pair{"x", x.data}, std::pair{"out", out.data}, std::pair{"workspace", workspace}}) {
        runtime::require_on_gpu(pointer, device_.ordinal, argument);
      }
    }
    const runtime::ValidatedPointers of_products;
    const auto at = [&](std::size_t piece) { return ops::part_of(workspace, pieces_[piece]); };
    const Tensor hidden = intermediate_.tensor(tokens, workspace);
    ops::of_product("gate and up, whose a is x",
                    [&] { ops::run_dense(*gate_up_, stream, x, hidden, at(of_gate_up_)); });
    ops::of_product("down, whose c is out", [&] { ops::run_dense(*down_, stream, hidden, out, at(of_down_)); });
  }

 private:
  void validate_run(const Tensor& x, const Tensor& out, const void* workspace) const {
    if (x.rank != 2 || x.shape[0] < 0 || x.shape[0] > problem_.tokens) {
      ops::refuse("x has {} dimensions and {} rows, expected 2 and 0 to {}, the tokens that the plan was made for",
                  x.rank, x.rank < 1 ? 0 : x.shape[0], problem_.tokens);
    }
    ops::check_matrix("x", x, problem_.x, x.shape[0], problem_.hidden_size, device_, OperandRole::tokens);
    ops::check_matrix("out", out, problem_.out, x.shape[0], problem_.hidden_size, device_, OperandRole::tokens);
    ops::check_alignment("out", out, static_cast<std::size_t>(bits(problem_.out)) / 8);
    ops::check_workspace(workspace, workspace_bytes());
    ops::check_apart(out, {{"x", &x}, {"gate", &weights_.gate}, {"up", &weights_.up}, {"down", &weights_.down}},
                     {workspace, workspace_bytes()}, "out");
    ops::check_outside_workspace("out", out, workspace, workspace_bytes());
  }

  GatedMlpProblem problem_;
  DeviceId device_;
  ops::PlanPointer gate_up_;
  ops::PlanPointer down_;
  GatedMlpWeights weights_;
  std::vector<strategies::WorkspacePiece> pieces_{};
  ops::Intermediate intermediate_;
  std::size_t of_gate_up_;
  std::size_t of_down_;
};

void GatedMlp::run(Stream stream, const Tensor& x, const Tensor& out, void* workspace) const {
  backend_->run(stream, x, out, workspace);
}
std::size_t GatedMlp::workspace_bytes() const { return backend_->workspace_bytes(); }
const GatedMlpProblem& GatedMlp::problem() const { return backend_->problem(); }
const std::string& GatedMlp::gate_up_strategy() const { return backend_->gate_up().strategy(); }
const std::string& GatedMlp::down_strategy() const { return backend_->down().strategy(); }

PackedGatedMlpWeights::PackedGatedMlpWeights(PackedWeights gate_up, PackedGemmWeights down) {
  if (gate_up.device().id() != down.device().id()) {
    ops::refuse("gate and up were packed for {}, but down for {}: pack them for one device", gate_up.device().name(),
                down.device().name());
  }
  storage_ = std::make_shared<const Storage>(std::move(gate_up), std::move(down));
}

const Device& PackedGatedMlpWeights::device() const noexcept { return storage_->gate_up().device(); }

PackedGatedMlpWeights pack(const Device& device, const GatedMlpWeights& weights, const PackOptions& options) {
  return {ops::of_product("gate and up", [&] { return pack(device, weights.gate, weights.up, options); }),
          ops::of_product("down", [&] { return pack(device, GemmWeights{.b = weights.down}, options); })};
}

namespace {

/// `of_gate_up()` and `of_down()` plan the products.
GatedMlp plan_layer(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& where_they_lie,
                    const auto& of_gate_up, const auto& of_down) {
  validate(problem);
  ops::PlanPointer gate_up = ops::of_product("gate and up", of_gate_up);
  ops::PlanPointer down = ops::of_product("down", of_down);
  return GatedMlp(
      std::make_shared<const GatedMlp::Backend>(device, problem, std::move(gate_up), std::move(down), where_they_lie));
}

}  // namespace

GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const PackedGatedMlpWeights& weights,
              const GatedMlpOptions& options) {
  const PackedGatedMlpWeights::Storage& packed = weights.storage();
  GatedMlpWeights where_they_lie;
  if (device.kind() == DeviceKind::cpu) {  // packing copies on a GPU
    const GroupedWeights& gate_up = packed.gate_up().storage().weights();
    where_they_lie = {.gate = gate_up.b1, .up = gate_up.b2, .down = packed.down().grouped().storage().weights().b1};
  }
  return plan_layer(
      device, problem, where_they_lie,
      [&] { return ops::plan_dual_gemm(device, ops::gate_up_problem(problem), packed.gate_up(), options.gate_up); },
      [&] { return ops::plan_gemm(device, ops::down_problem(problem), packed.down(), options.down); });
}

GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& weights,
              const GatedMlpOptions& options) {
  return plan_layer(
      device, problem, weights,
      [&] {
        return ops::plan_dual_gemm(device, ops::gate_up_problem(problem), weights.gate, weights.up, options.gate_up);
      },
      [&] { return ops::plan_gemm(device, ops::down_problem(problem), GemmWeights{.b = weights.down}, options.down); });
}

}  // namespace thresher
