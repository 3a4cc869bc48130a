// The C interface of quantization.
#include "ops/c_common.hpp"

struct thresher_quantize : thresher::c::PlanHandle<thresher::Quantize> {};

namespace {

using namespace thresher;
using namespace thresher::c;

thresher_quantize_problem default_quantize_problem() {
  const QuantizeProblem defaults;
  thresher_quantize_problem problem{};
  problem.x = static_cast<thresher_format>(defaults.x);
  problem.out = static_cast<thresher_format>(defaults.out);
  return problem;
}

QuantizeProblem quantize_problem_of(const thresher_quantize_problem* problem) {
  const thresher_quantize_problem given =
      known(problem, "problem", sizeof(thresher_quantize_problem), default_quantize_problem());
  require_unset(given.reserved, "problem.reserved");
  return {.rows = given.rows,
          .columns = given.columns,
          .x = format_of(given.x, "problem.x"),
          .out = format_of(given.out, "problem.out")};
}

}  // namespace

void thresher_quantize_problem_init(thresher_quantize_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_quantize_problem());
}

thresher_status thresher_quantize_plan(thresher_device device, const thresher_quantize_problem* problem,
                                       int32_t threads, thresher_quantize** plan_out) {
  return create_plan(device, plan_out, [&](const Device& on) {
    return plan(on, quantize_problem_of(problem), QuantizeOptions{.threads = threads});
  });
}

void thresher_quantize_destroy(thresher_quantize* plan_handle) { delete plan_handle; }

thresher_status thresher_quantize_run(const thresher_quantize* plan_handle, void* stream, const thresher_matrix* x,
                                      const thresher_matrix* out) {
  return act_on(plan_handle, [&](const thresher_quantize& plan) {
    plan.planned.run(Stream{stream}, tensor_of(x, "x", OperandRole::tokens), output_of(out, "out"));
  });
}

thresher_status thresher_quantize_run_flat(const thresher_quantize* plan_handle, void* stream, int64_t rows,
                                           const void* x, int64_t x_row_stride, void* out, int64_t out_row_stride,
                                           float* scales, int32_t scale_layout, int32_t scales_are_powers_of_two) {
  return act_on(plan_handle, [&](const thresher_quantize& plan) {
    const QuantizeProblem& problem = plan.planned.problem();
    Tensor written =
        tokens_of(problem.out, rows, problem.columns, {out, out_row_stride, scales, scale_layout}, plan.device);
    written.scales.powers_of_two = truth(scales_are_powers_of_two, "scales_are_powers_of_two");
    plan.planned.run(Stream{stream}, matrix_of(x, problem.x, rows, problem.columns, x_row_stride, plan.device),
                     written);
  });
}
