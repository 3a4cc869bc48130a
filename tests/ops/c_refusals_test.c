/* Whatever a struct of the C interface holds is used or refused: every member with values that make no sense. Exit
 * status 0 when all holds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "thresher/thresher.h"

static int failures = 0;

static void expect_refused(thresher_status status, const char* sentence, int line) {
  const char* const said = status == THRESHER_OK ? "it is taken" : thresher_last_error();
  if (strcmp(said, sentence) != 0) {
    printf("FAILED: line %d: expected: %s\n  but: %s\n", line, sentence, said);
    ++failures;
  }
}

static void expect_ok(thresher_status status, int line) {
  if (status != THRESHER_OK) {
    printf("FAILED: line %d: %s\n", line, thresher_last_error());
    ++failures;
  }
}

/* `call` with `it`, a struct that is right but for `change`. */
#define REFUSED(base, change, call, sentence) \
  do {                                        \
    __typeof__(base) it = base;               \
    change;                                   \
    expect_refused(call, sentence, __LINE__); \
  } while (0)
#define TAKEN(call) expect_ok(call, __LINE__)

enum { m = 3, n = 8, k = 64, experts = 2, queries = 2, keys = 3 };
static const int64_t huge = INT64_C(1) << 62;
static thresher_device cpu = {THRESHER_CPU, 0};
static _Alignas(256) uint16_t values[experts * 2 * 64 * 64];
static _Alignas(256) float results[64 * 64];
static _Alignas(256) unsigned char workspace[1 << 20];
static const int32_t numbers[] = {0, 2, 3, 3};
static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};

static char* const unaligned = (char*)values + 1;

static const char* unaligned_sentence(const char* argument) {
  static char sentence[128];
  snprintf(sentence, sizeof sentence, "%s starts at %p, expected an address that is a multiple of 2 bytes", argument,
           (void*)unaligned);
  return sentence;
}

static thresher_matrix matrix(void* data, thresher_format format, int64_t rows, int64_t columns) {
  thresher_matrix made;
  thresher_matrix_init(&made, sizeof made);
  made.data = data;
  made.format = format;
  made.shape[0] = rows;
  made.shape[1] = columns;
  return made;
}

static thresher_dual_gemm_options options(void) {
  thresher_dual_gemm_options made;
  thresher_dual_gemm_options_init(&made, sizeof made);
  return made;
}

static thresher_dual_gemm_problem dual_problem(void) {
  thresher_dual_gemm_problem made;
  thresher_dual_gemm_problem_init(&made, sizeof made);
  made.m = m;
  made.n = n;
  made.k = k;
  made.a = made.b = THRESHER_FP16;
  made.out = THRESHER_FP32;
  return made;
}

static thresher_matrix weights_matrix(void) { return matrix(values, THRESHER_FP16, n, k); }
static thresher_matrix tokens(void) { return matrix(values, THRESHER_FP16, m, k); }
static thresher_matrix output(void) { return matrix(results, THRESHER_FP32, m, n); }

static void refuses_devices(void) {
  char name[64];
  REFUSED(cpu, it.kind = 2, thresher_device_name(it, name, sizeof name), "device.kind is 2, expected 0 to 1");
  REFUSED(cpu, it.kind = -1, thresher_device_name(it, name, sizeof name), "device.kind is -1, expected 0 to 1");
  REFUSED(cpu, it.ordinal = 5, thresher_device_name(it, name, sizeof name),
          "device.ordinal is 5, expected 0: there is one CPU");
  REFUSED(cpu, it.ordinal = -1, thresher_device_name(it, name, sizeof name),
          "device.ordinal is -1, expected 0: there is one CPU");
  REFUSED(cpu, (it.kind = THRESHER_CUDA, it.ordinal = -1), thresher_device_name(it, name, sizeof name),
          "device.ordinal is -1, expected 0 or more");
  expect_refused(thresher_device_name(cpu, name, 0), "the buffer for a name is null or empty", __LINE__);
  expect_refused(thresher_best_device(NULL), "device is null", __LINE__);
  memset(name, 'x', sizeof name);
  expect_refused(thresher_dual_gemm_strategies(cpu, name, 3),
                 "the buffer for names has 3 bytes, expected at least 21 for \"interleaved,two_pass\"", __LINE__);
  expect_refused(thresher_dual_gemm_strategies(cpu, name, 20),
                 "the buffer for names has 20 bytes, expected at least 21 for \"interleaved,two_pass\"", __LINE__);
  if (name[0] != 'x') {
    printf("FAILED: a refused call writes names\n");
    ++failures;
  }
  TAKEN(thresher_dual_gemm_strategies(cpu, name, 21));
  TAKEN(thresher_device_name(cpu, name, 2)); /* cut off, as the header says */
}

static void refuses_options(void) {
  thresher_matrix b = weights_matrix();
  const thresher_dual_gemm_problem problem = dual_problem();
  thresher_dual_gemm* plan = NULL;
#define PLAN thresher_dual_gemm_plan_raw(cpu, &problem, &b, &b, &it, &plan)
  REFUSED(options(), it.struct_size = 3, PLAN,
          "options.struct_size is 3, expected at least 8: initialise the struct with its _init function");
  REFUSED(options(), it.struct_size = 4000000000U, PLAN,
          "options.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(options(), it.threads = -1, PLAN, "options.threads is -1, expected 0 (all) to 1024");
  REFUSED(
      options(), it.struct_size = sizeof it - 1, PLAN,
      "options.struct_size is 31, expected a multiple of 8, where no member is cut in two: initialise the struct with "
      "its _init function");
  REFUSED(options(), it.threads = INT32_MAX, PLAN, "options.threads is 2147483647, expected 0 (all) to 1024");
  REFUSED(options(), it.threads = 1025, PLAN, "options.threads is 1025, expected 0 (all) to 1024");
  REFUSED(options(), (it.threads = 2, it.knobs = "threads=1"), PLAN,
          "options.threads is 2, but the knob threads is 1: give one of them, or both alike");
  thresher_dual_gemm_options alike = options();
  alike.threads = 2;
  alike.knobs = "threads=2";
  TAKEN(thresher_dual_gemm_plan_raw(cpu, &problem, &b, &b, &alike, &plan));
  thresher_dual_gemm_destroy(plan);
  REFUSED(options(), it.strategy = "zz\n\x1b[31m", PLAN,
          "strategy zz??[31m is not known: use one of interleaved, two_pass");
  REFUSED(options(), it.strategy = "magic", PLAN, "strategy magic is not known: use one of interleaved, two_pass");
  REFUSED(options(), it.deterministic = "rows", PLAN, "deterministic is rows, expected batch or nothing");
  REFUSED(options(), (it.deterministic = "batch", it.knobs = "deterministic=no"), PLAN,
          "options.deterministic is batch, but the knob deterministic is no: give one of them, or both alike");
  alike = options();
  alike.deterministic = "batch";
  alike.knobs = "deterministic=batch";
  TAKEN(thresher_dual_gemm_plan_raw(cpu, &problem, &b, &b, &alike, &plan));
  thresher_dual_gemm_destroy(plan);
  REFUSED(options(), it.knobs = "colour=red", PLAN,
          "no strategy takes the knobs \"colour=red\": the strategy interleaved has no knob colour, expected one of "
          "threads; name a strategy to hear what it says");
#undef PLAN
}

static void refuses_dual_problems(void) {
  thresher_matrix b = weights_matrix();
  thresher_dual_gemm* plan = NULL;
#define PLAN thresher_dual_gemm_plan_raw(cpu, &it, &b, &b, NULL, &plan)
  REFUSED(dual_problem(), it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(dual_problem(), it.a = 10, PLAN, "problem.a is 10, expected 0 to 9");
  REFUSED(dual_problem(), it.b = -1, PLAN, "problem.b is -1, expected 0 to 9");
  REFUSED(dual_problem(), it.out = 99, PLAN, "problem.out is 99, expected 0 to 9");
  REFUSED(dual_problem(), it.a = THRESHER_FP32, PLAN,
          "problem.a is fp32, expected fp16, bf16, nvfp4, fp8_tensor, fp8_row or fp8_block");
  REFUSED(dual_problem(), it.out = THRESHER_INT32, PLAN,
          "problem.out is int32, expected fp32, fp16, bf16, nvfp4, fp8_tensor, fp8_row or fp8_block");
  REFUSED(dual_problem(), it.m = -1, PLAN, "problem.m is -1, expected 0 to 2147483647");
  REFUSED(dual_problem(), it.m = huge, PLAN, "problem.m is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(dual_problem(), it.n = -8, PLAN, "problem.n is -8, expected 0 to 2147483647");
  REFUSED(dual_problem(), it.n = huge, PLAN, "problem.n is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(dual_problem(), it.k = 0, PLAN, "problem.k is 0, expected at least 1");
  REFUSED(dual_problem(), it.k = huge, PLAN, "problem.k is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(dual_problem(), it.activation = 5, PLAN, "problem.activation is 5, expected 0 to 4");
  REFUSED(dual_problem(), it.activation = -1, PLAN, "problem.activation is -1, expected 0 to 4");
  REFUSED(dual_problem(), it.alpha = 2, PLAN,
          "problem.alpha is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(dual_problem(), it.limit = NAN, PLAN,
          "problem.limit is nan, which silu has no use for: leave it as the problem's _init function "
          "sets it");
  REFUSED(dual_problem(), it.up_offset = -1, PLAN,
          "problem.up_offset is -1, which silu has no use for: leave it as the problem's _init function "
          "sets it");
  REFUSED(dual_problem(), (it.activation = THRESHER_SWIGLU_CLAMPED, it.alpha = NAN), PLAN,
          "activation.alpha is nan and activation.up_offset 1, expected finite numbers");
  REFUSED(dual_problem(), (it.activation = THRESHER_SWIGLU_CLAMPED, it.limit = 0), PLAN,
          "activation.limit is 0, expected a number above 0");
  REFUSED(dual_problem(), (it.activation = THRESHER_SWIGLU_CLAMPED, it.limit = NAN), PLAN,
          "activation.limit is nan, expected a number above 0");
  REFUSED(dual_problem(), (it.activation = THRESHER_SWIGLU_CLAMPED, it.up_offset = INFINITY), PLAN,
          "activation.alpha is 1.702 and activation.up_offset inf, expected finite numbers");
#undef PLAN
}

static void refuses_matrices(void) {
  thresher_matrix b = weights_matrix();
  thresher_matrix a = tokens();
  thresher_matrix c = output();
  const thresher_dual_gemm_problem problem = dual_problem();
  thresher_dual_gemm* plan = NULL;
  thresher_dual_gemm* none = NULL;
  TAKEN(thresher_dual_gemm_plan_raw(cpu, &problem, &b, &b, NULL, &plan));
  TAKEN(thresher_dual_gemm_run(plan, NULL, &a, &c, workspace));
#define WEIGHTS thresher_dual_gemm_plan_raw(cpu, &problem, &it, &b, NULL, &none)
#define RUN thresher_dual_gemm_run(plan, NULL, &it, &c, workspace)
#define WRITE thresher_dual_gemm_run(plan, NULL, &a, &it, workspace)
  REFUSED(b, it.struct_size = 4000000000U, WEIGHTS,
          "b1 (gate).struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(b, it.format = 77, WEIGHTS, "b1 (gate).format is 77, expected 0 to 9");
  REFUSED(b, it.data = NULL, WEIGHTS, "b1 (gate) has a null data pointer");
  REFUSED(b, it.shape[0] = -8, WEIGHTS, "b1 (gate) is [-8, 64], expected [8, 64]");
  REFUSED(b, it.shape[1] = huge, WEIGHTS, "b1 (gate) is [8, 4611686018427387904], expected [8, 64]");
  REFUSED(b, it.device.ordinal = 5, WEIGHTS, "device.ordinal is 5, expected 0: there is one CPU");
  REFUSED(b, it.device.kind = THRESHER_CUDA, WEIGHTS,
          "b1 (gate) is in the memory of GPU 0, expected the CPU: copy it there first");
  REFUSED(b, it.row_stride = -32, WEIGHTS, "b1 (gate) has row stride -32, which is less than its row length 64");
  REFUSED(b, it.row_stride = 1, WEIGHTS, "b1 (gate) has row stride 1, which is less than its row length 64");
  REFUSED(b, it.row_stride = huge, WEIGHTS,
          "b1 (gate) has stride 4611686018427387904 along dimension 0, expected at most 18014398509481984 with an "
          "extent of 8");
  REFUSED(b, it.row_stride = INT64_MAX, WEIGHTS,
          "b1 (gate) has stride 9223372036854775807 along dimension 0, expected at most 18014398509481984 with an "
          "extent of 8");
  REFUSED(b, it.row_stride = INT64_MIN, WEIGHTS,
          "b1 (gate) has row stride -9223372036854775808, which is less than its row length 64");
  REFUSED(b, it.scales = ones, WEIGHTS, "b1 (gate) is fp16 with scales, expected none");
  REFUSED(b, it.global_scale = ones, WEIGHTS, "b1 (gate) is fp16 with a global scale, expected none");
  REFUSED(b, it.scale_layout = 3, WEIGHTS, "scale_layout is 3, expected 0 to 2");
  REFUSED(b, it.scale_layout = THRESHER_SCALES_BLOCKED, WEIGHTS,
          "b1 (gate).scales are blocked, but fp16 has none: leave the layout row-major");
  REFUSED(b, it.struct_size = sizeof it - 1, WEIGHTS,
          "b1 (gate).struct_size is 71, expected a multiple of 8, where no member is cut in two: initialise the struct "
          "with its _init function");
  REFUSED(b, it.data = unaligned, WEIGHTS, unaligned_sentence("b1 (gate)"));
  REFUSED(b, it.scales_are_powers_of_two = 1, WEIGHTS,
          "b1 (gate).scales_are_powers_of_two is 1, expected 0: only those of an output are found");
  REFUSED(b, it.scales_are_powers_of_two = 2, WEIGHTS, "b1 (gate).scales_are_powers_of_two is 2, expected 0 to 1");
  REFUSED(a, it.shape[0] = -1, RUN, "a has -1 rows, expected 0 to 3, which the plan was made for");
  REFUSED(a, it.shape[0] = m + 1, RUN, "a has 4 rows, expected 0 to 3, which the plan was made for");
  REFUSED(a, it.row_stride = huge, RUN,
          "a has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(a, it.row_stride = -k, RUN, "a has row stride -64, which is less than its row length 64");
  REFUSED(a, it.scales = ones, RUN, "a is fp16 with scales, expected none");
  REFUSED(a, it.scales_are_powers_of_two = 1, RUN,
          "a.scales_are_powers_of_two is 1, expected 0: only those of an output are found");
  REFUSED(a, it.data = NULL, RUN, "a has a null data pointer");
  REFUSED(a, it.scale_layout = THRESHER_SCALES_COLUMN_MAJOR, RUN,
          "a.scales are column-major, but fp16 has none: leave the layout row-major");
  REFUSED(a, it.data = workspace + 256, RUN,
          "a shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(c, it.row_stride = huge, WRITE,
          "c has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(c, it.scales = results, WRITE, "c is fp32 with scales, expected none");
  REFUSED(c, it.scales_are_powers_of_two = 1, WRITE,
          "c.scales are to be powers of two, which fp32 has none of: fp8_row and fp8_block outputs may have them");
  REFUSED(c, it.data = NULL, WRITE, "c has a null data pointer");
  REFUSED(c, it.scale_layout = THRESHER_SCALES_BLOCKED, WRITE,
          "c.scales are blocked, but fp32 has none: leave the layout row-major");
  REFUSED(c, it.data = workspace, WRITE,
          "c shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(c, it.data = workspace + 512, WRITE,
          "c shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(c, it.data = workspace + 512, thresher_dual_gemm_run_prepared(plan, NULL, &a, &it, workspace),
          "c shares memory with the workspace, expected a workspace apart from every tensor");
  expect_refused(thresher_dual_gemm_prepare(plan, NULL, &a, values),
                 "a shares memory with the workspace, expected a workspace apart from every tensor", __LINE__);
  expect_refused(thresher_dual_gemm_run(plan, NULL, &a, &c, NULL),
                 "workspace is null, expected 56576 bytes (workspace_bytes())", __LINE__);
  expect_refused(thresher_dual_gemm_run_flat(plan, NULL, -1, values, 0, NULL, 0, NULL, results, 0, workspace),
                 "a has -1 rows, expected 0 to 3, which the plan was made for", __LINE__);
  expect_refused(
      thresher_dual_gemm_run_flat(plan, NULL, m, values, huge, NULL, 0, NULL, results, 0, workspace),
      "a has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3",
      __LINE__);
  expect_refused(
      thresher_dual_gemm_run_flat(plan, NULL, m, values, 0, NULL, 0, NULL, results, huge, workspace),
      "c has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3",
      __LINE__);
#undef WEIGHTS
#undef RUN
#undef WRITE
  thresher_dual_gemm_weights* weights = NULL;
  expect_refused(thresher_dual_gemm_pack(cpu, &b, &b, 2, &weights), "numerics is 2, expected 0 to 1", __LINE__);
  expect_refused(thresher_dual_gemm_pack(cpu, &b, &b, THRESHER_EXACT, NULL), "weights is null", __LINE__);
  expect_refused(thresher_dual_gemm_pack_flat(0, 0, THRESHER_FP16, -8, k, values, 0, NULL, NULL, values, 0, NULL, NULL,
                                              0, 0, &weights),
                 "b1 (gate) is [-8, 64], expected extents of 0 or more", __LINE__);
  expect_refused(thresher_dual_gemm_pack_flat(0, 0, THRESHER_FP16, n, k, values, huge, NULL, NULL, values, 0, NULL,
                                              NULL, 0, 0, &weights),
                 "b1 (gate) has stride 4611686018427387904 along dimension 0, expected at most 18014398509481984 with "
                 "an extent of 8",
                 __LINE__);
  expect_refused(thresher_dual_gemm_pack_flat(0, 5, THRESHER_FP16, n, k, values, 0, NULL, NULL, values, 0, NULL, NULL,
                                              0, 0, &weights),
                 "device.ordinal is 5, expected 0: there is one CPU", __LINE__);
  TAKEN(thresher_dual_gemm_pack(cpu, &b, &b, THRESHER_EXACT, &weights));
  thresher_packed_info info;
  thresher_packed_info_init(&info, sizeof info);
  REFUSED(info, it.struct_size = 4000000000U, thresher_dual_gemm_weights_info(weights, &it),
          "info.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(info, it.struct_size = 0, thresher_dual_gemm_weights_info(weights, &it),
          "info.struct_size is 0, expected at least 32: initialise the struct with its _init function");
  thresher_dual_gemm_weights_destroy(weights);
  weights = NULL;
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, NULL, 16, 0, &weights), "block is null", __LINE__);
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, workspace, sizeof workspace, 2, &weights),
                 "check is 2, expected 0 to 1", __LINE__);
  thresher_dual_gemm_destroy(plan);
}

static void refuses_gemms(void) {
  thresher_matrix b = weights_matrix();
  thresher_matrix a = tokens();
  thresher_matrix c = output();
  thresher_gemm_problem problem;
  thresher_gemm_problem_init(&problem, sizeof problem);
  problem.a = problem.b = THRESHER_FP16;
  problem.out = THRESHER_FP32;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  thresher_gemm* plan = NULL;
  thresher_gemm* none = NULL;
  TAKEN(thresher_gemm_plan_raw(cpu, &problem, &b, NULL, THRESHER_FP32, NULL, &plan));
#define PLAN thresher_gemm_plan_raw(cpu, &it, &b, NULL, THRESHER_FP32, NULL, &none)
#define RUN thresher_gemm_run(plan, NULL, &it, &c, workspace)
  REFUSED(problem, it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(problem, it.a = 10, PLAN, "problem.a is 10, expected 0 to 9");
  REFUSED(problem, it.b = -1, PLAN, "problem.b is -1, expected 0 to 9");
  REFUSED(problem, it.out = 10, PLAN, "problem.out is 10, expected 0 to 9");
  REFUSED(problem, it.m = -1, PLAN, "problem.m is -1, expected 0 to 2147483647");
  REFUSED(problem, it.m = huge, PLAN, "problem.m is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(problem, it.n = -1, PLAN, "problem.n is -1, expected 0 to 2147483647");
  REFUSED(problem, it.k = -1, PLAN, "problem.k is -1, expected 0 to 2147483647");
  REFUSED(problem, it.bias = 1, PLAN, "the weights have no bias, but problem.bias is true");
  REFUSED(problem, it.bias = 2, PLAN, "problem.bias is 2, expected 0 to 1");
  REFUSED(problem, it.activation = 7, PLAN, "problem.activation is 7, expected 0 to 4");
  REFUSED(problem, it.activation = THRESHER_GELU_TANH, PLAN,
          "problem.activation is gelu_tanh, which is of gate and up, expected relu2 or none: use the dual GEMM");
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, &b, NULL, 99, NULL, &none), "bias_format is 99, expected 0 to 9",
                 __LINE__);
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, &b, NULL, THRESHER_BF16, NULL, &none),
                 "bias_format is bf16 without a bias: leave it 0", __LINE__);
  REFUSED(b, it.data = unaligned, thresher_gemm_plan_raw(cpu, &problem, &it, NULL, THRESHER_FP32, NULL, &none),
          unaligned_sentence("b"));
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, &b, ones, THRESHER_FP32, NULL, &none),
                 "the weights have a bias, but problem.bias is false", __LINE__);
  REFUSED(a, it.row_stride = huge, RUN,
          "a has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(a, it.shape[0] = -1, RUN, "a has -1 rows, expected 0 to 3, which the plan was made for");
  REFUSED(options(), it.threads = -1, thresher_gemm_plan_raw(cpu, &problem, &b, NULL, THRESHER_FP32, &it, &none),
          "options.threads is -1, expected 0 (all) to 1024");
  REFUSED(a, it.data = workspace, RUN,
          "a shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(c, it.data = workspace, thresher_gemm_run(plan, NULL, &a, &it, workspace),
          "c shares memory with the workspace, expected a workspace apart from every tensor");
#undef PLAN
#undef RUN
  thresher_gemm_destroy(plan);
}

static void refuses_groups(void) {
  thresher_grouped_problem problem;
  thresher_grouped_problem_init(&problem, sizeof problem);
  problem.experts = experts;
  problem.rows = m;
  problem.n = n;
  problem.k = k;
  problem.a = problem.b = THRESHER_FP16;
  problem.out = THRESHER_FP32;
  thresher_grouped_weights_view view;
  thresher_grouped_weights_view_init(&view, sizeof view);
  view.format = THRESHER_FP16;
  view.device = cpu;
  view.experts = experts;
  view.n = n;
  view.k = k;
  view.order = THRESHER_GATE_FIRST;
  view.b1 = values;
  thresher_grouped_tensors tensors;
  thresher_grouped_tensors_init(&tensors, sizeof tensors);
  tensors.rows = m;
  tensors.a = values;
  tensors.c = results;
  tensors.groups = numbers;
  thresher_grouped* plan = NULL;
  thresher_grouped* none = NULL;
  thresher_grouped_weights* weights = NULL;
  TAKEN(thresher_grouped_plan_raw(cpu, &problem, &view, NULL, &plan));
  TAKEN(thresher_grouped_run(plan, NULL, &tensors, workspace));
#define PLAN thresher_grouped_plan_raw(cpu, &it, &view, NULL, &none)
  REFUSED(problem, it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(problem, it.layout = 3, PLAN, "problem.layout is 3, expected 0 to 2");
  REFUSED(problem, it.experts = 0, PLAN, "problem.experts is 0, expected 1 to 2147483647");
  REFUSED(problem, it.experts = huge, PLAN, "problem.experts is 4611686018427387904, expected 1 to 2147483647");
  REFUSED(problem, it.rows = -1, PLAN, "problem.rows is -1, expected 0 to 2147483647");
  REFUSED(problem, it.rows = huge, PLAN, "problem.rows is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(problem, it.n = -1, PLAN, "problem.n is -1, expected 0 to 2147483647");
  REFUSED(problem, it.k = 0, PLAN, "problem.k is 0, expected at least 1");
  REFUSED(problem, it.tokens = 5, PLAN, "problem.tokens is 5, expected 0: only gathered rows are taken from others");
  REFUSED(problem, it.tokens = -5, PLAN, "problem.tokens is -5, expected 0: only gathered rows are taken from others");
  REFUSED(problem, (it.layout = THRESHER_ROWS_GATHERED, it.tokens = huge), PLAN,
          "problem.tokens is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(problem, it.expected_rows = -1, PLAN, "problem.expected_rows is -1, expected 0 to 2147483647");
  REFUSED(problem, it.row_ids_divisor = 0, PLAN, "problem.row_ids_divisor is 0, expected 1 to 2147483647");
  REFUSED(problem, it.row_ids_divisor = 2, PLAN,
          "problem.row_ids_divisor is 2, expected 1: only gathered rows have ids");
  REFUSED(problem, it.row_ids_divisor = huge, PLAN,
          "problem.row_ids_divisor is 4611686018427387904, expected 1: only gathered rows have ids");
  REFUSED(problem, it.a = 10, PLAN, "problem.a is 10, expected 0 to 9");
  REFUSED(problem, it.b = 10, PLAN, "problem.b is 10, expected 0 to 9");
  REFUSED(problem, it.out = 10, PLAN, "problem.out is 10, expected 0 to 9");
  REFUSED(problem, it.activation = -2, PLAN, "problem.activation is -2, expected 0 to 4");
  REFUSED(problem, it.activation = 5, PLAN, "problem.activation is 5, expected 0 to 4");
  REFUSED(problem, it.alpha = 2, PLAN,
          "problem.alpha is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(problem, it.limit = 2, PLAN,
          "problem.limit is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(problem, it.up_offset = 2, PLAN,
          "problem.up_offset is 2, which silu has no use for: leave it as the problem's _init function "
          "sets it");
  REFUSED(problem, (it.activation = THRESHER_NO_ACTIVATION, it.alpha = 2), PLAN,
          "problem.alpha is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(problem, it.bias = 2, PLAN, "problem.bias is 2, expected 0 to 1");
  REFUSED(problem, it.bias = 1, PLAN, "the weights have no bias, but problem.bias is true");
  REFUSED(problem, it.row_weights = -1, PLAN, "problem.row_weights is -1, expected 0 to 1");
  REFUSED(problem, it.reserved = 1, PLAN, "problem.reserved is 1, expected 0");
#undef PLAN
#define PACK thresher_grouped_pack(&it, THRESHER_EXACT, &weights)
  REFUSED(view, it.struct_size = 4000000000U, PACK,
          "view.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(view, it.format = 10, PACK, "view.format is 10, expected 0 to 9");
  REFUSED(view, it.device.kind = 3, PACK, "device.kind is 3, expected 0 to 1");
  REFUSED(view, it.device.ordinal = 1, PACK, "device.ordinal is 1, expected 0: there is one CPU");
  REFUSED(view, it.experts = -1, PACK, "b1 (gate and up) is [-1, 16, 64], expected extents of 0 or more");
  REFUSED(
      view, it.experts = huge, PACK,
      "b1 (gate and up) has stride 1024 along dimension 0, expected at most 0 with an extent of 4611686018427387904");
  REFUSED(view, it.n = -1, PACK, "b1 (gate and up) is [2, -2, 64], expected extents of 0 or more");
  REFUSED(view, it.n = huge, PACK,
          "b1 (gate and up) has stride 9223372036854775807 along dimension 0, expected at most 72057594037927936 with "
          "an extent of 2");
  REFUSED(view, it.k = -1, PACK, "b1 (gate and up) is [2, 16, -1], expected extents of 0 or more");
  REFUSED(view, it.k = huge, PACK,
          "b1 (gate and up) has stride 9223372036854775807 along dimension 0, expected at most 72057594037927936 with "
          "an extent of 2");
  REFUSED(view, it.order = 4, PACK, "view.order is 4, expected 0 to 3");
  REFUSED(view, it.scale_layout = 3, PACK, "scale_layout is 3, expected 0 to 2");
  REFUSED(view, it.scale_layout = THRESHER_SCALES_BLOCKED, PACK,
          "b1 (gate and up).scales are blocked, but fp16 has none: leave the layout row-major");
  REFUSED(view, it.b1 = unaligned, PACK, unaligned_sentence("b1 (gate and up)"));
  REFUSED(view, it.b1 = NULL, PACK, "b1 (gate and up) has a null data pointer");
  REFUSED(
      view, it.b2 = values, PACK,
      "weights.order is gate-first, which is of one tensor of gate and up, but b2 is given too: leave one of them out");
  REFUSED(view, it.expert_stride = huge, PACK,
          "b1 (gate and up) has stride 4611686018427387904 along dimension 0, expected at most 72057594037927936 with "
          "an extent of 2");
  REFUSED(view, it.expert_stride = -1, PACK,
          "b1 (gate and up) has stride -1 along dimension 0, expected a multiple of 1 elements that is not negative");
  REFUSED(view, it.row_stride = huge, PACK,
          "b1 (gate and up) has stride 9223372036854775807 along dimension 0, expected at most 72057594037927936 with "
          "an extent of 2");
  REFUSED(view, it.row_stride = -1, PACK,
          "b1 (gate and up) has stride -16 along dimension 0, expected a multiple of 1 elements that is not negative");
  REFUSED(view, it.b1_scales = ones, PACK, "b1 (gate and up) is fp16 with scales, expected none");
  REFUSED(view, it.b2_scales = ones, PACK, "view.b2_scales is given without view.b2: leave it null");
  REFUSED(view, it.b1_global_scales = ones, PACK, "b1 (gate and up) is fp16 with a global scale, expected none");
  REFUSED(view, it.b2_global_scales = ones, PACK,
          "weights.up_global_scale is given, but b1 (gate and up) is fp16: expected none");
  REFUSED(view, (it.order = THRESHER_SEPARATE, it.b2_global_scales = ones), PACK,
          "view.b2_global_scales is given without view.b2: leave it null");
  REFUSED(view, it.bias2 = ones, PACK,
          "weights.order is gate-first, which is of one tensor of gate and up, but bias2 is given too: leave one of "
          "them out");
  REFUSED(view, it.bias_format = 99, PACK, "view.bias_format is 99, expected 0 to 9");
  REFUSED(view, it.bias_format = THRESHER_BF16, PACK, "view.bias_format is bf16 without a bias: leave it 0");
  REFUSED(view, it.reserved = 1, PACK, "view.reserved is 1, expected 0");
#undef PACK
#define RUN thresher_grouped_run(plan, NULL, &it, workspace)
  REFUSED(tensors, it.struct_size = 4000000000U, RUN,
          "tensors.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(tensors, it.a_scale_layout = 3, RUN, "scale_layout is 3, expected 0 to 2");
  REFUSED(tensors, it.a_scale_layout = THRESHER_SCALES_BLOCKED, RUN,
          "a.scales are blocked, but fp16 has none: leave the layout row-major");
  REFUSED(tensors, it.c_scale_layout = THRESHER_SCALES_BLOCKED, RUN,
          "c.scales are blocked, but fp32 has none: leave the layout row-major");
  REFUSED(tensors, it.a = workspace, RUN,
          "a shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(tensors, it.c = workspace, RUN,
          "c shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(tensors, (memcpy(workspace, numbers, sizeof numbers), it.groups = (const int32_t*)workspace), RUN,
          "offsets shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(tensors, it.rows = -1, RUN, "c has -1 rows, expected 0 to 3, which the plan was made for");
  REFUSED(tensors, it.rows = m + 1, RUN, "c has 4 rows, expected 0 to 3, which the plan was made for");
  REFUSED(tensors, it.a = NULL, RUN, "a has a null data pointer");
  REFUSED(tensors, it.a_row_stride = huge, RUN,
          "a has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(tensors, it.a_row_stride = -1, RUN, "a has row stride -1, which is less than its row length 64");
  REFUSED(tensors, it.a_scales = ones, RUN, "a is fp16 with scales, expected none");
  REFUSED(tensors, it.a_global_scale = ones, RUN, "a is fp16 with a global scale, expected none");
  REFUSED(tensors, it.c = NULL, RUN, "c has a null data pointer");
  REFUSED(tensors, it.c_row_stride = huge, RUN,
          "c has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(tensors, it.c_row_stride = 1, RUN, "c has row stride 1, which is less than its row length 8");
  REFUSED(tensors, it.groups = NULL, RUN, "offsets has a null data pointer");
  REFUSED(tensors, it.row_ids = numbers, RUN, "row_ids is given, but only gathered rows have ids");
  REFUSED(tensors, it.row_weights = ones, RUN, "row_weights is given, but problem.row_weights is false");
  REFUSED(tensors, it.c_scales = results, RUN, "c is fp32 with scales, expected none");
  REFUSED(tensors, it.c_global_scale = ones, RUN, "c is fp32 with a global scale, expected none");
  REFUSED(tensors, it.c_scale_layout = 3, RUN, "scale_layout is 3, expected 0 to 2");
  REFUSED(tensors, it.c_scales_are_powers_of_two = 1, RUN,
          "c.scales are to be powers of two, which fp32 has none of: fp8_row and fp8_block outputs may have them");
  REFUSED(tensors, it.c_scales_are_powers_of_two = 2, RUN, "c_scales_are_powers_of_two is 2, expected 0 to 1");
#undef RUN
  thresher_grouped_destroy(plan);
  plan = NULL;
  problem.layout = THRESHER_ROWS_SLOTS;
  TAKEN(thresher_grouped_plan_raw(cpu, &problem, &view, NULL, &plan));
  REFUSED(tensors, (it.a_row_stride = huge), thresher_grouped_run(plan, NULL, &it, workspace),
          "a has stride 9223372036854775807 along dimension 0, expected at most 72057594037927936 with an extent of 2");
  REFUSED(tensors, (it.rows = -1), thresher_grouped_run(plan, NULL, &it, workspace),
          "c has -1 rows in a slot, expected 0 to 3, which the plan was made for");
  thresher_grouped_destroy(plan);
}

static void refuses_layers(void) {
  thresher_matrix gate = matrix(values, THRESHER_FP16, 64, 64);
  thresher_matrix x = matrix(values, THRESHER_FP16, m, 64);
  thresher_matrix out = matrix(results, THRESHER_FP32, m, 64);
  thresher_gated_mlp_weights* weights = NULL;
  thresher_gated_mlp* plan = NULL;
  thresher_gated_mlp* none = NULL;
  TAKEN(thresher_gated_mlp_pack(cpu, &gate, &gate, &gate, THRESHER_EXACT, &weights));
  thresher_gated_mlp_problem mlp;
  thresher_gated_mlp_problem_init(&mlp, sizeof mlp);
  mlp.x = mlp.gate_up = mlp.intermediate = mlp.down = THRESHER_FP16;
  mlp.out = THRESHER_FP32;
  mlp.tokens = m;
  mlp.hidden_size = mlp.intermediate_size = 64;
  TAKEN(thresher_gated_mlp_plan(cpu, &mlp, weights, NULL, NULL, &plan));
  TAKEN(thresher_gated_mlp_run(plan, NULL, &x, &out, workspace));
#define PLAN thresher_gated_mlp_plan(cpu, &it, weights, NULL, NULL, &none)
  REFUSED(mlp, it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(mlp, it.x = 10, PLAN, "problem.x is 10, expected 0 to 9");
  REFUSED(mlp, it.tokens = -1, PLAN, "problem.tokens is -1, expected 0 to 2147483647");
  REFUSED(mlp, it.tokens = huge, PLAN, "problem.tokens is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(mlp, it.hidden_size = -1, PLAN, "problem.hidden_size is -1, expected 1 to 2147483647");
  REFUSED(mlp, it.intermediate_size = huge, PLAN,
          "problem.intermediate_size is 4611686018427387904, expected 1 to 2147483647");
  REFUSED(mlp, it.gate_up = 10, PLAN, "problem.gate_up is 10, expected 0 to 9");
  REFUSED(mlp, it.intermediate = 10, PLAN, "problem.intermediate is 10, expected 0 to 9");
  REFUSED(mlp, it.down = 10, PLAN, "problem.down is 10, expected 0 to 9");
  REFUSED(mlp, it.out = 10, PLAN, "problem.out is 10, expected 0 to 9");
  REFUSED(mlp, it.activation = 5, PLAN, "problem.activation is 5, expected 0 to 4");
  REFUSED(mlp, it.alpha = 2, PLAN,
          "problem.alpha is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(mlp, it.limit = 2, PLAN,
          "problem.limit is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(mlp, it.up_offset = 2, PLAN,
          "problem.up_offset is 2, which silu has no use for: leave it as the problem's _init function "
          "sets it");
  REFUSED(mlp, it.intermediate_scale = 2, PLAN,
          "problem.intermediate_scale is 2, expected 1 for fp16, which is given no scale");
  REFUSED(mlp, it.intermediate_scale = NAN, PLAN,
          "problem.intermediate_scale is nan, expected a finite number above 0");
  REFUSED(mlp, it.reserved = 2, PLAN, "problem.reserved is 2, expected 0");
#undef PLAN
  REFUSED(options(), it.threads = -1, thresher_gated_mlp_plan(cpu, &mlp, weights, &it, NULL, &none),
          "gate and up: options.threads is -1, expected 0 (all) to 1024");
  REFUSED(options(), it.threads = -1, thresher_gated_mlp_plan(cpu, &mlp, weights, NULL, &it, &none),
          "down: options.threads is -1, expected 0 (all) to 1024");
  REFUSED(x, it.row_stride = huge, thresher_gated_mlp_run(plan, NULL, &it, &out, workspace),
          "x has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(x, it.shape[0] = -1, thresher_gated_mlp_run(plan, NULL, &it, &out, workspace),
          "x has -1 rows, expected 0 to 3, the tokens that the plan was made for");
  REFUSED(
      out, it.row_stride = huge, thresher_gated_mlp_run(plan, NULL, &x, &it, workspace),
      "out has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(out, it.scales = results, thresher_gated_mlp_run(plan, NULL, &x, &it, workspace),
          "out is fp32 with scales, expected none");
  REFUSED(x, it.data = workspace, thresher_gated_mlp_run(plan, NULL, &it, &out, workspace),
          "x shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(out, it.data = workspace, thresher_gated_mlp_run(plan, NULL, &x, &it, workspace),
          "out shares memory with the workspace, expected a workspace apart from every tensor");
  thresher_gated_mlp_destroy(plan);
  thresher_gated_mlp_weights_destroy(weights);

  thresher_grouped_weights_view view;
  thresher_grouped_weights_view_init(&view, sizeof view);
  view.format = THRESHER_FP16;
  view.device = cpu;
  view.experts = experts;
  view.n = view.k = 64;
  view.order = THRESHER_GATE_FIRST;
  view.b1 = values;
  thresher_grouped_weights* gate_up = NULL;
  thresher_grouped_weights* down = NULL;
  TAKEN(thresher_grouped_pack(&view, THRESHER_EXACT, &gate_up));
  view.order = THRESHER_SEPARATE;
  TAKEN(thresher_grouped_pack(&view, THRESHER_EXACT, &down));
  thresher_moe_problem moe;
  thresher_moe_problem_init(&moe, sizeof moe);
  moe.x = moe.gate_up = moe.intermediate = moe.down = moe.rows = THRESHER_FP16;
  moe.out = THRESHER_FP32;
  moe.experts = experts;
  moe.tokens = m;
  moe.top_k = 1;
  moe.hidden_size = moe.intermediate_size = 64;
  thresher_moe* layer = NULL;
  thresher_moe* no_layer = NULL;
  TAKEN(thresher_moe_plan(cpu, &moe, gate_up, down, NULL, NULL, &layer));
#define PLAN thresher_moe_plan(cpu, &it, gate_up, down, NULL, NULL, &no_layer)
  REFUSED(moe, it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(moe, it.x = 10, PLAN, "problem.x is 10, expected 0 to 9");
  REFUSED(moe, it.experts = -1, PLAN, "problem.experts is -1, expected 1 to 2147483647");
  REFUSED(moe, it.experts = 3, PLAN, "gate_up: the weights have 2 experts, but the problem says 3");
  REFUSED(moe, it.tokens = -1, PLAN, "problem.tokens is -1, expected 0 to 2147483647");
  REFUSED(moe, it.tokens = huge, PLAN, "problem.tokens is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(moe, it.top_k = 0, PLAN, "problem.top_k is 0, expected 1 to 2147483647");
  REFUSED(moe, it.top_k = huge, PLAN, "problem.top_k is 4611686018427387904, expected 1 to 2147483647");
  REFUSED(moe, it.hidden_size = -1, PLAN, "problem.hidden_size is -1, expected 1 to 2147483647");
  REFUSED(moe, it.intermediate_size = huge, PLAN,
          "problem.intermediate_size is 4611686018427387904, expected 1 to 2147483647");
  REFUSED(moe, it.expected_rows = -1, PLAN, "problem.expected_rows is -1, expected 0 to 2147483647");
  REFUSED(moe, it.gate_up = 10, PLAN, "problem.gate_up is 10, expected 0 to 9");
  REFUSED(moe, it.intermediate = 10, PLAN, "problem.intermediate is 10, expected 0 to 9");
  REFUSED(moe, it.down = 10, PLAN, "problem.down is 10, expected 0 to 9");
  REFUSED(moe, it.rows = 10, PLAN, "problem.rows is 10, expected 0 to 9");
  REFUSED(moe, it.quantized_x = 10, PLAN, "problem.quantized_x is 10, expected 0 to 9");
  REFUSED(moe, it.quantized_x = THRESHER_BF16, PLAN,
          "problem.quantized_x is bf16, expected fp8_row, fp8_block or none");
  REFUSED(moe, it.reserved = 1, PLAN, "problem.reserved is 1, expected 0");
  REFUSED(moe, it.out = 10, PLAN, "problem.out is 10, expected 0 to 9");
  REFUSED(moe, it.activation = 5, PLAN, "problem.activation is 5, expected 0 to 4");
  REFUSED(moe, it.alpha = 2, PLAN,
          "problem.alpha is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(moe, it.limit = 2, PLAN,
          "problem.limit is 2, which silu has no use for: leave it as the problem's _init function sets it");
  REFUSED(moe, it.up_offset = 2, PLAN,
          "problem.up_offset is 2, which silu has no use for: leave it as the problem's _init function "
          "sets it");
  REFUSED(moe, it.gate_up_bias = 1, PLAN, "gate_up: the weights have no bias, but problem.bias is true");
  REFUSED(moe, it.gate_up_bias = 2, PLAN, "problem.gate_up_bias is 2, expected 0 to 1");
  REFUSED(moe, it.down_bias = 1, PLAN, "down: the weights have no bias, but problem.bias is true");
  REFUSED(moe, it.intermediate_scale = 2, PLAN,
          "problem.intermediate_scale is 2, expected 1 for fp16, which is given no scale");
#undef PLAN
  REFUSED(options(), it.threads = -1, thresher_moe_plan(cpu, &moe, gate_up, down, &it, NULL, &no_layer),
          "gate_up: options.threads is -1, expected 0 (all) to 1024");
  REFUSED(options(), it.threads = -1, thresher_moe_plan(cpu, &moe, gate_up, down, NULL, &it, &no_layer),
          "down: options.threads is -1, expected 0 (all) to 1024");
  REFUSED(x, it.row_stride = huge, thresher_moe_run(layer, NULL, &it, numbers, ones, &out, workspace),
          "x has stride 4611686018427387904 along dimension 0, expected at most 48038396025285290 with an extent of 3");
  REFUSED(x, it.shape[0] = -1, thresher_moe_run(layer, NULL, &it, numbers, ones, &out, workspace),
          "x has -1 rows, expected 0 to 3, the tokens that the plan was made for");
  expect_refused(thresher_moe_run(layer, NULL, &x, NULL, ones, &out, workspace), "topk_ids has a null data pointer",
                 __LINE__);
  expect_refused(thresher_moe_run(layer, NULL, &x, numbers, NULL, &out, workspace),
                 "topk_weights has a null data pointer", __LINE__);
  TAKEN(thresher_moe_run(layer, NULL, &x, numbers, ones, &out, workspace));
  REFUSED(x, it.data = workspace, thresher_moe_run(layer, NULL, &it, numbers, ones, &out, workspace),
          "x shares memory with the workspace, expected a workspace apart from every tensor");
  REFUSED(out, it.data = workspace, thresher_moe_run(layer, NULL, &x, numbers, ones, &it, workspace),
          "out shares memory with the workspace, expected a workspace apart from every tensor");
  expect_refused(thresher_moe_run(layer, NULL, &x, (const int32_t*)workspace, ones, &out, workspace),
                 "topk_ids shares memory with the workspace, expected a workspace apart from every tensor", __LINE__);
  thresher_moe_destroy(layer);
  thresher_grouped_weights_destroy(gate_up);
  thresher_grouped_weights_destroy(down);
}

static thresher_tensor tensor(void* data, thresher_format format, int32_t rank, int64_t s0, int64_t s1, int64_t s2,
                              int64_t s3) {
  thresher_tensor made;
  thresher_tensor_init(&made, sizeof made);
  made.data = data;
  made.format = format;
  made.rank = rank;
  made.shape[0] = s0;
  made.shape[1] = s1;
  made.shape[2] = s2;
  made.shape[3] = s3;
  return made;
}

static void refuses_attention(void) {
  thresher_attention_problem problem;
  thresher_attention_problem_init(&problem, sizeof problem);
  problem.format = THRESHER_FP16;
  problem.queries = queries;
  problem.keys = keys;
  problem.head_dim = 64;
  thresher_attention* plan = NULL;
  thresher_attention* none = NULL;
  TAKEN(thresher_attention_plan(cpu, &problem, NULL, &plan));
#define PLAN thresher_attention_plan(cpu, &it, NULL, &none)
  REFUSED(problem, it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(problem, it.format = 10, PLAN, "problem.format is 10, expected 0 to 9");
  REFUSED(problem, it.batch = -1, PLAN, "problem.batch is -1, expected 0 to 2147483647");
  REFUSED(problem, it.batch = huge, PLAN, "problem.batch is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(problem, it.heads = 0, PLAN, "problem.heads is 0, expected 1 to 2147483647");
  REFUSED(problem, it.kv_heads = -1, PLAN, "problem.kv_heads is -1, expected 1 to 2147483647");
  REFUSED(problem, it.queries = -1, PLAN, "problem.queries is -1, expected 0 to 2147483647");
  REFUSED(problem, it.keys = huge, PLAN, "problem.keys is 4611686018427387904, expected 0 to 2147483647");
  REFUSED(problem, it.head_dim = -64, PLAN, "problem.head_dim is -64, expected 64, 128, 192, 256 or 576");
  REFUSED(problem, it.causal = 2, PLAN, "problem.causal is 2, expected 0 to 1");
  REFUSED(problem, it.has_scale = -1, PLAN, "problem.has_scale is -1, expected 0 to 1");
  REFUSED(problem, it.scale = 0.5F, PLAN,
          "problem.scale is set, but problem.has_scale is 0: set that to 1, or leave problem.scale as its _init "
          "function does");
  REFUSED(problem, (it.has_scale = 1, it.scale = NAN), PLAN, "problem.scale is nan, expected a finite number");
  REFUSED(problem, it.softcap = -1, PLAN, "problem.softcap is -1, expected 0 (none) or a finite number above 0");
  REFUSED(problem, it.softcap = NAN, PLAN, "problem.softcap is nan, expected 0 (none) or a finite number above 0");
  REFUSED(problem, it.window_left = -2, PLAN, "problem.window_left is -2, expected -1 (unbounded) to 2147483647");
  REFUSED(problem, it.window_right = huge, PLAN,
          "problem.window_right is 4611686018427387904, expected -1 (unbounded) to 2147483647");
  REFUSED(problem, it.variable_length = 2, PLAN, "problem.variable_length is 2, expected 0 to 1");
  REFUSED(problem, it.sinks = 2, PLAN, "problem.sinks is 2, expected 0 to 1");
  REFUSED(problem, it.value_dim = -1, PLAN, "problem.value_dim is -1, expected 64, 128, 192, 256 or 512");
  REFUSED(problem, it.page_size = -1, PLAN, "problem.page_size is -1, expected 1 to 2147483647");
  REFUSED(problem, it.pages = 3, PLAN, "problem.pages is 3 without problem.page_size: set both, or neither");
  REFUSED(problem, it.has_kv_format = 2, PLAN, "problem.has_kv_format is 2, expected 0 to 1");
  REFUSED(problem, it.kv_format = THRESHER_FP8_E4M3, PLAN,
          "problem.kv_format is set, but problem.has_kv_format is 0: set that to 1, or leave problem.kv_format as its "
          "_init function does");
  REFUSED(problem, (it.has_kv_format = 1, it.kv_format = 10), PLAN, "problem.kv_format is 10, expected 0 to 9");
  REFUSED(problem, it.has_q_format = 2, PLAN, "problem.has_q_format is 2, expected 0 to 1");
  REFUSED(problem, it.q_format = THRESHER_FP8_E4M3, PLAN,
          "problem.q_format is set, but problem.has_q_format is 0: set that to 1, or leave problem.q_format as its "
          "_init function does");
  REFUSED(problem, (it.has_q_format = 1, it.q_format = THRESHER_BF16), PLAN,
          "problem.q_format is bf16, expected fp16 (problem.format) or fp8_e4m3");
#undef PLAN
  thresher_attention_options how;
  thresher_attention_options_init(&how, sizeof how);
#define PLAN thresher_attention_plan(cpu, &problem, &it, &none)
  REFUSED(how, it.struct_size = 4000000000U, PLAN,
          "options.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(how, it.threads = -1, PLAN, "options.threads is -1, expected 0 (all) to 1024");
  REFUSED(how, it.strategy = "magic", PLAN, "strategy magic is not known: use one of blockwise");
  REFUSED(how, it.knobs = "colour=red", PLAN,
          "no strategy takes the knobs \"colour=red\": the strategy blockwise has no knob colour, expected one of "
          "threads; name a strategy to hear what it says");
  REFUSED(how, it.dependent_launch = 2, PLAN, "options.dependent_launch is 2, expected 0 to 1");
  REFUSED(how, (it.threads = 2, it.knobs = "threads=1"), PLAN,
          "options.threads is 2, but the knob threads is 1: give one of them, or both alike");
  REFUSED(how, it.reserved = 2, PLAN, "options.reserved is 2, expected 0");
  REFUSED(how, it.deterministic = "rows", PLAN, "deterministic is rows, expected batch or nothing");
#undef PLAN
  thresher_tensor q = tensor(values, THRESHER_FP16, 4, 1, 1, queries, 64);
  thresher_tensor kv = tensor(values, THRESHER_FP16, 4, 1, 1, keys, 64);
  thresher_tensor o = tensor(results, THRESHER_FP16, 4, 1, 1, queries, 64);
  thresher_tensor list = tensor((void*)numbers, THRESHER_INT32, 1, 2, 0, 0, 0);
  thresher_tensor factor = tensor((void*)ones, THRESHER_FP32, 2, 1, 1, 0, 0);
  thresher_attention_tensors tensors;
  thresher_attention_tensors_init(&tensors, sizeof tensors);
  tensors.q = &q;
  tensors.k = tensors.v = &kv;
  tensors.o = &o;
  TAKEN(thresher_attention_run(plan, NULL, &tensors, workspace));
#define RUN thresher_attention_run(plan, NULL, &it, workspace)
  REFUSED(tensors, it.struct_size = 4000000000U, RUN,
          "tensors.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(tensors, it.reserved = 1, RUN, "tensors.reserved is 1, expected 0");
  REFUSED(tensors, it.q = NULL, RUN, "q is null");
  REFUSED(tensors, it.o = NULL, RUN, "o is null");
  REFUSED(tensors, it.cu_seqlens_q = &list, RUN,
          "cu_seqlens_q is given, but problem.variable_length is false: leave it empty");
  REFUSED(tensors, it.cu_seqlens_k = &list, RUN,
          "cu_seqlens_k is given, but problem.variable_length is false: leave it empty");
  REFUSED(tensors, it.block_table = &list, RUN,
          "block_table is given, but problem.page_size is 0 (no pages): leave it empty");
  REFUSED(tensors, it.seqused_k = &list, RUN,
          "seqused_k is given, but problem.page_size is 0 (no pages): leave it empty");
  REFUSED(tensors, it.sinks = &factor, RUN, "sinks is given, but problem.sinks is false: leave it empty");
  REFUSED(tensors, it.k_descale = &factor, RUN,
          "k_descale is given, but keys and values are not fp8_e4m3: leave it empty");
  REFUSED(tensors, it.v_descale = &factor, RUN,
          "v_descale is given, but keys and values are not fp8_e4m3: leave it empty");
  REFUSED(tensors, it.q_descale = &factor, RUN, "q_descale is given, but queries are not fp8_e4m3: leave it empty");
#undef RUN
#define RUN (tensors.q = &it, thresher_attention_run(plan, NULL, &tensors, workspace))
  REFUSED(q, it.struct_size = 4000000000U, RUN,
          "q.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(q, it.format = 10, RUN, "q.format is 10, expected 0 to 9");
  REFUSED(q, it.data = NULL, RUN, "q has a null data pointer");
  REFUSED(q, it.device.ordinal = 1, RUN, "device.ordinal is 1, expected 0: there is one CPU");
  REFUSED(q, it.rank = 5, RUN, "q.rank is 5, expected 0 to 4");
  REFUSED(q, it.rank = -1, RUN, "q.rank is -1, expected 0 to 4");
  REFUSED(q, it.reserved = 1, RUN, "q.reserved is 1, expected 0");
  REFUSED(q, it.shape[2] = -2, RUN, "q is [1, 1, -2, 64], expected [1, 1, 2, 64]");
  REFUSED(q, it.shape[0] = huge, RUN, "q is [4611686018427387904, 1, 2, 64], expected [1, 1, 2, 64]");
  REFUSED(q, (it.strides[2] = huge, it.strides[3] = 1), RUN,
          "q has stride 4611686018427387904 along dimension 2, expected at most 72057594037927936 with an extent of 2");
  REFUSED(q, (it.strides[2] = -64, it.strides[3] = 1), RUN,
          "q has stride -64 along dimension 2, expected a multiple of 8 elements that is not negative");
  REFUSED(q, it.strides[3] = 2, RUN, "q has stride 2 along its last dimension, expected 1 (contiguous)");
#undef RUN
  thresher_attention_destroy(plan);
}

static void refuses_appends(void) {
  thresher_append_problem problem;
  thresher_append_problem_init(&problem, sizeof problem);
  problem.tokens = 2;
  problem.head_dim = 64;
  problem.page_size = 2;
  problem.pages = 2;
  thresher_append* plan = NULL;
  thresher_append* none = NULL;
  TAKEN(thresher_append_plan(cpu, &problem, 0, &plan));
#define PLAN thresher_append_plan(cpu, &it, 0, &none)
  REFUSED(problem, it.struct_size = 4000000000U, PLAN,
          "problem.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(problem, it.format = 10, PLAN, "problem.format is 10, expected 0 to 9");
  REFUSED(problem, it.tokens = -1, PLAN, "problem.tokens is -1, expected 0 to 2147483647");
  REFUSED(problem, it.heads = -1, PLAN, "problem.heads is -1, expected 1 to 2147483647");
  REFUSED(problem, it.kv_heads = 0, PLAN, "problem.kv_heads is 0, expected 1 to 2147483647");
  REFUSED(problem, it.head_dim = -16, PLAN, "problem.head_dim is -16, expected a multiple of 16 up to 1024");
  REFUSED(problem, it.value_dim = 7, PLAN, "problem.value_dim is 7, expected a multiple of 16 up to 1024");
  REFUSED(problem, it.rotary_dim = -2, PLAN,
          "problem.rotary_dim is -2, expected an even number up to problem.head_dim, which is 64");
  REFUSED(problem, it.max_position = -1, PLAN, "problem.max_position is -1, expected 0 to 2147483647");
  REFUSED(problem, it.page_size = 0, PLAN, "problem.page_size is 0, expected 1 to 2147483647");
  REFUSED(problem, it.pages = huge, PLAN, "problem.pages is 4611686018427387904, expected 1 to 2147483647");
  REFUSED(problem, it.pairs = 3, PLAN, "problem.pairs is 3, expected 0 to 2");
  REFUSED(problem, it.theta = NAN, PLAN, "problem.theta is nan, expected a finite number above 0");
  REFUSED(problem, (it.pairs = THRESHER_ROTARY_NONE, it.theta = 5), PLAN,
          "problem.theta is 5, but problem.pairs is none: leave it 10000");
  REFUSED(problem, (it.max_position = 5, it.theta = 5), PLAN,
          "problem.theta is 5, but problem.max_position asks for a table in its place: leave it 10000");
  REFUSED(problem, it.has_kv_format = 2, PLAN, "problem.has_kv_format is 2, expected 0 to 1");
  REFUSED(problem, it.kv_format = THRESHER_FP8_E4M3, PLAN,
          "problem.kv_format is set, but problem.has_kv_format is 0: set that to 1, or leave problem.kv_format as its "
          "_init function does");
  expect_refused(thresher_append_plan(cpu, &problem, -1, &none), "options.threads is -1, expected 0 (all) to 1024",
                 __LINE__);
#undef PLAN
  const int64_t places[] = {0, 1};
  thresher_tensor rows = tensor(values, THRESHER_FP16, 3, 2, 1, 64, 0);
  thresher_tensor pages = tensor(results, THRESHER_FP16, 4, 2, 2, 1, 64);
  thresher_tensor others = tensor(results + 1024, THRESHER_FP16, 4, 2, 2, 1, 64);
  thresher_tensor table = tensor((void*)ones, THRESHER_FP32, 2, 1, 8, 0, 0);
  thresher_tensor factor = tensor((void*)ones, THRESHER_FP32, 1, 1, 0, 0, 0);
  thresher_append_tensors tensors;
  thresher_append_tensors_init(&tensors, sizeof tensors);
  tensors.k = tensors.v = &rows;
  tensors.positions = tensors.slots = places;
  tensors.k_cache = &pages;
  tensors.v_cache = &others;
  TAKEN(thresher_append_run(plan, NULL, &tensors));
#define RUN thresher_append_run(plan, NULL, &it)
  REFUSED(tensors, it.struct_size = 4000000000U, RUN,
          "tensors.struct_size is 4000000000, expected at most 4096: initialise the struct with its _init function");
  REFUSED(tensors, it.number_bits = 16, RUN, "slots have 16 bits, expected 32 or 64");
  REFUSED(tensors, it.q = &rows, RUN, "q_out is [], expected [2, 1, 64]");
  REFUSED(tensors, it.q_out = &rows, RUN, "q is [], expected [2, 1, 64]");
  REFUSED(tensors, it.k = NULL, RUN, "k is null");
  REFUSED(tensors, it.positions = NULL, RUN, "positions has a null data pointer");
  REFUSED(tensors, it.slots = NULL, RUN, "slots has a null data pointer");
  REFUSED(tensors, it.cos_sin = &table, RUN,
          "cos_sin is given, but problem.max_position is 0 (no table): leave it empty");
  REFUSED(tensors, it.k_cache = NULL, RUN, "k_cache is null");
  REFUSED(tensors, it.k_descale = &factor, RUN, "k_descale is given, but the pages are not fp8_e4m3: leave it empty");
  REFUSED(tensors, it.v_descale = &factor, RUN, "v_descale is given, but the pages are not fp8_e4m3: leave it empty");
#undef RUN
  REFUSED(pages, (it.strides[0] = huge, it.strides[1] = 64, it.strides[2] = 64, it.strides[3] = 1),
          (tensors.k_cache = &it, thresher_append_run(plan, NULL, &tensors)),
          "k_cache has stride 4611686018427387904 along dimension 0, expected at most 72057594037927936 with an extent "
          "of 2");
  thresher_append_destroy(plan);
}

static void refuses_quantizations(void) {
  thresher_quantize_problem problem;
  thresher_quantize_problem_init(&problem, sizeof problem);
  problem.rows = 2;
  problem.columns = 128;
  thresher_quantize* plan = NULL;
  thresher_quantize* none = NULL;
  TAKEN(thresher_quantize_plan(cpu, &problem, 0, &plan));
#define PLAN thresher_quantize_plan(cpu, &it, 0, &none)
  REFUSED(problem, it.struct_size = 24, PLAN,
          "problem.struct_size is 24, expected at least 32: initialise the struct with its _init function");
  REFUSED(problem, it.x = 3, PLAN, "problem.x is fp8_e4m3, expected fp16 or bf16");
  REFUSED(problem, it.out = 7, PLAN, "problem.out is fp8_tensor, expected fp8_row or fp8_block");
  REFUSED(problem, it.reserved = 1, PLAN, "problem.reserved is 1, expected 0");
  REFUSED(problem, it.rows = -1, PLAN, "problem.rows is -1, expected 0 to 2147483647");
  REFUSED(problem, it.columns = 8, PLAN, "problem.columns is 8, expected a multiple of 16 for fp8_block operands");
  expect_refused(thresher_quantize_plan(cpu, &problem, -1, &none), "options.threads is -1, expected 0 (all) to 1024",
                 __LINE__);
#undef PLAN
  expect_refused(thresher_quantize_run_flat(plan, NULL, 2, values, 0, results, 0, (float*)ones, 3, 0),
                 "scale_layout is 3, expected 0 to 2", __LINE__);
  expect_refused(thresher_quantize_run_flat(plan, NULL, 2, values, 0, results, 0, (float*)ones, 0, 2),
                 "scales_are_powers_of_two is 2, expected 0 to 1", __LINE__);
  thresher_quantize_destroy(plan);
}

/* An _init function of a size that no struct has writes nothing far behind it. */
static void initialises_no_more_than_a_struct_has(void) {
  static unsigned char memory[1 << 16];
  memset(memory, 0xFF, sizeof memory);
  thresher_matrix_init((thresher_matrix*)memory, sizeof memory);
  if (memory[sizeof memory - 1] != 0xFF) {
    printf("FAILED: _init writes far behind the struct\n");
    ++failures;
  }
}

int main(void) {
  refuses_devices();
  refuses_options();
  refuses_dual_problems();
  refuses_matrices();
  refuses_gemms();
  refuses_groups();
  refuses_layers();
  refuses_attention();
  refuses_appends();
  refuses_quantizations();
  initialises_no_more_than_a_struct_has();
  printf("%d failures\n", failures);
  return failures;
}
