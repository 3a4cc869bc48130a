// The C interface of the plain product.
#include "ops/c_common.hpp"

struct thresher_gemm : thresher::c::PlanHandle<thresher::Gemm> {};

namespace {

using namespace thresher;
using namespace thresher::c;

GemmProblem problem_of(const thresher_gemm_problem* problem) {
  const thresher_gemm_problem given =
      known(problem, "problem", offsetof(thresher_gemm_problem, bias), thresher_gemm_problem{});
  std::optional<Activation> activation;
  if (given.activation != 0) {
    activation = activation_of(given.activation, nullptr);
  }
  return {.m = given.m,
          .n = given.n,
          .k = given.k,
          .a = format_of(given.a, "problem.a"),
          .b = format_of(given.b, "problem.b"),
          .out = format_of(given.out, "problem.out"),
          .bias = truth(given.bias, "problem.bias"),
          .activation = activation};
}

/// The bias lies on the weights' device.
GemmWeights weights_of(const thresher_matrix* b, const void* bias, thresher_format bias_format) {
  GemmWeights weights{.b = tensor_of(b, "b", OperandRole::weights)};
  const Format of_bias = bias_format_of(bias, bias_format, "bias_format");
  if (bias != nullptr) {
    weights.bias = Tensor::contiguous(const_cast<void*>(bias), of_bias, {weights.b.shape[0]}, weights.b.device);
  }
  return weights;
}

}  // namespace

void thresher_gemm_problem_init(thresher_gemm_problem* problem, uint32_t struct_size) { fill(problem, struct_size); }

thresher_status thresher_gemm_strategies(thresher_device device, char* names, size_t capacity) {
  return guarded([&] { copy_names(gemm_strategies(device_of(device)), names, capacity); });
}

thresher_status thresher_gemm_pack(thresher_device device, const thresher_matrix* b, const void* bias,
                                   thresher_format bias_format, thresher_numerics numerics,
                                   thresher_gemm_weights** weights) {
  return create(weights, "weights", [&] {
    return pack(device_of(device), weights_of(b, bias, bias_format), {.numerics = numerics_of(numerics)});
  });
}

thresher_status thresher_gemm_weights_of_expert(const thresher_grouped_weights* grouped,
                                                thresher_gemm_weights** weights) {
  return create(weights, "weights", [&] { return PackedGemmWeights(required(grouped, "grouped").packed); });
}

void thresher_gemm_weights_destroy(thresher_gemm_weights* weights) { delete weights; }

thresher_status thresher_gemm_weights_info(const thresher_gemm_weights* weights, thresher_packed_info* info) {
  return give_info(weights, info, [](const PackedGemmWeights& packed, thresher_packed_info& value) {
    value.experts = 1;
    value.matrices = 1;
    value.has_bias = packed.has_bias() ? 1 : 0;
  });
}

thresher_status thresher_gemm_plan(thresher_device device, const thresher_gemm_problem* problem,
                                   const thresher_gemm_weights* weights, const thresher_dual_gemm_options* options,
                                   thresher_gemm** plan_out) {
  return plan_packed(device, weights, options, plan_out, [&] { return problem_of(problem); });
}

thresher_status thresher_gemm_plan_raw(thresher_device device, const thresher_gemm_problem* problem,
                                       const thresher_matrix* b, const void* bias, thresher_format bias_format,
                                       const thresher_dual_gemm_options* options, thresher_gemm** plan_out) {
  return create_plan(device, plan_out, [&](const Device& on) {
    return plan(on, problem_of(problem), weights_of(b, bias, bias_format), options_of(options));
  });
}

void thresher_gemm_destroy(thresher_gemm* plan_handle) { delete plan_handle; }
size_t thresher_gemm_workspace_bytes(const thresher_gemm* plan_handle) { return workspace_bytes_of(plan_handle); }
const char* thresher_gemm_strategy(const thresher_gemm* plan_handle) { return strategy_of(plan_handle); }

thresher_status thresher_gemm_run(const thresher_gemm* plan_handle, void* stream, const thresher_matrix* a,
                                  const thresher_matrix* c, void* workspace) {
  return run_matrices(plan_handle, stream, a, "a", c, "c", workspace);
}

thresher_status thresher_gemm_run_flat(const thresher_gemm* plan_handle, void* stream, int64_t rows, const void* a,
                                       int64_t a_row_stride, const void* a_scales, int32_t a_scale_layout,
                                       const float* a_global_scale, void* c, int64_t c_row_stride, void* workspace) {
  return act_on(plan_handle, [&](const thresher_gemm& plan) {
    const GemmProblem& problem = plan.planned.problem();
    plan.planned.run(
        Stream{stream},
        tokens_of(problem.a, rows, problem.k, {a, a_row_stride, a_scales, a_scale_layout, a_global_scale}, plan.device),
        matrix_of(c, problem.out, rows, problem.n, c_row_stride, plan.device), workspace);
  });
}
