#pragma once
/// A problem of the layer of experts or of the gated MLP in the arena.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arena/gemm/routing.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/problem.hpp"
#include "core/integers.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::arena {

/// A layer of a suite: what is computed, how the router chooses, and how the weights are given. A gated MLP is a layer
/// of one expert that every token chooses, whose rows are not rounded; it has neither choices nor biases.
struct LayerTask {
  MoeProblem problem;
  Routing routing = Routing::uniform;
  std::int64_t total_experts = 0;      ///< there are; those beyond the layer's are somewhere else
  std::int64_t skipped = 0;            ///< of so many choices one is of no expert at all; 0: none is
  std::int64_t repeated = 0;           ///< of so many tokens one has an expert twice; 0: none has
  std::optional<GateUpOrder> order{};  ///< gate and up in one tensor
  Format bias_format = Format::bf16;   ///< where there are biases
  ScaleLayout scale_layout = ScaleLayout::row_major;
  bool is_dense = false;  ///< a gated MLP
  bool operator==(const LayerTask&) const = default;

  [[nodiscard]] static auto members(auto& task) {
    return std::tie(task.problem, task.routing, task.total_experts, task.skipped, task.repeated, task.order,
                    task.bias_format, task.scale_layout, task.is_dense);
  }

  [[nodiscard]] std::int64_t choices() const noexcept { return size_product(problem.tokens, problem.top_k); }
};

/// The formats between the products.
inline constexpr std::array intermediate_formats{Format::fp16,    Format::bf16,      Format::fp8_tensor,
                                                 Format::fp8_row, Format::fp8_block, Format::nvfp4};

[[nodiscard]] const Operation& moe_layer_operation();
[[nodiscard]] const Operation& gated_mlp_operation();

/// The task with as many expected rows as its tokens bring where the router has no favourites.
[[nodiscard]] LayerTask completed(LayerTask task);

/// Hidden size and intermediate size are multiples of these.
struct LayerMultiples {
  std::int64_t hidden = 1;
  std::int64_t intermediate = 1;
};
[[nodiscard]] LayerMultiples multiples_of(const MoeProblem& problem);

/// The task with the next larger sizes that its formats take.
[[nodiscard]] LayerTask fitted(LayerTask task);

/// Why no router chooses so, in one clause; empty when one can.
[[nodiscard]] std::string choices_obstacle(const LayerTask& task);

/// A gated MLP, and what it is.
[[nodiscard]] LayerTask gated_mlp_task(const GatedMlpProblem& problem,
                                       ScaleLayout scale_layout = ScaleLayout::row_major);
[[nodiscard]] GatedMlpProblem gated_mlp_of(const LayerTask& task);

/// The products, without rows of their own: how their weights are given and drawn.
[[nodiscard]] ProductTask gate_up_of(const LayerTask& task);
[[nodiscard]] ProductTask down_of(const LayerTask& task);

/// The task as a problem of its operation.
[[nodiscard]] Problem problem_of(LayerTask task);

/// "128x768x2048 bf16*bf16->bf16*bf16->bf16 16 tokens (8 of 128 uniform)": experts, intermediate size and hidden size;
/// formats of x, of gate and up, of the intermediate, of down and of out; followed by what is not the default. A
/// gated MLP is "16x768x2048 …", with tokens in place of experts.
[[nodiscard]] std::string label_of(const LayerTask& task);

}  // namespace thresher::arena
