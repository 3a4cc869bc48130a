// The C interface of the dual GEMM.
#include "ops/c_common.hpp"

struct thresher_dual_gemm : thresher::c::PlanHandle<thresher::DualGemm> {};

namespace {

using namespace thresher;
using namespace thresher::c;

DualGemmProblem problem_of(const thresher_dual_gemm_problem* problem) {
  const thresher_dual_gemm_problem given = known(problem, "problem", offsetof(thresher_dual_gemm_problem, activation),
                                                 with_default_activation<thresher_dual_gemm_problem>());
  return {.m = given.m,
          .n = given.n,
          .k = given.k,
          .a = format_of(given.a, "problem.a"),
          .b = format_of(given.b, "problem.b"),
          .out = format_of(given.out, "problem.out"),
          .activation = activation_of(given.activation, given.alpha, given.limit, given.up_offset)};
}

Tensor a_of(const thresher_dual_gemm& plan, std::int64_t rows, const FlatMatrix& flat) {
  const DualGemmProblem& problem = plan.planned.problem();
  return tokens_of(problem.a, rows, problem.k, flat, plan.device);
}

Tensor c_of(const thresher_dual_gemm& plan, std::int64_t rows, void* c, std::int64_t row_stride) {
  const DualGemmProblem& problem = plan.planned.problem();
  return matrix_of(c, problem.out, rows, problem.n, row_stride, plan.device);
}

}  // namespace

void thresher_dual_gemm_problem_init(thresher_dual_gemm_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, with_default_activation<thresher_dual_gemm_problem>());
}

void thresher_dual_gemm_options_init(thresher_dual_gemm_options* options, uint32_t struct_size) {
  fill(options, struct_size);
}

thresher_status thresher_dual_gemm_strategies(thresher_device device, char* names, size_t capacity) {
  return guarded([&] { copy_names(dual_gemm_strategies(device_of(device)), names, capacity); });
}

thresher_status thresher_dual_gemm_pack(thresher_device device, const thresher_matrix* b1_gate,
                                        const thresher_matrix* b2_up, thresher_numerics numerics,
                                        thresher_dual_gemm_weights** weights) {
  return create(weights, "weights", [&] {
    return pack(device_of(device), tensor_of(b1_gate, "b1 (gate)", OperandRole::weights),
                tensor_of(b2_up, "b2 (up)", OperandRole::weights), {.numerics = numerics_of(numerics)});
  });
}

thresher_status thresher_dual_gemm_weights_save(const thresher_dual_gemm_weights* weights, const char* path) {
  return guarded([&] {
    required(path, "path");
    save_packed(required(weights, "weights").packed, path);
  });
}

thresher_status thresher_dual_gemm_weights_load(thresher_device device, const char* path,
                                                thresher_dual_gemm_weights** weights) {
  return create(weights, "weights", [&] {
    required(path, "path");
    return load_packed(device_of(device), path);
  });
}

void thresher_dual_gemm_weights_destroy(thresher_dual_gemm_weights* weights) { delete weights; }

thresher_status thresher_dual_gemm_weights_info(const thresher_dual_gemm_weights* weights, thresher_packed_info* info) {
  return give_info(weights, info, [](const PackedWeights&, thresher_packed_info& value) { value.matrices = 2; });
}

thresher_status thresher_dual_gemm_weights_block_bytes(const thresher_dual_gemm_weights* weights, size_t* bytes) {
  return give_block_bytes(weights, bytes);
}

thresher_status thresher_dual_gemm_weights_to_block(const thresher_dual_gemm_weights* weights, void* block,
                                                    size_t bytes) {
  return write_block(weights, block, bytes);
}

thresher_status thresher_dual_gemm_weights_from_block(thresher_device device, const void* block, size_t bytes,
                                                      thresher_packed_check check,
                                                      thresher_dual_gemm_weights** weights) {
  return create(weights, "weights",
                [&] { return from_block(device_of(device), block_of(block, bytes), check_of(check)); });
}

thresher_status thresher_dual_gemm_plan(thresher_device device, const thresher_dual_gemm_problem* problem,
                                        const thresher_dual_gemm_weights* weights,
                                        const thresher_dual_gemm_options* options, thresher_dual_gemm** plan_out) {
  return plan_packed(device, weights, options, plan_out, [&] { return problem_of(problem); });
}

thresher_status thresher_dual_gemm_plan_raw(thresher_device device, const thresher_dual_gemm_problem* problem,
                                            const thresher_matrix* b1_gate, const thresher_matrix* b2_up,
                                            const thresher_dual_gemm_options* options, thresher_dual_gemm** plan_out) {
  return create_plan(device, plan_out, [&](const Device& on) {
    return plan(on, problem_of(problem), tensor_of(b1_gate, "b1 (gate)", OperandRole::weights),
                tensor_of(b2_up, "b2 (up)", OperandRole::weights), options_of(options));
  });
}

void thresher_dual_gemm_destroy(thresher_dual_gemm* plan_handle) { delete plan_handle; }
size_t thresher_dual_gemm_workspace_bytes(const thresher_dual_gemm* plan_handle) {
  return workspace_bytes_of(plan_handle);
}
const char* thresher_dual_gemm_strategy(const thresher_dual_gemm* plan_handle) { return strategy_of(plan_handle); }

thresher_status thresher_dual_gemm_run(const thresher_dual_gemm* plan_handle, void* stream, const thresher_matrix* a,
                                       const thresher_matrix* c, void* workspace) {
  return run_matrices(plan_handle, stream, a, "a", c, "c", workspace);
}

thresher_status thresher_dual_gemm_prepare(const thresher_dual_gemm* plan_handle, void* stream,
                                           const thresher_matrix* a, void* workspace) {
  return act_on(plan_handle, [&](const thresher_dual_gemm& plan) {
    plan.planned.prepare(Stream{stream}, tensor_of(a, "a", OperandRole::tokens), workspace);
  });
}

thresher_status thresher_dual_gemm_run_prepared(const thresher_dual_gemm* plan_handle, void* stream,
                                                const thresher_matrix* a, const thresher_matrix* c, void* workspace) {
  return act_on(plan_handle, [&](const thresher_dual_gemm& plan) {
    plan.planned.run_prepared(Stream{stream}, tensor_of(a, "a", OperandRole::tokens), output_of(c, "c"), workspace);
  });
}

thresher_status thresher_dual_gemm_pack_flat(int32_t device_kind, int32_t device_ordinal, int32_t format, int64_t n,
                                             int64_t k, const void* b1_gate, int64_t b1_row_stride,
                                             const void* b1_scales, const float* b1_global_scale, const void* b2_up,
                                             int64_t b2_row_stride, const void* b2_scales, const float* b2_global_scale,
                                             int32_t scale_layout, int32_t numerics,
                                             thresher_dual_gemm_weights** weights) {
  return create(weights, "weights", [&] {
    const Device device = device_of({device_kind, device_ordinal});
    const Format of = format_of(format, "format");
    return pack(device,
                weights_of(of, n, k, {b1_gate, b1_row_stride, b1_scales, scale_layout, b1_global_scale}, device.id()),
                weights_of(of, n, k, {b2_up, b2_row_stride, b2_scales, scale_layout, b2_global_scale}, device.id()),
                {.numerics = numerics_of(numerics)});
  });
}

thresher_status thresher_dual_gemm_plan_flat(const thresher_dual_gemm_weights* weights, int64_t m, int32_t a_format,
                                             int32_t out_format, int32_t activation, const float* activation_constants,
                                             const char* strategy, const char* knobs, int32_t threads,
                                             thresher_dual_gemm** plan_out) {
  return guarded([&] {
    required(plan_out, "plan");
    const PackedWeights& packed = required(weights, "weights").packed;
    const DualGemmProblem problem{.m = m,
                                  .n = packed.n(),
                                  .k = packed.k(),
                                  .a = format_of(a_format, "a_format"),
                                  .b = packed.format(),
                                  .out = format_of(out_format, "out_format"),
                                  .activation = activation_of(activation, activation_constants)};
    const DualGemmOptions options = options_of(strategy, knobs, threads);
    *plan_out = new thresher_dual_gemm{plan(packed.device(), problem, packed, options), packed.device().id()};
  });
}

thresher_status thresher_dual_gemm_plan_raw_flat(int32_t device_kind, int32_t device_ordinal, int64_t m, int64_t n,
                                                 int64_t k, int32_t a_format, int32_t b_format, int32_t out_format,
                                                 int32_t activation, const float* activation_constants,
                                                 const void* b1_gate, int64_t b1_row_stride, const void* b1_scales,
                                                 const float* b1_global_scale, const void* b2_up, int64_t b2_row_stride,
                                                 const void* b2_scales, const float* b2_global_scale,
                                                 int32_t scale_layout, const char* strategy, const char* knobs,
                                                 int32_t threads, thresher_dual_gemm** plan_out) {
  return create_plan({device_kind, device_ordinal}, plan_out, [&](const Device& device) {
    const DualGemmProblem problem{.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = format_of(a_format, "a_format"),
                                  .b = format_of(b_format, "b_format"),
                                  .out = format_of(out_format, "out_format"),
                                  .activation = activation_of(activation, activation_constants)};
    const DeviceId id = device.id();
    return plan(device, problem,
                weights_of(problem.b, n, k, {b1_gate, b1_row_stride, b1_scales, scale_layout, b1_global_scale}, id),
                weights_of(problem.b, n, k, {b2_up, b2_row_stride, b2_scales, scale_layout, b2_global_scale}, id),
                options_of(strategy, knobs, threads));
  });
}

thresher_status thresher_dual_gemm_run_flat(const thresher_dual_gemm* plan_handle, void* stream, int64_t rows,
                                            const void* a, int64_t a_row_stride, const void* a_scales,
                                            int32_t a_scale_layout, const float* a_global_scale, void* c,
                                            int64_t c_row_stride, void* workspace) {
  return act_on(plan_handle, [&](const thresher_dual_gemm& plan) {
    plan.planned.run(Stream{stream}, a_of(plan, rows, {a, a_row_stride, a_scales, a_scale_layout, a_global_scale}),
                     c_of(plan, rows, c, c_row_stride), workspace);
  });
}

thresher_status thresher_dual_gemm_prepare_flat(const thresher_dual_gemm* plan_handle, void* stream, int64_t rows,
                                                const void* a, int64_t a_row_stride, const void* a_scales,
                                                int32_t a_scale_layout, const float* a_global_scale, void* workspace) {
  return act_on(plan_handle, [&](const thresher_dual_gemm& plan) {
    plan.planned.prepare(Stream{stream}, a_of(plan, rows, {a, a_row_stride, a_scales, a_scale_layout, a_global_scale}),
                         workspace);
  });
}

thresher_status thresher_dual_gemm_run_prepared_flat(const thresher_dual_gemm* plan_handle, void* stream, int64_t rows,
                                                     const void* a, int64_t a_row_stride, const void* a_scales,
                                                     int32_t a_scale_layout, const float* a_global_scale, void* c,
                                                     int64_t c_row_stride, void* workspace) {
  return act_on(plan_handle, [&](const thresher_dual_gemm& plan) {
    plan.planned.run_prepared(Stream{stream},
                              a_of(plan, rows, {a, a_row_stride, a_scales, a_scale_layout, a_global_scale}),
                              c_of(plan, rows, c, c_row_stride), workspace);
  });
}
