// The C interface of the layers.
#include "ops/c_common.hpp"

struct thresher_gated_mlp_weights {
  thresher::PackedGatedMlpWeights packed;
};

struct thresher_gated_mlp : thresher::c::PlanHandle<thresher::GatedMlp> {};

struct thresher_moe : thresher::c::PlanHandle<thresher::MoeLayer> {};

namespace {

using namespace thresher;
using namespace thresher::c;

template <class Problem>
Problem default_layer() {
  Problem problem = with_default_activation<Problem>();
  problem.intermediate_scale = 1.0F;
  return problem;
}

GatedMlpProblem problem_of(const thresher_gated_mlp_problem* problem) {
  const thresher_gated_mlp_problem given = known(problem, "problem", offsetof(thresher_gated_mlp_problem, activation),
                                                 default_layer<thresher_gated_mlp_problem>());
  require_unset(given.reserved, "problem.reserved");
  return {.tokens = given.tokens,
          .hidden_size = given.hidden_size,
          .intermediate_size = given.intermediate_size,
          .x = format_of(given.x, "problem.x"),
          .gate_up = format_of(given.gate_up, "problem.gate_up"),
          .intermediate = format_of(given.intermediate, "problem.intermediate"),
          .intermediate_scale = given.intermediate_scale,
          .down = format_of(given.down, "problem.down"),
          .out = format_of(given.out, "problem.out"),
          .activation = activation_of(given.activation, given.alpha, given.limit, given.up_offset)};
}

MoeProblem problem_of(const thresher_moe_problem* problem) {
  const thresher_moe_problem given =
      known(problem, "problem", offsetof(thresher_moe_problem, activation), default_layer<thresher_moe_problem>());
  require_unset(given.reserved, "problem.reserved");
  const Format quantized_x = format_of(given.quantized_x, "problem.quantized_x");
  return {.experts = given.experts,
          .tokens = given.tokens,
          .top_k = given.top_k,
          .hidden_size = given.hidden_size,
          .intermediate_size = given.intermediate_size,
          .expected_rows = given.expected_rows,
          .x = format_of(given.x, "problem.x"),
          .gate_up = format_of(given.gate_up, "problem.gate_up"),
          .intermediate = format_of(given.intermediate, "problem.intermediate"),
          .intermediate_scale = given.intermediate_scale,
          .down = format_of(given.down, "problem.down"),
          .rows = format_of(given.rows, "problem.rows"),
          .out = format_of(given.out, "problem.out"),
          .activation = activation_of(given.activation, given.alpha, given.limit, given.up_offset),
          .gate_up_bias = truth(given.gate_up_bias, "problem.gate_up_bias"),
          .down_bias = truth(given.down_bias, "problem.down_bias"),
          .quantized_x = given.quantized_x == 0 ? std::nullopt : std::optional(quantized_x)};
}

void run_moe(const thresher_moe& plan, void* stream, const Tensor& x, const int32_t* topk_ids,
             const float* topk_weights, const Tensor& out, void* workspace) {
  const auto of_choices = [&](const void* data, Format format) {
    return Tensor::contiguous(const_cast<void*>(data), format, {x.shape[0], plan.planned.problem().top_k}, plan.device);
  };
  plan.planned.run(Stream{stream},
                   {.x = x,
                    .topk_ids = of_choices(topk_ids, Format::int32),
                    .topk_weights = of_choices(topk_weights, Format::fp32),
                    .out = out},
                   workspace);
}

}  // namespace

void thresher_gated_mlp_problem_init(thresher_gated_mlp_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_layer<thresher_gated_mlp_problem>());
}

void thresher_moe_problem_init(thresher_moe_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_layer<thresher_moe_problem>());
}

thresher_status thresher_gated_mlp_pack(thresher_device device, const thresher_matrix* gate, const thresher_matrix* up,
                                        const thresher_matrix* down, thresher_numerics numerics,
                                        thresher_gated_mlp_weights** weights) {
  return create(weights, "weights", [&] {
    const GatedMlpWeights given{.gate = gate == nullptr ? Tensor{} : tensor_of(gate, "gate", OperandRole::weights),
                                .up = tensor_of(up, "up", OperandRole::weights),
                                .down = tensor_of(down, "down", OperandRole::weights)};
    return pack(device_of(device), given, {.numerics = numerics_of(numerics)});
  });
}

thresher_status thresher_gated_mlp_weights_of_parts(const thresher_dual_gemm_weights* gate_up,
                                                    const thresher_gemm_weights* down,
                                                    thresher_gated_mlp_weights** weights) {
  return create(weights, "weights", [&] {
    return PackedGatedMlpWeights(required(gate_up, "gate_up").packed, required(down, "down").packed);
  });
}

thresher_status thresher_gated_mlp_weights_of_up(const thresher_gemm_weights* up, const thresher_gemm_weights* down,
                                                 thresher_gated_mlp_weights** weights) {
  return create(weights, "weights",
                [&] { return PackedGatedMlpWeights(required(up, "up").packed, required(down, "down").packed); });
}

void thresher_gated_mlp_weights_destroy(thresher_gated_mlp_weights* weights) { delete weights; }

thresher_status thresher_gated_mlp_plan(thresher_device device, const thresher_gated_mlp_problem* problem,
                                        const thresher_gated_mlp_weights* weights,
                                        const thresher_dual_gemm_options* gate_up_options,
                                        const thresher_dual_gemm_options* down_options, thresher_gated_mlp** plan_out) {
  return create_plan(device, plan_out, [&](const Device& on) {
    return plan(on, problem_of(problem), required(weights, "weights").packed,
                {.gate_up = options_of(gate_up_options), .down = options_of(down_options)});
  });
}

void thresher_gated_mlp_destroy(thresher_gated_mlp* plan_handle) { delete plan_handle; }
size_t thresher_gated_mlp_workspace_bytes(const thresher_gated_mlp* plan_handle) {
  return workspace_bytes_of(plan_handle);
}

thresher_status thresher_gated_mlp_run(const thresher_gated_mlp* plan_handle, void* stream, const thresher_matrix* x,
                                       const thresher_matrix* out, void* workspace) {
  return run_matrices(plan_handle, stream, x, "x", out, "out", workspace);
}

thresher_status thresher_gated_mlp_run_flat(const thresher_gated_mlp* plan_handle, void* stream, int64_t rows,
                                            const void* x, int64_t x_row_stride, const void* x_scales,
                                            int32_t x_scale_layout, const float* x_global_scale, void* out,
                                            int64_t out_row_stride, void* workspace) {
  return act_on(plan_handle, [&](const thresher_gated_mlp& plan) {
    const GatedMlpProblem& problem = plan.planned.problem();
    plan.planned.run(Stream{stream},
                     tokens_of(problem.x, rows, problem.hidden_size,
                               {x, x_row_stride, x_scales, x_scale_layout, x_global_scale}, plan.device),
                     matrix_of(out, problem.out, rows, problem.hidden_size, out_row_stride, plan.device), workspace);
  });
}

thresher_status thresher_moe_plan(thresher_device device, const thresher_moe_problem* problem,
                                  const thresher_grouped_weights* gate_up, const thresher_grouped_weights* down,
                                  const thresher_dual_gemm_options* gate_up_options,
                                  const thresher_dual_gemm_options* down_options, thresher_moe** plan_out) {
  return create_plan(device, plan_out, [&](const Device& on) {
    const thresher_grouped_weights& of_gate_up = required(gate_up, "gate_up");
    return plan(on, problem_of(problem), of_gate_up.packed, required(down, "down").packed,
                {.gate_up = options_of(gate_up_options), .down = options_of(down_options)});
  });
}

void thresher_moe_destroy(thresher_moe* plan_handle) { delete plan_handle; }
size_t thresher_moe_workspace_bytes(const thresher_moe* plan_handle) { return workspace_bytes_of(plan_handle); }

thresher_status thresher_moe_run(const thresher_moe* plan_handle, void* stream, const thresher_matrix* x,
                                 const int32_t* topk_ids, const float* topk_weights, const thresher_matrix* out,
                                 void* workspace) {
  return act_on(plan_handle, [&](const thresher_moe& plan) {
    run_moe(plan, stream, tensor_of(x, "x", OperandRole::tokens), topk_ids, topk_weights, output_of(out, "out"),
            workspace);
  });
}

thresher_status thresher_moe_run_flat(const thresher_moe* plan_handle, void* stream, int64_t rows, const void* x,
                                      int64_t x_row_stride, const void* x_scales, int32_t x_scale_layout,
                                      const float* x_global_scale, const int32_t* topk_ids, const float* topk_weights,
                                      void* out, int64_t out_row_stride, void* workspace) {
  return act_on(plan_handle, [&](const thresher_moe& plan) {
    const MoeProblem& problem = plan.planned.problem();
    run_moe(plan, stream,
            tokens_of(problem.x, rows, problem.hidden_size, {x, x_row_stride, x_scales, x_scale_layout, x_global_scale},
                      plan.device),
            topk_ids, topk_weights, matrix_of(out, problem.out, rows, problem.hidden_size, out_row_stride, plan.device),
            workspace);
  });
}
