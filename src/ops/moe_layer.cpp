#include "thresher/moe_layer.hpp"

#include <array>
#include <optional>
#include <utility>

#include "core/integers.hpp"
#include "ops/cuda_call.hpp"
#include "ops/layer_parts.hpp"
#include "ops/product_plan.hpp"
#include "runtime/known_places.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/moe_layer/tensors.hpp"

namespace thresher {
namespace {

namespace layer = strategies::moe_layer;

void check_quantized_x(const MoeProblem& problem, Format quantized) {
  if (quantized != Format::fp8_row && quantized != Format::fp8_block) {
    ops::refuse("problem.quantized_x is {}, expected fp8_row, fp8_block or none", name(quantized));
  }
  if (problem.x != Format::fp16 && problem.x != Format::bf16) {
    ops::refuse("problem.x is {} with problem.quantized_x, expected fp16 or bf16", name(problem.x));
  }
  ops::check_multiples("hidden_size", problem.hidden_size, {quantized});
}

void validate(const MoeProblem& problem) {
  ops::check_unscaled_output("problem.rows", problem.rows);
  ops::check_extent("experts", problem.experts, 1);
  ops::check_extent("tokens", problem.tokens, 0);
  ops::check_extent("top_k", problem.top_k, 1);
  ops::check_extent("expected_rows", problem.expected_rows, 0);
  if (size_product(problem.tokens, problem.top_k) > ops::max_extent) {
    ops::refuse("problem.tokens times problem.top_k is {} times {}, expected at most {}: rows are counted in int32",
                problem.tokens, problem.top_k, ops::max_extent);
  }
  ops::check_layer(problem, "problem.tokens times problem.top_k", problem.tokens * problem.top_k);
  if (problem.quantized_x) {
    check_quantized_x(problem, *problem.quantized_x);
  }
}

/// Bytes of so many rows in the workspace.
std::size_t row_bytes(std::int64_t rows, std::int64_t columns, Format format) {
  return static_cast<std::size_t>(size_product(size_product(rows, columns), bits(format) / 8));
}

/// The pieces of the workspace, in this order. The intermediate's are behind them.
enum Piece : std::size_t { offsets, row_ids, inverse, rows, of_gate_up, of_down };

}  // namespace

class MoeLayer::Backend : public ops::PlannedLayer<MoeProblem> {
 public:
  /// Calls read these weights in place.
  Backend(const Device& device, const MoeProblem& problem, ops::PlanPointer gate_up, ops::PlanPointer down,
          const GroupedWeights& gate_up_weights, const GroupedWeights& down_weights, int threads)
      : PlannedLayer(device, problem),
        gate_up_(std::move(gate_up)),
        down_(std::move(down)),
        gate_up_weights_(gate_up_weights),
        down_weights_(down_weights),
        combine_(device.id(), layer::combine_call(problem, device.kind(), down_->settles(), threads)) {
    const std::int64_t choices = problem.tokens * problem.top_k;
    for (const auto& [name, size] :
         {std::pair{"offsets", row_bytes(problem.experts + 1, 1, Format::int32)},
          std::pair{"row ids", row_bytes(choices, 1, Format::int32)},
          std::pair{"inverse", row_bytes(choices, 1, Format::int32)},
          std::pair{"rows", row_bytes(choices, problem.hidden_size, problem.rows)},
          std::pair{"of gate and up", gate_up_->workspace_bytes()}, std::pair{"of down", down_->workspace_bytes()}}) {
      strategies::add_piece(pieces_, name, size);
    }
    intermediate_.emplace(device, problem.intermediate, problem.intermediate_scale, choices, problem.intermediate_size,
                          pieces_);
    if (problem.quantized_x) {
      quantized_x_.emplace(device, *problem.quantized_x, 1.0F, problem.tokens, problem.hidden_size, pieces_,
                           ops::RowOrder::by_id);
    }
  }

  [[nodiscard]] const ops::ProductPlan& gate_up() const noexcept { return *gate_up_; }
  [[nodiscard]] const ops::ProductPlan& down() const noexcept { return *down_; }

  void run(Stream stream, const MoeTensors& of, void* workspace) const {
    validate_run(of, workspace);
    const std::int64_t tokens = of.x.shape[0];
    if (tokens == 0) {
      return;
    }
    require_on_gpu({{"x", of.x.data},
                    {"topk_ids", of.topk_ids.data},
                    {"topk_weights", of.topk_weights.data},
                    {"out", of.out.data},
                    {"workspace", workspace}});
    const runtime::ValidatedPointers validated;
    const std::int64_t choices = tokens * problem_.top_k;
    const auto tensor = [&](Piece piece, Format format, std::initializer_list<std::int64_t> shape) {
      return Tensor::contiguous(at(workspace, piece), format, shape, device_);
    };
    const Tensor first_rows = tensor(offsets, Format::int32, {problem_.experts + 1});
    const Tensor choice_of_row = tensor(row_ids, Format::int32, {choices});
    const Tensor row_of_choice = tensor(inverse, Format::int32, {tokens, problem_.top_k});
    const Tensor hidden = intermediate_->tensor(choices, workspace);
    const Tensor of_choices = tensor(rows, problem_.rows, {choices, problem_.hidden_size});

    ops::of_product("gate and up, whose a is x", [&] {
      const Tensor a = quantized_x_ ? quantized_x_->tensor(tokens, workspace) : of.x;
      ops::run_grouped(*gate_up_, stream, {.a = a, .c = hidden, .offsets = first_rows, .row_ids = choice_of_row},
                       at(workspace, of_gate_up), {of.topk_ids, row_of_choice, quantized_x_ ? of.x : Tensor{}});
    });
    ops::of_product("down", [&] {
      ops::run_grouped(*down_, stream, {.a = hidden, .c = of_choices, .offsets = first_rows}, at(workspace, of_down));
    });
    const std::array<Tensor, layer::combine_tensor_count> combined{of_choices, row_of_choice, of.topk_weights, of.out};
    combine_.run(stream, {combined, nullptr});
  }

 private:
  void validate_run(const MoeTensors& of, const void* workspace) const {
    check_x(of.x);
    if (problem_.quantized_x) {
      ops::check_operand("x", of.x, problem_.x, {of.x.shape[0], problem_.hidden_size}, device_);
    }
    const std::int64_t tokens = of.x.shape[0];
    ops::check_list("topk_ids", of.topk_ids, Format::int32, {tokens, problem_.top_k}, device_);
    ops::check_list("topk_weights", of.topk_weights, Format::fp32, {tokens, problem_.top_k}, device_);
    check_out(of.out, tokens,
              {{"x", &of.x},
               {"topk_ids", &of.topk_ids},
               {"topk_weights", &of.topk_weights},
               {"b1 of gate_up", &gate_up_weights_.b1},
               {"b2 of gate_up", &gate_up_weights_.b2},
               {"bias1 of gate_up", &gate_up_weights_.bias1},
               {"bias2 of gate_up", &gate_up_weights_.bias2},
               {"b1 of down", &down_weights_.b1},
               {"bias1 of down", &down_weights_.bias1}},
              workspace);
  }

  ops::PlanPointer gate_up_;  ///< its calls permute by expert
  ops::PlanPointer down_;
  GroupedWeights gate_up_weights_;
  GroupedWeights down_weights_;
  ops::DeviceCall combine_;
  std::optional<ops::Intermediate> intermediate_;
  std::optional<ops::Intermediate> quantized_x_;
};

namespace {

/// The weights that calls read in place.
const GroupedWeights& in_place(const GroupedWeights& weights) { return weights; }
GroupedWeights in_place(const PackedGroupedWeights& weights) {
  return weights.storage().is_matrices() ? weights.storage().weights() : GroupedWeights{};
}

template <class Weights>
MoeLayer plan_layer(const Device& device, const MoeProblem& problem, const Weights& gate_up, const Weights& down,
                    const MoeOptions& options) {
  validate(problem);
  layer::require_sortable(problem.experts, device.kind());
  std::optional<layer::QuantizedTokens> tokens;
  if (problem.quantized_x) {
    tokens = {.from = problem.x, .threads = options.gate_up.threads};
  }
  const auto with_routing = [&](strategies::PlannedCall call, const ops::ProductProblem& sized) {
    return layer::with_routing(std::move(call), sized, device.kind(), tokens);
  };
  const auto settled = [](strategies::PlannedCall call, const ops::ProductProblem&) {
    return layer::with_settled_groups(std::move(call));
  };
  ops::PlanPointer gate_up_plan = ops::of_product("gate_up", [&] {
    return ops::plan_grouped(device, gate_up_problem(problem), gate_up, options.gate_up, with_routing);
  });
  ops::PlanPointer down_plan = ops::of_product("down", [&] {
    return ops::plan_grouped(device, down_problem(problem), down, options.down,
                             gate_up_plan->settles() ? settled : ops::CallChange{});
  });
  return MoeLayer(std::make_shared<const MoeLayer::Backend>(device, problem, std::move(gate_up_plan),
                                                            std::move(down_plan), in_place(gate_up), in_place(down),
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
