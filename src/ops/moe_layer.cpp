#include "thresher/moe_layer.hpp"

#include <array>
#include <optional>
#include <utility>

#include "core/integers.hpp"
#include "ops/device_call.hpp"
#include "ops/layer_parts.hpp"
#include "ops/products.hpp"
#include "ops/tensor_checks.hpp"
#include "runtime/driver.hpp"
#include "runtime/known_places.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/moe_layer/tensors.hpp"

namespace thresher {
namespace {

namespace layer = strategies::moe_layer;

void validate(const MoeProblem& problem) {
  constexpr std::int64_t max_choices = (std::int64_t{1} << 31) - 1;
  ops::check_operand_format("problem.x", problem.x);
  ops::check_operand_format("problem.gate_up", problem.gate_up);
  ops::check_operand_format("problem.down", problem.down);
  ops::check_unscaled_output("problem.rows", problem.rows);
  ops::check_unscaled_output("problem.out", problem.out);
  ops::check_layer_extent("experts", problem.experts, 1);
  ops::check_layer_extent("tokens", problem.tokens, 0);
  ops::check_layer_extent("top_k", problem.top_k, 1);
  ops::check_layer_extent("expected_rows", problem.expected_rows, 0);
  ops::check_layer_extent("hidden_size", problem.hidden_size, 1);
  ops::check_layer_depth("hidden_size", problem.hidden_size, {problem.x, problem.gate_up});
  ops::check_layer_extent("intermediate_size", problem.intermediate_size, 1);
  ops::check_layer_depth("intermediate_size", problem.intermediate_size, {problem.intermediate, problem.down});
  ops::check_intermediate(problem.intermediate, problem.intermediate_scale, problem.intermediate_size);
  if (size_product(problem.tokens, problem.top_k) > max_choices) {
    ops::refuse("problem.tokens times problem.top_k is {} times {}, expected at most {}: rows are counted in int32",
                problem.tokens, problem.top_k, max_choices);
  }
  for (const auto& [argument, columns] :
       {std::pair{"hidden_size", problem.hidden_size}, std::pair{"intermediate_size", problem.intermediate_size}}) {
    ops::check_layer_elements("problem.tokens times problem.top_k", problem.tokens * problem.top_k, argument, columns);
  }
  ops::check_activation(problem.activation);
}

/// What lies in the workspace, in this order.
enum Piece : std::size_t { offsets, row_ids, inverse, rows, of_gate_up, of_down };

}  // namespace

class MoeLayer::Backend {
 public:
  /// The weights are those that calls read where the caller left them.
  Backend(const Device& device, const MoeProblem& problem, ops::PlanPointer gate_up, ops::PlanPointer down,
          const GroupedWeights& gate_up_weights, const GroupedWeights& down_weights, int threads)
      : problem_(problem),
        device_(device.id()),
        gate_up_(std::move(gate_up)),
        down_(std::move(down)),
        gate_up_weights_(gate_up_weights),
        down_weights_(down_weights),
        combine_(device.id(), layer::combine_call(problem, device.kind(), threads)) {
    const std::int64_t choices = problem.tokens * problem.top_k;
    const auto bytes = [](std::int64_t count, std::int64_t columns, Format format) {
      return static_cast<std::size_t>(size_product(size_product(count, columns), bits(format) / 8));
    };
    for (const auto& [name, size] :
         {std::pair{"offsets", bytes(problem.experts + 1, 1, Format::int32)},
          std::pair{"row ids", bytes(choices, 1, Format::int32)},
          std::pair{"inverse", bytes(choices, 1, Format::int32)},
          std::pair{"rows", bytes(choices, problem.hidden_size, problem.rows)},
          std::pair{"of gate and up", gate_up_->workspace_bytes()}, std::pair{"of down", down_->workspace_bytes()}}) {
      strategies::add_piece(pieces_, name, size);
    }
    intermediate_.emplace(device, problem.intermediate, problem.intermediate_scale, choices, problem.intermediate_size,
                          pieces_);
  }

  [[nodiscard]] const MoeProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const ops::ProductPlan& gate_up() const noexcept { return *gate_up_; }
  [[nodiscard]] const ops::ProductPlan& down() const noexcept { return *down_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return ops::bytes_of(pieces_); }

  void validate_run(const MoeTensors& of, const void* workspace) const {
    if (of.x.rank != 2) {
      ops::refuse("x has {} dimensions, expected 2: [tokens, hidden_size]", of.x.rank);
    }
    const std::int64_t tokens = of.x.shape[0];
    if (tokens < 0 || tokens > problem_.tokens) {
      ops::refuse("x has {} rows, expected 0 to {}, the tokens that the plan was made for", tokens, problem_.tokens);
    }
    ops::check_matrix("x", of.x, problem_.x, tokens, problem_.hidden_size, device_, OperandRole::tokens);
    check_choices("topk_ids", of.topk_ids, Format::int32, tokens);
    check_choices("topk_weights", of.topk_weights, Format::fp32, tokens);
    ops::check_matrix("out", of.out, problem_.out, tokens, problem_.hidden_size, device_, OperandRole::tokens);
    ops::check_alignment("out", of.out, static_cast<std::size_t>(bits(problem_.out)) / 8);
    ops::check_workspace(workspace, workspace_bytes());
    ops::check_apart(of.out,
                     {{"x", &of.x},
                      {"topk_ids", &of.topk_ids},
                      {"topk_weights", &of.topk_weights},
                      {"b1 of gate_up", &gate_up_weights_.b1},
                      {"b2 of gate_up", &gate_up_weights_.b2},
                      {"bias1 of gate_up", &gate_up_weights_.bias1},
                      {"bias2 of gate_up", &gate_up_weights_.bias2},
                      {"b1 of down", &down_weights_.b1},
                      {"bias1 of down", &down_weights_.bias1}},
                     {workspace, workspace_bytes()}, "out");
    ops::check_outside_workspace("out", of.out, workspace, workspace_bytes());
  }

  void run(Stream stream, const MoeTensors& of, void* workspace) const {
    validate_run(of, workspace);
    const std::int64_t tokens = of.x.shape[0];
    if (tokens == 0) {
      return;
    }
    if (device_.kind == DeviceKind::cuda) {
      for (const auto& [argument, pointer] : {std::pair{"x", of.x.data}, std::pair{"topk_ids", of.topk_ids.data},
                                              std::pair{"topk_weights", of.topk_weights.data},
                                              std::pair{"out", of.out.data}, std::pair{"workspace", workspace}}) {
        runtime::require_on_gpu(pointer, device_.ordinal, argument);
      }
    }
    const runtime::ValidatedPointers of_products;
    const std::int64_t choices = tokens * problem_.top_k;
    const auto at = [&](Piece piece) { return ops::part_of(workspace, pieces_[piece]); };
    const auto tensor = [&](Piece piece, Format format, std::initializer_list<std::int64_t> shape) {
      return Tensor::contiguous(at(piece), format, shape, device_);
    };
    const Tensor first_rows = tensor(offsets, Format::int32, {problem_.experts + 1});
    const Tensor choice_of_row = tensor(row_ids, Format::int32, {choices});
    const Tensor row_of_choice = tensor(inverse, Format::int32, {tokens, problem_.top_k});
    const Tensor hidden = intermediate_->tensor(choices, workspace);
    const Tensor of_choices = tensor(rows, problem_.rows, {choices, problem_.hidden_size});

    ops::of_product("gate and up, whose a is x", [&] {
      ops::run_grouped(*gate_up_, stream, {.a = of.x, .c = hidden, .offsets = first_rows, .row_ids = choice_of_row},
                       at(of_gate_up), of.topk_ids, row_of_choice);
    });
    ops::of_product("down", [&] {
      ops::run_grouped(*down_, stream, {.a = hidden, .c = of_choices, .offsets = first_rows}, at(of_down));
    });
    const std::array<Tensor, layer::combine_tensor_count> added{of_choices, row_of_choice, of.topk_weights, of.out};
    combine_.run(stream, {added, nullptr});
  }

 private:
  void check_choices(std::string_view argument, const Tensor& tensor, Format format, std::int64_t tokens) const {
    ops::check_place(argument, tensor, format, {tokens, problem_.top_k}, device_,
                     static_cast<std::size_t>(bits(format)) / 8);
    if (!tensor.is_contiguous()) {
      ops::refuse("{} is not contiguous, expected elements one behind the other", argument);
    }
  }

  MoeProblem problem_;
  DeviceId device_;
  ops::PlanPointer gate_up_;  ///< its calls sort the choices
  ops::PlanPointer down_;
  GroupedWeights gate_up_weights_;
  GroupedWeights down_weights_;
  ops::DeviceCall combine_;
  std::vector<strategies::WorkspacePiece> pieces_;  ///< those of Piece, and behind them the intermediate's
  std::optional<ops::Intermediate> intermediate_;
};

namespace {

const GroupedWeights& where_they_lie(const GroupedWeights& weights) { return weights; }
GroupedWeights where_they_lie(const PackedGroupedWeights& weights) {
  return weights.storage().is_matrices() ? weights.storage().weights() : GroupedWeights{};
}

template <class Weights>
MoeLayer plan_layer(const Device& device, const MoeProblem& problem, const Weights& gate_up, const Weights& down,
                    const MoeOptions& options) {
  validate(problem);
  layer::require_sortable(problem.experts, device.kind());
  ops::PlanPointer of_gate_up = ops::of_product("gate_up", [&] {
    return ops::plan_grouped(device, gate_up_problem(problem), gate_up, options.gate_up,
                             [&](strategies::PlannedCall call, const ops::ProductProblem& sized) {
                               return layer::with_routing(std::move(call), sized, device.kind());
                             });
  });
  ops::PlanPointer of_down =
      ops::of_product("down", [&] { return ops::plan_grouped(device, down_problem(problem), down, options.down); });
  return MoeLayer(std::make_shared<const MoeLayer::Backend>(device, problem, std::move(of_gate_up), std::move(of_down),
                                                            where_they_lie(gate_up), where_they_lie(down),
                                                            options.down.threads));
}

}  // namespace

void MoeLayer::run(Stream stream, const MoeTensors& tensors, void* workspace) const {
  backend_->run(stream, tensors, workspace);
}
std::size_t MoeLayer::workspace_bytes() const { return backend_->workspace_bytes(); }
const MoeProblem& MoeLayer::problem() const { return backend_->problem(); }
LayerProduct MoeLayer::gate_up() const { return LayerProduct(backend_->gate_up()); }
LayerProduct MoeLayer::down() const { return LayerProduct(backend_->down()); }

const std::string& LayerProduct::strategy() const noexcept { return plan_->strategy(); }
std::size_t LayerProduct::workspace_bytes() const noexcept { return plan_->workspace_bytes(); }

MoeLayer plan(const Device& device, const MoeProblem& problem, const PackedGroupedWeights& gate_up,
              const PackedGroupedWeights& down, const MoeOptions& options) {
  return plan_layer(device, problem, gate_up, down, options);
}

MoeLayer plan(const Device& device, const MoeProblem& problem, const GroupedWeights& gate_up,
              const GroupedWeights& down, const MoeOptions& options) {
  return plan_layer(device, problem, gate_up, down, options);
}

}  // namespace thresher
