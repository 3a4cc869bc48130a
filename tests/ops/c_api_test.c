/* The C interface, from C, through the shared library. Exit status 0 when all holds. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "thresher/thresher.h"

static int failures = 0;

static void expect(int holds, const char* what) {
  if (!holds) {
    printf("FAILED: %s (last error: %s)\n", what, thresher_last_error());
    ++failures;
  }
}

static void expect_ok(thresher_status status, const char* what) { expect(status == THRESHER_OK, what); }

static void expect_refused(thresher_status status, const char* sentence) {
  expect(status != THRESHER_OK, sentence);
  expect(strcmp(thresher_last_error(), sentence) == 0, sentence);
}

static uint16_t fp16_of_small_integer(int value) { /* 0 to 7 */
  static const uint16_t bits[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  return bits[value];
}

enum { m = 3, n = 8, k = 32, stride = 40 };
enum { fork_rows = 64, fork_columns = 256, fork_depth = 256 };
static _Alignas(64) uint16_t a[m * stride];
static _Alignas(64) uint16_t b1[n * k];
static _Alignas(64) uint16_t b2[n * k];
static _Alignas(64) float c[m * n];
static _Alignas(256) unsigned char workspace[4 << 20];

static const thresher_device cpu = {THRESHER_CPU, 0};

static thresher_matrix matrix(void* data, thresher_format format, int64_t rows, int64_t columns) {
  thresher_matrix made;
  thresher_matrix_init(&made, sizeof made);
  made.data = data;
  made.format = format;
  made.shape[0] = rows;
  made.shape[1] = columns;
  return made;
}

static thresher_dual_gemm_problem problem_of_test(void) {
  thresher_dual_gemm_problem problem;
  thresher_dual_gemm_problem_init(&problem, sizeof problem);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = THRESHER_FP16;
  problem.b = THRESHER_FP16;
  problem.out = THRESHER_FP32;
  return problem;
}

static void fill(void) {
  for (int i = 0; i < m * stride; ++i) a[i] = fp16_of_small_integer(1 + i % 3);
  for (int i = 0; i < n * k; ++i) b1[i] = fp16_of_small_integer(1 + i % 4);
  for (int i = 0; i < n * k; ++i) b2[i] = fp16_of_small_integer(1 + i % 5);
}

static void products(int row, int column, float* gate, float* up) {
  *gate = 0;
  *up = 0;
  for (int i = 0; i < k; ++i) {
    const int left = 1 + (row * stride + i) % 3;
    *gate += (float)(left * (1 + (column * k + i) % 4));
    *up += (float)(left * (1 + (column * k + i) % 5));
  }
}

/* Whether every element of the first `rows` rows of c is what silu gives, and those below are as they were. */
static int is_silu(int rows) {
  int holds = 1;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float gate;
      float up;
      products(row, column, &gate, &up); /* the gate is so large that silu is the identity */
      const float value = c[row * n + column];
      holds &= row < rows ? value == gate * up : isnan(value);
    }
  }
  return holds;
}

static void spoil_c(void) { memset(c, 0xFF, sizeof c); }

static thresher_matrix a_of_test(void) {
  thresher_matrix in = matrix(a, THRESHER_FP16, m, k);
  in.row_stride = stride;
  return in;
}

static void computes_packed(void) {
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  const thresher_dual_gemm_problem problem = problem_of_test();
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  thresher_dual_gemm_weights* weights = NULL;
  thresher_dual_gemm* plan = NULL;
  expect_ok(thresher_dual_gemm_pack(cpu, &gate, &up, THRESHER_EXACT, &weights), "pack");
  expect_ok(thresher_dual_gemm_weights_save(weights, "c_api_packed.safetensors"), "save");
  thresher_dual_gemm_weights_destroy(weights);
  weights = NULL;
  expect_ok(thresher_dual_gemm_weights_load(cpu, "c_api_packed.safetensors", &weights), "load");
  remove("c_api_packed.safetensors");
  expect_ok(thresher_dual_gemm_plan(cpu, &problem, weights, NULL, &plan), "plan");
  expect(thresher_dual_gemm_workspace_bytes(plan) <= sizeof workspace, "the workspace is small");
  spoil_c();
  expect_ok(thresher_dual_gemm_prepare(plan, NULL, &in, workspace), "prepare");
  expect_ok(thresher_dual_gemm_run_prepared(plan, NULL, &in, &out, workspace), "run what is prepared");
  expect(is_silu(m), "every element is exact");
  thresher_dual_gemm_destroy(plan);
  thresher_dual_gemm_weights_destroy(weights);
}

static _Alignas(THRESHER_BLOCK_ALIGNMENT) unsigned char block[1 << 14];

static void computes_from_a_block(void) {
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  const thresher_dual_gemm_problem problem = problem_of_test();
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  thresher_dual_gemm_weights* weights = NULL;
  thresher_dual_gemm* plan = NULL;
  thresher_packed_info info;
  size_t bytes = 0;
  expect_ok(thresher_dual_gemm_pack(cpu, &gate, &up, THRESHER_EXACT, &weights), "pack");
  memset(block, 0, sizeof block);
  expect_ok(thresher_dual_gemm_weights_block_bytes(weights, &bytes), "bytes of a block");
  expect(bytes > 2 * sizeof b1 && bytes <= sizeof block, "a block holds both matrices");
  expect(thresher_dual_gemm_weights_to_block(weights, block, bytes - 1) == THRESHER_INVALID_ARGUMENT && block[0] == 0,
         "a block of another size is not written");
  expect_ok(thresher_dual_gemm_weights_to_block(weights, block, bytes), "write a block");
  thresher_dual_gemm_weights_destroy(weights);
  weights = NULL;
  expect_ok(thresher_dual_gemm_weights_from_block(cpu, block, bytes, THRESHER_CHECK_CONTENT, &weights), "read a block");
  thresher_packed_info_init(&info, sizeof info);
  expect_ok(thresher_dual_gemm_weights_info(weights, &info), "what a block holds");
  expect(info.format == THRESHER_FP16 && info.experts == 0 && info.n == n && info.k == k && info.matrices == 2 &&
             info.has_bias == 0 && info.numerics == THRESHER_EXACT && info.struct_size == sizeof info,
         "what a block holds");
  thresher_packed_info_init(&info, offsetof(thresher_packed_info, matrices));
  info.matrices = 77;
  expect_ok(thresher_dual_gemm_weights_info(weights, &info), "an older program's info");
  expect(info.n == n && info.matrices == 77, "what an older program lacks is left alone");
  info.struct_size = 8;
  expect(thresher_dual_gemm_weights_info(weights, &info) == THRESHER_INVALID_ARGUMENT, "too small an info");
  expect_ok(thresher_dual_gemm_plan(cpu, &problem, weights, NULL, &plan), "plan from a block");
  thresher_dual_gemm_weights_destroy(weights);
  spoil_c();
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run from a block");
  expect(is_silu(m), "every element is exact");
  thresher_dual_gemm_destroy(plan);
  weights = NULL;
  expect(thresher_dual_gemm_weights_from_block(cpu, block, bytes - 1, THRESHER_CHECK_HEADER, &weights) ==
             THRESHER_INVALID_ARGUMENT,
         "a block that is cut off");
  block[bytes - 1] ^= 1;
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, block, bytes, THRESHER_CHECK_CONTENT, &weights),
                 "packed weights in memory: its bytes are not those that were written, it is damaged: pack the weights "
                 "again");
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, NULL, bytes, THRESHER_CHECK_HEADER, &weights),
                 "block is null");
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, block, bytes, 2, &weights), "check is 2, expected 0 to 1");
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, block, bytes, 0, NULL), "weights is null");
  expect(weights == NULL, "no weights after a refusal");
}

static void computes_raw(void) {
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  const thresher_dual_gemm_problem problem = problem_of_test();
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  thresher_dual_gemm_options options;
  thresher_dual_gemm_options_init(&options, sizeof options);
  options.strategy = "two_pass";
  options.threads = 1;
  thresher_dual_gemm* plan = NULL;
  expect_ok(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, &options, &plan), "plan from raw weights");
  expect(strcmp(thresher_dual_gemm_strategy(plan), "two_pass") == 0, "the strategy is the one that was asked for");
  spoil_c();
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run");
  expect(is_silu(m), "every element is exact");
  thresher_dual_gemm_destroy(plan);
}

static void computes_flat(void) {
  thresher_dual_gemm_weights* weights = NULL;
  thresher_dual_gemm* plan = NULL;
  expect_ok(thresher_dual_gemm_pack_flat(THRESHER_CPU, 0, THRESHER_FP16, n, k, b1, 0, NULL, NULL, b2, k, NULL, NULL,
                                         THRESHER_SCALES_ROW_MAJOR, THRESHER_EXACT, &weights),
            "pack by numbers");
  expect_ok(
      thresher_dual_gemm_plan_flat(weights, m, THRESHER_FP16, THRESHER_FP32, THRESHER_SILU, NULL, NULL, NULL, 0, &plan),
      "plan by numbers");
  spoil_c();
  expect_ok(thresher_dual_gemm_run_flat(plan, NULL, m, a, stride, NULL, 0, NULL, c, 0, workspace), "run by numbers");
  expect(is_silu(m), "every element is exact");
  spoil_c();
  expect_ok(thresher_dual_gemm_prepare_flat(plan, NULL, m, a, stride, NULL, 0, NULL, workspace), "prepare by numbers");
  expect_ok(thresher_dual_gemm_run_prepared_flat(plan, NULL, m, a, stride, NULL, 0, NULL, c, 0, workspace),
            "run what is prepared by numbers");
  expect(is_silu(m), "every element is exact");
  for (int rows = 0; rows <= m; ++rows) { /* one plan for every number of rows */
    spoil_c();
    expect_ok(thresher_dual_gemm_run_flat(plan, NULL, rows, a, stride, NULL, 0, NULL, c, 0, workspace),
              "run some rows");
    expect(is_silu(rows), "the rows that a has are written, and no other");
  }
  expect_refused(thresher_dual_gemm_run_flat(plan, NULL, m + 1, a, stride, NULL, 0, NULL, c, 0, workspace),
                 "a has 4 rows, expected 0 to 3, which the plan was made for");
  expect_refused(thresher_dual_gemm_run_flat(plan, NULL, -1, a, stride, NULL, 0, NULL, c, 0, workspace),
                 "a has -1 rows, expected 0 to 3, which the plan was made for");
  expect_refused(thresher_dual_gemm_run_flat(plan, NULL, m, a, stride, NULL, 0, NULL, a, 0, workspace),
                 "c shares memory with a, expected an output apart from every operand");
  expect_refused(thresher_dual_gemm_run_flat(plan, NULL, m, a, stride, NULL, 0, NULL, b2, 0, workspace),
                 "c shares memory with b2 (up), expected an output apart from every operand");
  thresher_dual_gemm_destroy(plan);
  thresher_dual_gemm_weights_destroy(weights);
  plan = NULL;
  expect_ok(thresher_dual_gemm_plan_raw_flat(THRESHER_CPU, 0, m, n, k, THRESHER_FP16, THRESHER_FP16, THRESHER_FP32,
                                             THRESHER_SILU, NULL, b1, 0, NULL, NULL, b2, 0, NULL, NULL,
                                             THRESHER_SCALES_ROW_MAJOR, "two_pass", NULL, 1, &plan),
            "plan from raw weights by numbers");
  spoil_c();
  expect_ok(thresher_dual_gemm_run_flat(plan, NULL, m, a, stride, NULL, 0, NULL, c, 0, workspace), "run by numbers");
  expect(is_silu(m), "every element is exact");
  thresher_dual_gemm_destroy(plan);
}

static int is_near(float value, float wanted) { return fabsf(value - wanted) <= 1e-5F * fabsf(wanted); }

/* Weights of ones and twos, by scales of 1 and a global scale of 1/2, through the struct and by numbers. */
static void takes_scales(void) {
  static _Alignas(64) unsigned char ones[n * k / 2];
  static _Alignas(64) unsigned char twos[n * k / 2];
  static unsigned char scales[512]; /* the blocked layout's, padded to 128 rows and 4 scales */
  static const float half = 0.5F;
  memset(ones, 0x22, sizeof ones);
  memset(twos, 0x44, sizeof twos);
  for (int row = 0; row < n; ++row) scales[row * 16] = scales[row * 16 + 1] = 0x38; /* e4m3's 1 */
  float sum = 0;                                                                    /* of the first row of A */
  for (int i = 0; i < k; ++i) sum += (float)(1 + i % 3);
  thresher_matrix gate = matrix(ones, THRESHER_NVFP4, n, k);
  gate.scales = scales;
  gate.scale_layout = THRESHER_SCALES_BLOCKED;
  gate.global_scale = &half;
  thresher_matrix up = gate;
  up.data = twos;
  thresher_dual_gemm_problem problem = problem_of_test();
  problem.b = THRESHER_NVFP4;
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  thresher_dual_gemm* plan = NULL;
  expect_ok(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan), "plan with NVFP4 weights");
  spoil_c();
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run with NVFP4 weights");
  expect(is_near(c[0], sum / 2 * sum), "scales and global scale count");
  thresher_dual_gemm_destroy(plan);
  plan = NULL;
  thresher_dual_gemm_weights* weights = NULL;
  expect_ok(thresher_dual_gemm_pack_flat(THRESHER_CPU, 0, THRESHER_NVFP4, n, k, ones, 0, scales, &half, twos, 0, scales,
                                         NULL, THRESHER_SCALES_BLOCKED, THRESHER_EXACT, &weights),
            "pack NVFP4 weights by numbers");
  expect_ok(
      thresher_dual_gemm_plan_flat(weights, m, THRESHER_FP16, THRESHER_FP32, THRESHER_SILU, NULL, NULL, NULL, 0, &plan),
      "plan with NVFP4 weights by numbers");
  expect_ok(thresher_dual_gemm_run_flat(plan, NULL, m, a, stride, NULL, 0, NULL, c, 0, workspace),
            "run with NVFP4 weights by numbers");
  expect(is_near(c[0], sum / 2 * 2 * sum), "each matrix has a global scale of its own");
  thresher_dual_gemm_destroy(plan);
  thresher_dual_gemm_weights_destroy(weights);
  gate.scales = NULL;
  plan = NULL;
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan),
                 "b1 (gate) is nvfp4 but has no scales: set Tensor::scales.data");
}

/* FP8 weights of ones, whose rows have scales 1, 2, 3, ..., and with one scale of all. */
static void takes_fp8(void) {
  static _Alignas(64) unsigned char ones[n * k];
  static float scales[n];
  static const float half = 0.5F;
  memset(ones, 0x38, sizeof ones); /* e4m3's 1 */
  for (int row = 0; row < n; ++row) scales[row] = (float)(row + 1);
  float sum = 0; /* of the first row of A */
  for (int i = 0; i < k; ++i) sum += (float)(1 + i % 3);
  thresher_dual_gemm* plan = NULL;
  expect_ok(thresher_dual_gemm_plan_raw_flat(THRESHER_CPU, 0, m, n, k, THRESHER_FP16, THRESHER_FP8_ROW, THRESHER_FP32,
                                             THRESHER_SILU, NULL, ones, 0, scales, NULL, ones, 0, scales, NULL,
                                             THRESHER_SCALES_ROW_MAJOR, NULL, NULL, 0, &plan),
            "plan with FP8 weights that have a scale a row");
  spoil_c();
  expect_ok(thresher_dual_gemm_run_flat(plan, NULL, m, a, stride, NULL, 0, NULL, c, 0, workspace),
            "run with FP8 weights that have a scale a row");
  expect(is_near(c[0], sum * sum) && is_near(c[2], 3 * sum * 3 * sum), "each row has its scale");
  thresher_dual_gemm_destroy(plan);
  plan = NULL;
  thresher_dual_gemm_problem problem = problem_of_test();
  problem.b = THRESHER_FP8_TENSOR;
  thresher_matrix gate = matrix(ones, THRESHER_FP8_TENSOR, n, k);
  thresher_matrix up = gate;
  up.global_scale = &half;
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  expect_ok(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan), "plan with FP8 weights");
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run with FP8 weights");
  expect(is_near(c[0], sum * sum / 2), "a matrix has its own scale");
  thresher_dual_gemm_destroy(plan);
  plan = NULL;
  gate.format = up.format = THRESHER_FP8_BLOCK;
  problem.b = THRESHER_FP8_BLOCK;
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan),
                 "b1 (gate) is fp8_block but has no scales: set Tensor::scales.data");
}

/* The same product as float32 and as FP8 with a scale a row, a power of two. */
static void quantizes_output(void) {
  static unsigned char codes[m * n];
  static float scales[m];
  thresher_dual_gemm_problem problem = problem_of_test();
  problem.out = THRESHER_FP8_ROW;
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  const thresher_matrix in = a_of_test();
  thresher_matrix out = matrix(codes, THRESHER_FP8_ROW, m, n);
  thresher_dual_gemm* plan = NULL;
  int exponent = 0;
  expect_ok(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan), "plan an output in FP8");
  expect_refused(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace),
                 "c is fp8_row but has no scales: set Tensor::scales.data");
  out.scales = scales;
  out.scales_are_powers_of_two = 2;
  expect_refused(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace),
                 "c.scales_are_powers_of_two is 2, expected 0 to 1");
  out.scales_are_powers_of_two = 1;
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run to an output in FP8");
  for (int row = 0; row < m; ++row) {
    unsigned char most = 0;
    for (int i = 0; i < n; ++i) {
      const unsigned char magnitude = codes[row * n + i] & 0x7F;
      most = magnitude > most ? magnitude : most;
    }
    expect(frexpf(scales[row], &exponent) == 0.5F, "a scale that is a power of two");
    expect(most >= 0x76 && most <= 0x7E, "the largest of a row between 224 and 448");
  }
  thresher_dual_gemm_destroy(plan);
}

/* gate 7 and up 7 after clamping at 7: 7*sigmoid(7 alpha)*(7 + up_offset). */
static float clamped(float alpha, float up_offset) { return 7.0F / (1.0F + expf(-7.0F * alpha)) * (7.0F + up_offset); }

static float first_output(const thresher_dual_gemm_problem* problem) {
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  thresher_dual_gemm* plan = NULL;
  spoil_c();
  expect_ok(thresher_dual_gemm_plan_raw(cpu, problem, &gate, &up, NULL, &plan), "plan with constants");
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run with constants");
  thresher_dual_gemm_destroy(plan);
  return c[0];
}

/* 0 is a value, and a default is what _init writes. */
static void tells_zero_from_default(void) {
  thresher_dual_gemm_problem problem = problem_of_test();
  problem.activation = THRESHER_SWIGLU_CLAMPED;
  expect(is_near(first_output(&problem), clamped(1.702F, 1.0F)), "the defaults of swiglu_clamped");
  problem.up_offset = 0;
  expect(is_near(first_output(&problem), clamped(1.702F, 0.0F)), "up_offset is 0");
  problem.alpha = 0;
  expect(is_near(first_output(&problem), clamped(0.0F, 0.0F)), "alpha is 0");
  problem.limit = 0;
  thresher_dual_gemm* plan = NULL;
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &gate, NULL, &plan),
                 "activation.limit is 0, expected a number above 0");
}

struct newer_problem {
  thresher_dual_gemm_problem known;
  int64_t unknown;
};

static void structs_grow(void) {
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  thresher_dual_gemm* plan = NULL;
  thresher_dual_gemm_problem older = problem_of_test();
  older.struct_size = offsetof(thresher_dual_gemm_problem, limit);
  older.activation = THRESHER_SWIGLU_CLAMPED;
  older.alpha = 1.702F;
  older.limit = older.up_offset = NAN; /* beyond its end: never read */
  expect(is_near(first_output(&older), clamped(1.702F, 1.0F)), "what an older struct lacks has its default");
  older.struct_size = 8;
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &older, &gate, &gate, NULL, &plan),
                 "problem.struct_size is 8, expected at least 40: initialise the struct with its _init function");

  struct newer_problem newer;
  thresher_dual_gemm_problem_init(&newer.known, sizeof newer);
  expect(newer.known.struct_size == sizeof newer && newer.unknown == 0, "_init reaches to the end of a newer struct");
  newer.known = problem_of_test();
  newer.known.struct_size = sizeof newer;
  expect_ok(thresher_dual_gemm_plan_raw(cpu, &newer.known, &gate, &gate, NULL, &plan),
            "a newer struct that sets nothing new");
  thresher_dual_gemm_destroy(plan);
  plan = NULL;
  newer.unknown = 1;
  expect(thresher_dual_gemm_plan_raw(cpu, &newer.known, &gate, &gate, NULL, &plan) == THRESHER_UNSUPPORTED,
         "a newer struct that sets what is not known here");
  expect(strstr(thresher_last_error(), "problem sets members that Thresher") == thresher_last_error(),
         "the sentence names the struct");
  expect(plan == NULL, "no plan after a failure");
}

static void refuses(void) {
  const thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  thresher_dual_gemm_problem problem = problem_of_test();
  thresher_dual_gemm_options options;
  thresher_dual_gemm* plan = NULL;
  expect_refused(thresher_dual_gemm_plan_raw(cpu, NULL, &gate, &up, NULL, &plan), "problem is null");
  problem.k = 0;
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan),
                 "problem.k is 0, expected at least 1");
  problem = problem_of_test();
  problem.out = (thresher_format)77;
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, NULL, &plan),
                 "problem.out is 77, expected 0 to 9");
  problem = problem_of_test();
  thresher_dual_gemm_options_init(&options, sizeof options);
  options.strategy = "no such";
  expect(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, &options, &plan) == THRESHER_INVALID_ARGUMENT,
         "a strategy that does not exist");
  options.strategy = NULL;
  options.knobs = "stages=1 stages=2";
  expect_refused(thresher_dual_gemm_plan_raw(cpu, &problem, &gate, &up, &options, &plan),
                 "the knob stages is given twice");
  expect(plan == NULL, "no plan after a failure");
  expect_refused(thresher_dual_gemm_run(NULL, NULL, &gate, &up, NULL), "plan is null");
  expect_refused(thresher_dual_gemm_prepare(NULL, NULL, &gate, NULL), "plan is null");
  expect_refused(thresher_dual_gemm_run_prepared(NULL, NULL, &gate, &up, NULL), "plan is null");
  expect_refused(thresher_dual_gemm_run_flat(NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, NULL), "plan is null");
  expect_refused(thresher_attention_run(NULL, NULL, NULL, NULL), "plan is null");
  char name[8];
  expect_ok(thresher_device_name(cpu, name, sizeof name), "a name is cut off");
  expect(strlen(name) < sizeof name, "and terminated");
  expect(thresher_device_name(cpu, NULL, 8) == THRESHER_INVALID_ARGUMENT, "null name");
  const thresher_device far = {THRESHER_CUDA, 1000};
  expect(thresher_device_name(far, name, sizeof name) != THRESHER_OK, "GPU 1000");
  expect(strlen(thresher_last_error()) > 10, "and why there is none");
}

/* Two queries of zeros see three keys alike: each output is the mean of the values they see. */
enum { queries = 2, keys = 3, head_dim = 64 };
static _Alignas(64) uint16_t q[queries * head_dim];
static _Alignas(64) uint16_t kv[keys * head_dim];
static _Alignas(64) uint16_t o[queries * head_dim];
static _Alignas(64) float lse[queries];

static void fill_attention(void) {
  for (int i = 0; i < keys * head_dim; ++i) kv[i] = fp16_of_small_integer(1 + 2 * (i / head_dim)); /* 1, 3, 5 */
}

static void spoil_outputs(void) {
  memset(o, 0xFF, sizeof o);
  memset(lse, 0xFF, sizeof lse);
}

static thresher_tensor tensor(void* data, thresher_format format, int32_t rank, const int64_t* shape) {
  thresher_tensor made;
  thresher_tensor_init(&made, sizeof made);
  made.data = data;
  made.format = format;
  made.rank = rank;
  memcpy(made.shape, shape, (size_t)rank * sizeof *shape);
  return made;
}

static thresher_attention_problem attention_of_test(void) {
  thresher_attention_problem problem;
  thresher_attention_problem_init(&problem, sizeof problem);
  problem.queries = queries;
  problem.keys = keys;
  return problem;
}

static int are_means(uint16_t first, float first_seen, uint16_t second, float second_seen) {
  int holds = is_near(lse[0], logf(first_seen)) && is_near(lse[1], logf(second_seen));
  for (int i = 0; i < head_dim; ++i) {
    holds &= o[i] == first && o[head_dim + i] == second;
  }
  return holds;
}

static void attends(void) {
  const int64_t q_shape[] = {1, 1, queries, head_dim};
  const int64_t kv_shape[] = {1, 1, keys, head_dim};
  const thresher_tensor q_there = tensor(q, THRESHER_FP16, 4, q_shape);
  const thresher_tensor kv_there = tensor(kv, THRESHER_FP16, 4, kv_shape);
  const thresher_tensor o_there = tensor(o, THRESHER_FP16, 4, q_shape);
  const thresher_tensor lse_there = tensor(lse, THRESHER_FP32, 3, q_shape);
  thresher_attention_tensors tensors;
  thresher_attention_tensors_init(&tensors, sizeof tensors);
  tensors.q = &q_there;
  tensors.k = tensors.v = &kv_there;
  tensors.o = &o_there;
  tensors.lse = &lse_there;
  thresher_attention_problem problem = attention_of_test();
  problem.causal = 1;
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "plan attention");
  expect(strcmp(thresher_attention_strategy(plan), "blockwise") == 0, "the CPU's strategy");
  expect(thresher_attention_workspace_bytes(plan) <= sizeof workspace, "attention's workspace is small");
  spoil_outputs();
  expect_ok(thresher_attention_run(plan, NULL, &tensors, workspace), "run attention");
  expect(are_means(0x4000, 2, 0x4200, 3), "the mean of 1 and 3, and of 1, 3 and 5, with their lse");
  uint32_t flags = 1;
  expect_ok(thresher_attention_run_status(plan, NULL, workspace, &flags), "the status of attention");
  expect(flags == 0, "the CPU refuses what makes no sense, and has nothing to tell");
  expect_refused(thresher_attention_run_status(plan, NULL, workspace, NULL), "flags is null");
  tensors.q = NULL;
  expect_refused(thresher_attention_run(plan, NULL, &tensors, workspace), "q is null");
  thresher_attention_destroy(plan);
}

static void attends_flat(void) {
  static const int32_t cu_q[] = {0, 1, 2};
  static const int32_t cu_k[] = {0, 2, 3};
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan_flat(THRESHER_CPU, 0, THRESHER_FP16, 1, 1, 1, queries, keys, head_dim, 0, NULL, -1,
                                         -1, NULL, 0, NULL, "", 0, 1, &plan),
            "plan attention by numbers");
  spoil_outputs();
  expect_ok(thresher_attention_run_flat(plan, NULL, q, NULL, kv, NULL, kv, NULL, o, NULL, lse, NULL, NULL, workspace),
            "run attention by numbers");
  expect(are_means(0x4200, 3, 0x4200, 3), "the mean of all values");
  thresher_attention_destroy(plan);
  plan = NULL;
  expect_ok(thresher_attention_plan_flat(THRESHER_CPU, 0, THRESHER_FP16, 2, 1, 1, queries, keys, head_dim, 0, NULL, -1,
                                         -1, NULL, 1, NULL, NULL, 0, 0, &plan),
            "plan two sequences");
  spoil_outputs();
  expect_ok(thresher_attention_run_flat(plan, NULL, q, NULL, kv, NULL, kv, NULL, o, NULL, lse, cu_q, cu_k, workspace),
            "run two sequences");
  expect(are_means(0x4000, 2, 0x4500, 1), "each sequence sees its own keys");
  static const int32_t wrong[] = {0, 2, 4};
  expect_refused(
      thresher_attention_run_flat(plan, NULL, q, NULL, kv, NULL, kv, NULL, o, NULL, lse, cu_q, wrong, workspace),
      "cu_seqlens_k ends with 4, expected at most 3, the number of rows");
  thresher_attention_destroy(plan);
}

/* The second page holds the first key, 1, and the first page the second key, 3. */
static const int32_t table[] = {1, 0};
static const int32_t used[] = {2};
static const int32_t one_sequence[] = {0, queries};

static void fill_pages(uint16_t* pool) {
  for (int i = 0; i < 4 * head_dim; ++i) pool[i] = 0x7E00; /* NaN */
  for (int i = 0; i < head_dim; ++i) {
    pool[i] = fp16_of_small_integer(3);
    pool[2 * head_dim + i] = fp16_of_small_integer(1);
  }
}

/* Pages of one key, in a pool whose rows are two keys apart; a sink of ln 2 counts as two keys of value 0. */
static void attends_over_pages(void) {
  static _Alignas(64) uint16_t pool[4 * head_dim];
  static float sink[] = {0.69314718F};
  fill_pages(pool);
  const int64_t q_shape[] = {queries, 1, head_dim};
  const int64_t pool_shape[] = {2, 1, 1, head_dim};
  const int64_t lse_shape[] = {1, queries};
  const int64_t table_shape[] = {1, 2};
  const int64_t offsets_shape[] = {2};
  const int64_t one[] = {1};
  const thresher_tensor q_there = tensor(q, THRESHER_FP16, 3, q_shape);
  thresher_tensor pool_there = tensor(pool, THRESHER_FP16, 4, pool_shape);
  const int64_t pool_strides[] = {2 * head_dim, head_dim, head_dim, 1};
  memcpy(pool_there.strides, pool_strides, sizeof pool_strides);
  const thresher_tensor o_there = tensor(o, THRESHER_FP16, 3, q_shape);
  const thresher_tensor lse_there = tensor(lse, THRESHER_FP32, 2, lse_shape);
  const thresher_tensor offsets_there = tensor((void*)one_sequence, THRESHER_INT32, 1, offsets_shape);
  const thresher_tensor table_there = tensor((void*)table, THRESHER_INT32, 2, table_shape);
  const thresher_tensor used_there = tensor((void*)used, THRESHER_INT32, 1, one);
  const thresher_tensor sink_there = tensor(sink, THRESHER_FP32, 1, one);
  thresher_attention_tensors tensors;
  thresher_attention_tensors_init(&tensors, sizeof tensors);
  tensors.q = &q_there;
  tensors.k = tensors.v = &pool_there;
  tensors.o = &o_there;
  tensors.lse = &lse_there;
  tensors.cu_seqlens_q = &offsets_there;
  tensors.block_table = &table_there;
  tensors.seqused_k = &used_there;
  tensors.sinks = &sink_there;
  thresher_attention_problem problem = attention_of_test();
  problem.variable_length = 1;
  problem.keys = 2;
  problem.page_size = 1;
  problem.pages = 2;
  problem.sinks = 1;
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "plan attention over pages");
  spoil_outputs();
  expect_ok(thresher_attention_run(plan, NULL, &tensors, workspace), "run attention over pages");
  expect(are_means(0x3C00, 4, 0x3C00, 4), "a quarter of 1 and 3: the sink is as heavy as both");
  tensors.sinks = NULL;
  expect_refused(thresher_attention_run(plan, NULL, &tensors, workspace),
                 "sinks is missing, but problem.sinks is true");
  thresher_attention_destroy(plan);
}

static void attends_over_pages_flat(void) {
  static _Alignas(64) uint8_t codes[4 * head_dim];
  static const float twice[] = {2.0F};
  const int64_t shared[] = {0, 0};
  const int64_t pool_strides[] = {2 * head_dim, head_dim, head_dim, 1};
  memset(codes, 0x7F, sizeof codes);            /* NaN */
  memset(codes, 0x44, head_dim);                /* 3 in e4m3 */
  memset(codes + 2 * head_dim, 0x38, head_dim); /* 1 */
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan_serving_flat(THRESHER_CPU, 0, THRESHER_FP16, THRESHER_FP16, THRESHER_FP8_E4M3, 1, 1,
                                                 1, queries, 2, head_dim, 0, 1, NULL, -1, -1, NULL, 1, 1, 2, 0, NULL,
                                                 NULL, 0, 0, &plan),
            "plan attention over FP8 pages");
  spoil_outputs();
  expect_ok(thresher_attention_run_serving_flat(plan, NULL, q, NULL, codes, pool_strides, codes, pool_strides, o, NULL,
                                                lse, one_sequence, NULL, table, 2, used, NULL, NULL, NULL, NULL, NULL,
                                                twice, shared, workspace),
            "run attention over FP8 pages");
  expect(are_means(0x4000, 1, 0x4400, 2), "twice the first key, and twice the mean of both");
  static const int32_t beyond[] = {1, 2};
  expect_refused(thresher_attention_run_serving_flat(plan, NULL, q, NULL, codes, pool_strides, codes, pool_strides, o,
                                                     NULL, lse, one_sequence, NULL, beyond, 0, used, NULL, NULL, NULL,
                                                     NULL, NULL, twice, shared, workspace),
                 "block_table[0, 1] is 2, expected 0 to 1: there are 2 pages");
  thresher_attention_destroy(plan);
}

/* Queries 1 and -1, keys 0, 1 and 2 in the first column, values 0, 0 and 7; with the descale ln 2 a row weighs its keys
 * as 1 : 2 : 4 or as 4 : 2 : 1. */
static _Alignas(64) uint8_t q_codes[queries * head_dim];
static _Alignas(64) uint8_t k_codes[keys * head_dim];
static _Alignas(64) uint8_t v_codes[keys * head_dim];
static float ln_2[] = {0.69314718F};

static void fill_codes(void) {
  q_codes[0] = 0x38;
  q_codes[head_dim] = 0xB8;
  k_codes[head_dim] = 0x38;
  k_codes[2 * head_dim] = 0x40;
  memset(v_codes + 2 * head_dim, 0x4E, head_dim);
}

static void attends_with_fp8_queries(void) {
  const int64_t q_shape[] = {1, 1, queries, head_dim};
  const int64_t kv_shape[] = {1, 1, keys, head_dim};
  const int64_t shared_shape[] = {1, 1};
  fill_codes();
  const thresher_tensor q_there = tensor(q_codes, THRESHER_FP8_E4M3, 4, q_shape);
  const thresher_tensor k_there = tensor(k_codes, THRESHER_FP8_E4M3, 4, kv_shape);
  const thresher_tensor v_there = tensor(v_codes, THRESHER_FP8_E4M3, 4, kv_shape);
  const thresher_tensor o_there = tensor(o, THRESHER_FP16, 4, q_shape);
  const thresher_tensor lse_there = tensor(lse, THRESHER_FP32, 3, q_shape);
  const thresher_tensor descale_there = tensor(ln_2, THRESHER_FP32, 2, shared_shape);
  thresher_attention_tensors tensors;
  thresher_attention_tensors_init(&tensors, sizeof tensors);
  tensors.q = &q_there;
  tensors.k = &k_there;
  tensors.v = &v_there;
  tensors.o = &o_there;
  tensors.lse = &lse_there;
  tensors.q_descale = &descale_there;
  thresher_attention_problem problem = attention_of_test();
  problem.has_scale = 1;
  problem.scale = 1;
  problem.has_kv_format = problem.has_q_format = 1;
  problem.kv_format = problem.q_format = THRESHER_FP8_E4M3;
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "plan attention with FP8 queries");
  spoil_outputs();
  expect_ok(thresher_attention_run(plan, NULL, &tensors, workspace), "run attention with FP8 queries");
  expect(are_means(0x4400, 7, 0x3C00, 1.75F), "keys weighed 1 : 2 : 4 and 4 : 2 : 1");
  thresher_attention_destroy(plan);
  plan = NULL;
  problem.has_q_format = 0;
  problem.q_format = 0;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "plan attention with FP8 keys alone");
  expect_refused(thresher_attention_run(plan, NULL, &tensors, workspace), "q is fp8_e4m3, expected fp16");
  const thresher_tensor wide_q_there = tensor(q, THRESHER_FP16, 4, q_shape);
  tensors.q = &wide_q_there;
  expect_refused(thresher_attention_run(plan, NULL, &tensors, workspace),
                 "q_descale is given, but queries are not fp8_e4m3: leave it empty");
  tensors.struct_size = (uint32_t)offsetof(thresher_attention_tensors, q_descale);
  expect_ok(thresher_attention_run(plan, NULL, &tensors, workspace),
            "run with an older struct, which has no q_descale");
  thresher_attention_destroy(plan);
}

static void attends_with_fp8_queries_flat(void) {
  const int64_t shared[] = {0, 0};
  const float one = 1;
  fill_codes();
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan_serving_flat(THRESHER_CPU, 0, THRESHER_FP16, THRESHER_FP8_E4M3, THRESHER_FP8_E4M3,
                                                 1, 1, 1, queries, keys, head_dim, 0, 0, &one, -1, -1, NULL, 0, 0, 0, 0,
                                                 NULL, NULL, 0, 0, &plan),
            "plan attention with FP8 queries by numbers");
  spoil_outputs();
  expect_ok(
      thresher_attention_run_serving_flat(plan, NULL, q_codes, NULL, k_codes, NULL, v_codes, NULL, o, NULL, lse, NULL,
                                          NULL, NULL, 0, NULL, NULL, ln_2, shared, NULL, NULL, NULL, NULL, workspace),
      "run attention with FP8 queries by numbers");
  expect(are_means(0x4400, 7, 0x3C00, 1.75F), "keys weighed 1 : 2 : 4 and 4 : 2 : 1 by numbers");
  thresher_attention_destroy(plan);
}

/* Two tokens, of which the second is written to the pool's first row; at position 0 nothing turns. */
static void appends(void) {
  static _Alignas(64) uint16_t pool_k[2 * head_dim], pool_v[2 * head_dim];
  static const int32_t positions[] = {0, 0};
  static const int32_t slots[] = {-1, 0};
  static const int32_t twice[] = {1, 1};
  const int64_t rows[] = {2, 1, head_dim};
  const int64_t pages[] = {1, 2, 1, head_dim};
  const thresher_tensor k_there = tensor(kv, THRESHER_FP16, 3, rows);
  const thresher_tensor pool_k_there = tensor(pool_k, THRESHER_FP16, 4, pages);
  const thresher_tensor pool_v_there = tensor(pool_v, THRESHER_FP16, 4, pages);
  thresher_append_tensors tensors;
  thresher_append_tensors_init(&tensors, sizeof tensors);
  expect(tensors.number_bits == 64, "numbers have 64 bits by default");
  tensors.number_bits = 32;
  tensors.k = tensors.v = &k_there;
  tensors.positions = positions;
  tensors.slots = slots;
  tensors.k_cache = &pool_k_there;
  tensors.v_cache = &pool_v_there;
  thresher_append_problem problem;
  thresher_append_problem_init(&problem, sizeof problem);
  problem.tokens = 2;
  problem.page_size = 2;
  thresher_append* plan = NULL;
  expect_ok(thresher_append_plan(cpu, &problem, 0, &plan), "plan append");
  expect_ok(thresher_append_run(plan, NULL, &tensors), "run append");
  for (int i = 0; i < head_dim; ++i) {
    expect(pool_k[i] == kv[head_dim + i] && pool_v[i] == kv[head_dim + i], "the second token's key and value");
    expect(pool_k[head_dim + i] == 0, "a row that no token names");
  }
  tensors.slots = twice;
  expect_refused(thresher_append_run(plan, NULL, &tensors), "slots name the row 1 twice, expected each at most once");
  thresher_append_destroy(plan);
  plan = NULL;
  problem.pairs = 3;
  expect_refused(thresher_append_plan(cpu, &problem, 0, &plan), "problem.pairs is 3, expected 0 to 2");
}

static void quantizes(void) {
  static uint16_t rows[2 * 128];
  static uint8_t codes[2 * 128];
  static float scales[4];
  for (int i = 0; i < 2 * 128; ++i) {
    rows[i] = i < 128 ? 0x3F80 : 0xC080; /* 1, then -4 in bf16 */
  }
  thresher_quantize_problem problem;
  thresher_quantize_problem_init(&problem, sizeof problem);
  problem.rows = 2;
  problem.columns = 128;
  thresher_quantize* plan = NULL;
  expect_ok(thresher_quantize_plan(cpu, &problem, 0, &plan), "plan quantize");
  thresher_matrix x, out;
  thresher_matrix_init(&x, sizeof x);
  thresher_matrix_init(&out, sizeof out);
  x.format = THRESHER_BF16;
  x.data = rows;
  out.format = THRESHER_FP8_BLOCK;
  out.data = codes;
  out.scales = scales;
  out.scale_layout = THRESHER_SCALES_COLUMN_MAJOR;
  x.shape[0] = out.shape[0] = 2;
  x.shape[1] = out.shape[1] = 128;
  expect_ok(thresher_quantize_run(plan, NULL, &x, &out), "run quantize");
  expect(codes[0] == 0x7E && codes[255] == 0xFE, "the largest of a block is 448");
  expect(scales[0] == 1.0F / 448.0F && scales[1] == 4.0F / 448.0F, "a scale for each row");
  expect_ok(thresher_quantize_run_flat(plan, NULL, 2, rows, 0, codes, 0, scales, THRESHER_SCALES_ROW_MAJOR, 1),
            "run quantize with numbers and pointers");
  expect(scales[0] == 1.0F / 256.0F && scales[1] == 4.0F / 256.0F, "powers of two");
  expect_refused(thresher_quantize_run_flat(plan, NULL, 3, rows, 0, codes, 0, scales, 0, 0),
                 "x has 3 rows, expected 0 to 2, which the plan was made for");
  thresher_quantize_destroy(plan);
}

/* A program that was compiled when the struct ended with variable_length. */
static void attends_for_an_older_program(void) {
  thresher_attention_problem problem = attention_of_test();
  problem.struct_size = (uint32_t)offsetof(thresher_attention_problem, value_dim);
  problem.page_size = -5;
  problem.has_kv_format = problem.has_q_format = 7;
  thresher_attention* plan = NULL;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "plan attention with an older struct");
  thresher_attention_destroy(plan);
  plan = NULL;
  problem = attention_of_test();
  problem.struct_size = (uint32_t)offsetof(thresher_attention_problem, has_q_format);
  problem.has_q_format = 7;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "plan attention with a struct without q_format");
  thresher_attention_destroy(plan);
}

static void refuses_attention(void) {
  thresher_attention_problem problem = attention_of_test();
  thresher_attention* plan = NULL;
  problem.causal = 2;
  expect_refused(thresher_attention_plan(cpu, &problem, NULL, &plan), "problem.causal is 2, expected 0 to 1");
  problem = attention_of_test();
  problem.struct_size = 0;
  expect_refused(thresher_attention_plan(cpu, &problem, NULL, &plan),
                 "problem.struct_size is 0, expected at least 56: initialise the struct with its _init function");
  problem = attention_of_test();
  problem.has_scale = 1;
  problem.scale = INFINITY;
  expect_refused(thresher_attention_plan(cpu, &problem, NULL, &plan), "problem.scale is inf, expected a finite number");
  problem.scale = 0;
  expect_ok(thresher_attention_plan(cpu, &problem, NULL, &plan), "a scale of 0 can be said");
  thresher_attention_destroy(plan);
  plan = NULL;
  problem = attention_of_test();
  problem.has_q_format = 2;
  expect_refused(thresher_attention_plan(cpu, &problem, NULL, &plan), "problem.has_q_format is 2, expected 0 to 1");
  problem.has_q_format = 1;
  problem.q_format = THRESHER_FP8_E4M3;
  expect_refused(thresher_attention_plan(cpu, &problem, NULL, &plan),
                 "problem.q_format is fp8_e4m3, which takes problem.kv_format fp8_e4m3 too, not fp16");
}

/* ---- Grouped products: 2 experts, 4 rows of which the last is nobody's. ---- */

enum { experts = 2, grouped_rows = 4 };
static _Alignas(64) uint16_t grouped_a[grouped_rows * k];
static _Alignas(64) uint16_t grouped_b[experts * 2 * n * k]; /* gate and up of each expert, one behind the other */
static _Alignas(64) float grouped_c[grouped_rows * n];
static const int32_t offsets[experts + 1] = {0, 1, 3};

static void fill_grouped(void) {
  for (int i = 0; i < grouped_rows * k; ++i) grouped_a[i] = fp16_of_small_integer(1 + i % 3);
  for (int i = 0; i < experts * 2 * n * k; ++i) grouped_b[i] = fp16_of_small_integer(i % 3);
}

static float grouped_product(int row, int of_expert, int weight_row) {
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += (float)((1 + (row * k + i) % 3) * (((of_expert * 2 * n + weight_row) * k + i) % 3));
  }
  return sum;
}

static int is_grouped(int has_activation) {
  int holds = 1;
  for (int row = 0; row < grouped_rows; ++row) {
    for (int column = 0; column < n; ++column) {
      const int expert = row < offsets[1] ? 0 : 1;
      const float gate = grouped_product(row, expert, column);
      const float up = grouped_product(row, expert, n + column);
      const float wanted = has_activation ? gate / (1 + expf(-gate)) * up : gate;
      const float is = grouped_c[row * n + column];
      holds = holds && (row < offsets[experts] ? fabsf(is - wanted) <= 1e-4f * fabsf(wanted) + 1e-6f : is == -1.0f);
    }
  }
  return holds;
}

static thresher_grouped_problem grouped_problem(void) {
  thresher_grouped_problem problem;
  thresher_grouped_problem_init(&problem, sizeof problem);
  problem.experts = experts;
  problem.rows = grouped_rows;
  problem.n = n;
  problem.k = k;
  problem.a = THRESHER_FP16;
  problem.b = THRESHER_FP16;
  problem.out = THRESHER_FP32;
  return problem;
}

static thresher_grouped_weights_view grouped_view(void) {
  thresher_grouped_weights_view view;
  thresher_grouped_weights_view_init(&view, sizeof view);
  view.format = THRESHER_FP16;
  view.device = cpu;
  view.experts = experts;
  view.n = n;
  view.k = k;
  view.order = THRESHER_GATE_FIRST;
  view.b1 = grouped_b;
  return view;
}

static thresher_grouped_tensors grouped_tensors(void) {
  thresher_grouped_tensors tensors;
  thresher_grouped_tensors_init(&tensors, sizeof tensors);
  tensors.rows = grouped_rows;
  tensors.a = grouped_a;
  tensors.c = grouped_c;
  tensors.groups = offsets;
  return tensors;
}

static void computes_groups(void) {
  const thresher_grouped_problem problem = grouped_problem();
  const thresher_grouped_weights_view view = grouped_view();
  const thresher_grouped_tensors tensors = grouped_tensors();
  thresher_grouped_weights* weights = NULL;
  thresher_grouped* plan = NULL;
  uint32_t flags = 99;
  expect_ok(thresher_grouped_pack(&view, THRESHER_EXACT, &weights), "pack the experts");
  expect_ok(thresher_grouped_plan(cpu, &problem, weights, NULL, &plan), "plan a grouped dual GEMM");
  expect(strcmp(thresher_grouped_strategy(plan), "by_expert") == 0, "the strategy of a grouped dual GEMM");
  expect(thresher_grouped_workspace_bytes(plan) <= sizeof workspace, "the workspace of a grouped dual GEMM");
  for (int i = 0; i < grouped_rows * n; ++i) grouped_c[i] = -1.0f;
  expect_ok(thresher_grouped_run(plan, NULL, &tensors, workspace), "run a grouped dual GEMM");
  expect(is_grouped(1), "the values of a grouped dual GEMM");
  expect_ok(thresher_grouped_run_status(plan, NULL, workspace, &flags), "the status of a grouped dual GEMM");
  expect(flags == 0, "offsets that make sense");
  for (int i = 0; i < grouped_rows * n; ++i) grouped_c[i] = -1.0f;
  expect_ok(thresher_grouped_run_flat(plan, NULL, 0, grouped_rows, 0, grouped_a, 0, NULL, NULL, grouped_c, 0, offsets,
                                      NULL, NULL, workspace),
            "run a grouped dual GEMM by pointers");
  expect(is_grouped(1), "the values of a grouped dual GEMM by pointers");
  thresher_grouped_destroy(plan);
  thresher_grouped_weights_destroy(weights);
}

static void computes_groups_from_a_block(void) {
  const thresher_grouped_problem problem = grouped_problem();
  const thresher_grouped_weights_view view = grouped_view();
  const thresher_grouped_tensors tensors = grouped_tensors();
  thresher_grouped_weights* weights = NULL;
  thresher_dual_gemm_weights* other = NULL;
  thresher_grouped* plan = NULL;
  thresher_packed_info info;
  size_t bytes = 0;
  expect_ok(thresher_grouped_pack(&view, THRESHER_EXACT, &weights), "pack the experts");
  expect_ok(thresher_grouped_weights_block_bytes(weights, &bytes), "bytes of the experts' block");
  expect(bytes <= sizeof block, "the experts' block is small");
  expect_ok(thresher_grouped_weights_to_block(weights, block, bytes), "write the experts' block");
  thresher_grouped_weights_destroy(weights);
  expect_ok(thresher_grouped_weights_from_block(cpu, block, bytes, THRESHER_CHECK_CONTENT, &weights),
            "read the experts' block");
  thresher_packed_info_init(&info, sizeof info);
  expect_ok(thresher_grouped_weights_info(weights, &info), "what the experts' block holds");
  expect(info.experts == experts && info.n == n && info.k == k && info.matrices == 2 && info.has_bias == 0,
         "what the experts' block holds");
  expect_ok(thresher_grouped_plan(cpu, &problem, weights, NULL, &plan), "plan from the experts' block");
  thresher_grouped_weights_destroy(weights);
  for (int i = 0; i < grouped_rows * n; ++i) grouped_c[i] = -1.0f;
  expect_ok(thresher_grouped_run(plan, NULL, &tensors, workspace), "run from the experts' block");
  expect(is_grouped(1), "the values from the experts' block");
  thresher_grouped_destroy(plan);
  expect_refused(thresher_dual_gemm_weights_from_block(cpu, block, bytes, THRESHER_CHECK_HEADER, &other),
                 "packed weights in memory: it holds the weights of 2 experts, of a grouped product, expected those of "
                 "a dual GEMM");
}

static void computes_groups_of_one_matrix(void) {
  thresher_grouped_problem problem = grouped_problem();
  thresher_grouped_weights_view view = grouped_view();
  const thresher_grouped_tensors tensors = grouped_tensors();
  thresher_grouped* plan = NULL;
  problem.activation = THRESHER_NO_ACTIVATION;
  view.order = THRESHER_SEPARATE;
  view.expert_stride = 2 * n * k;
  expect_ok(thresher_grouped_plan_raw(cpu, &problem, &view, NULL, &plan), "plan a grouped GEMM");
  for (int i = 0; i < grouped_rows * n; ++i) grouped_c[i] = -1.0f;
  expect_ok(thresher_grouped_run(plan, NULL, &tensors, workspace), "run a grouped GEMM");
  expect(is_grouped(0), "the values of a grouped GEMM");
  thresher_grouped_destroy(plan);
}

static thresher_gemm_problem gemm_problem(void) {
  thresher_gemm_problem problem;
  thresher_gemm_problem_init(&problem, sizeof problem);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = THRESHER_FP16;
  problem.b = THRESHER_FP16;
  problem.out = THRESHER_FP32;
  problem.bias = 1;
  return problem;
}

/* From raw weights and from packed ones, with a bias. */
static void multiplies(void) {
  static float bias[n];
  const thresher_gemm_problem problem = gemm_problem();
  const thresher_matrix b = matrix(b1, THRESHER_FP16, n, k);
  const thresher_matrix in = a_of_test();
  const thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  thresher_gemm_weights* weights = NULL;
  thresher_packed_info info;
  for (int i = 0; i < n; ++i) bias[i] = (float)(i - 3);
  expect_ok(thresher_gemm_pack(cpu, &b, bias, THRESHER_FP32, THRESHER_EXACT, &weights), "pack a matrix");
  thresher_packed_info_init(&info, sizeof info);
  expect_ok(thresher_gemm_weights_info(weights, &info), "what a packed matrix is");
  expect(info.experts == 1 && info.n == n && info.k == k && info.matrices == 1 && info.has_bias == 1,
         "what a packed matrix is");
  for (int is_packed = 0; is_packed < 2; ++is_packed) {
    thresher_gemm* plan = NULL;
    int holds = 1;
    expect_ok(is_packed ? thresher_gemm_plan(cpu, &problem, weights, NULL, &plan)
                        : thresher_gemm_plan_raw(cpu, &problem, &b, bias, THRESHER_FP32, NULL, &plan),
              "plan a GEMM");
    expect(strcmp(thresher_gemm_strategy(plan), "by_expert") == 0, "the strategy of a GEMM");
    expect(thresher_gemm_workspace_bytes(plan) <= sizeof workspace, "the workspace of a GEMM");
    spoil_c();
    expect_ok(is_packed ? thresher_gemm_run_flat(plan, NULL, m, in.data, stride, NULL, 0, NULL, c, n, workspace)
                        : thresher_gemm_run(plan, NULL, &in, &out, workspace),
              "run a GEMM");
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        float gate;
        float up;
        products(row, column, &gate, &up);
        holds &= c[row * n + column] == gate + bias[column];
      }
    }
    expect(holds, "the values of a GEMM");
    thresher_gemm_destroy(plan);
  }
  thresher_gemm_weights_destroy(weights);
}

static void refuses_to_multiply(void) {
  thresher_gemm_problem problem = gemm_problem();
  const thresher_matrix b = matrix(b1, THRESHER_FP16, n, k);
  thresher_gemm* plan = NULL;
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, &b, NULL, THRESHER_FP32, NULL, &plan),
                 "the weights have no bias, but problem.bias is true");
  problem.bias = 2;
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, &b, NULL, THRESHER_FP32, NULL, &plan),
                 "problem.bias is 2, expected 0 to 1");
  problem.bias = 0;
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, NULL, NULL, THRESHER_FP32, NULL, &plan), "b is null");
  expect_refused(thresher_gemm_plan_raw(cpu, &problem, &b, NULL, THRESHER_FP32, NULL, NULL), "plan is null");
  expect(plan == NULL, "no plan of a GEMM after a refusal");
}

static void refuses_groups(void) {
  const thresher_grouped_problem problem = grouped_problem();
  thresher_grouped_weights_view view = grouped_view();
  thresher_grouped* plan = NULL;
  view.order = 7;
  expect_refused(thresher_grouped_plan_raw(cpu, &problem, &view, NULL, &plan), "view.order is 7, expected 0 to 3");
  view.order = THRESHER_SEPARATE;
  expect_refused(thresher_grouped_plan_raw(cpu, &problem, &view, NULL, &plan),
                 "the weights are one matrix an expert, but the problem has an activation: expected gate and up");
  expect_refused(thresher_grouped_plan_raw(cpu, &problem, NULL, NULL, &plan), "view is null");
  expect(plan == NULL, "no plan after a refusal");
}

/* ---- Layers ---- */

static _Alignas(64) uint16_t down[experts * k * n]; /* [E,k,n]: the hidden size is k, the intermediate one n */
static _Alignas(64) float layer_out[grouped_rows * k];
static const int32_t topk_ids[grouped_rows * 2] = {0, 1, 1, -1, 0, 0, 2, 5};
static const float topk_weights[grouped_rows * 2] = {0.5f, 2.0f, 1.5f, 9.0f, 1.0f, 0.25f, 1.0f, 1.0f};

static void fill_layers(void) {
  for (int i = 0; i < experts * k * n; ++i) down[i] = fp16_of_small_integer(1 + i % 4);
}

/* One element of an expert's row, from the row of grouped_a. */
static float of_expert(int row, int expert, int column) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    const float gate = grouped_product(row, expert, i);
    const float up = grouped_product(row, expert, n + i);
    sum += gate / (1 + expf(-gate)) * up * (float)(1 + ((expert * k + column) * n + i) % 4);
  }
  return sum;
}

static int is_layer(int has_experts) {
  int holds = 1;
  for (int row = 0; row < grouped_rows; ++row) {
    for (int column = 0; column < k; ++column) {
      float wanted = has_experts ? 0 : of_expert(row, 0, column);
      for (int c = 0; has_experts && c < 2; ++c) {
        const int expert = topk_ids[row * 2 + c];
        if (expert >= 0 && expert < experts) {
          wanted += topk_weights[row * 2 + c] * of_expert(row, expert, column);
        }
      }
      holds = holds && fabsf(layer_out[row * k + column] - wanted) <= 1e-3f * fabsf(wanted);
    }
  }
  return holds;
}

static thresher_gated_mlp_problem mlp_problem(void) {
  thresher_gated_mlp_problem problem;
  thresher_gated_mlp_problem_init(&problem, sizeof problem);
  problem.x = problem.gate_up = problem.intermediate = problem.down = THRESHER_FP16;
  problem.out = THRESHER_FP32;
  problem.tokens = grouped_rows;
  problem.hidden_size = k;
  problem.intermediate_size = n;
  return problem;
}

static void computes_a_gated_mlp(void) {
  thresher_gated_mlp_problem problem = mlp_problem();
  const thresher_matrix gate = matrix(grouped_b, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(grouped_b + n * k, THRESHER_FP16, n, k);
  const thresher_matrix of_down = matrix(down, THRESHER_FP16, k, n);
  const thresher_matrix x = matrix(grouped_a, THRESHER_FP16, grouped_rows, k);
  const thresher_matrix out = matrix(layer_out, THRESHER_FP32, grouped_rows, k);
  thresher_gated_mlp_weights* weights = NULL;
  thresher_gated_mlp* plan = NULL;
  expect_ok(thresher_gated_mlp_pack(cpu, &gate, &up, &of_down, THRESHER_EXACT, &weights), "pack a gated MLP");
  expect_ok(thresher_gated_mlp_plan(cpu, &problem, weights, NULL, NULL, &plan), "plan a gated MLP");
  expect(thresher_gated_mlp_workspace_bytes(plan) <= sizeof workspace, "the workspace of a gated MLP");
  expect_ok(thresher_gated_mlp_run(plan, NULL, &x, &out, workspace), "run a gated MLP");
  expect(is_layer(0), "the values of a gated MLP");
  for (int i = 0; i < grouped_rows * k; ++i) layer_out[i] = -1.0f;
  expect_ok(thresher_gated_mlp_run_flat(plan, NULL, grouped_rows, grouped_a, k, NULL, 0, NULL, layer_out, 0, workspace),
            "run a gated MLP of plain arguments");
  expect(is_layer(0), "the values of a gated MLP of plain arguments");
  expect_refused(thresher_gated_mlp_run(plan, NULL, NULL, &out, workspace), "x is null");
  thresher_gated_mlp_destroy(plan);
  plan = NULL;
  problem.intermediate = THRESHER_FP32;
  expect_refused(thresher_gated_mlp_plan(cpu, &problem, weights, NULL, NULL, &plan),
                 "problem.intermediate is fp32, expected fp16, bf16, nvfp4 or one of FP8");
  problem.intermediate = THRESHER_FP16;
  problem.intermediate_scale = 2.0f;
  expect_refused(thresher_gated_mlp_plan(cpu, &problem, weights, NULL, NULL, &plan),
                 "problem.intermediate_scale is 2, expected 1 for fp16, which is given no scale");
  expect(plan == NULL, "no plan of a gated MLP after a refusal");
  thresher_gated_mlp_weights_destroy(weights);
}

/* Of a matrix that was packed as the one of one expert, and of gate and up packed by themselves. */
static void computes_a_gated_mlp_of_parts(void) {
  const thresher_gated_mlp_problem problem = mlp_problem();
  const thresher_matrix gate = matrix(grouped_b, THRESHER_FP16, n, k);
  const thresher_matrix up = matrix(grouped_b + n * k, THRESHER_FP16, n, k);
  thresher_grouped_weights_view view = grouped_view();
  thresher_dual_gemm_weights* gate_up = NULL;
  thresher_grouped_weights* several = NULL;
  thresher_grouped_weights* expert = NULL;
  thresher_gemm_weights* of_down = NULL;
  thresher_gated_mlp_weights* weights = NULL;
  thresher_gated_mlp* plan = NULL;
  expect_ok(thresher_dual_gemm_pack(cpu, &gate, &up, THRESHER_EXACT, &gate_up), "pack gate and up");
  view.order = THRESHER_SEPARATE;
  view.b1 = down;
  view.n = k;
  view.k = n;
  expect_ok(thresher_grouped_pack(&view, THRESHER_EXACT, &several), "pack several experts");
  expect_refused(thresher_gemm_weights_of_expert(several, &of_down),
                 "the weights are a matrix of 2 experts, expected one matrix of one");
  expect_refused(thresher_gemm_weights_of_expert(NULL, &of_down), "grouped is null");
  view.experts = 1;
  expect_ok(thresher_grouped_pack(&view, THRESHER_EXACT, &expert), "pack one expert");
  expect_ok(thresher_gemm_weights_of_expert(expert, &of_down), "take the matrix of one expert");
  expect_refused(thresher_gated_mlp_weights_of_parts(gate_up, NULL, &weights), "down is null");
  expect_ok(thresher_gated_mlp_weights_of_parts(gate_up, of_down, &weights), "join the parts of a gated MLP");
  expect_ok(thresher_gated_mlp_plan(cpu, &problem, weights, NULL, NULL, &plan), "plan a gated MLP of parts");
  thresher_dual_gemm_weights_destroy(gate_up);
  thresher_gemm_weights_destroy(of_down);
  thresher_grouped_weights_destroy(expert);
  thresher_grouped_weights_destroy(several);
  thresher_gated_mlp_weights_destroy(weights);
  for (int i = 0; i < grouped_rows * k; ++i) layer_out[i] = -1.0f;
  expect_ok(thresher_gated_mlp_run_flat(plan, NULL, grouped_rows, grouped_a, 0, NULL, 0, NULL, layer_out, 0, workspace),
            "run a gated MLP of parts");
  expect(is_layer(0), "the values of a gated MLP of parts");
  thresher_gated_mlp_destroy(plan);
}

static void computes_a_layer_of_experts(void) {
  thresher_grouped_weights_view view = grouped_view();
  const thresher_matrix x = matrix(grouped_a, THRESHER_FP16, grouped_rows, k);
  const thresher_matrix out = matrix(layer_out, THRESHER_FP32, grouped_rows, k);
  thresher_grouped_weights* gate_up = NULL;
  thresher_grouped_weights* of_down = NULL;
  thresher_moe* plan = NULL;
  thresher_moe_problem problem;
  thresher_moe_problem_init(&problem, sizeof problem);
  problem.x = problem.gate_up = problem.intermediate = problem.down = THRESHER_FP16;
  problem.rows = problem.out = THRESHER_FP32;
  problem.experts = experts;
  problem.tokens = grouped_rows;
  problem.top_k = 2;
  problem.hidden_size = k;
  problem.intermediate_size = n;
  expect_ok(thresher_grouped_pack(&view, THRESHER_EXACT, &gate_up), "pack gate and up of the experts");
  view.order = THRESHER_SEPARATE;
  view.b1 = down;
  view.n = k;
  view.k = n;
  expect_ok(thresher_grouped_pack(&view, THRESHER_EXACT, &of_down), "pack down of the experts");
  expect_ok(thresher_moe_plan(cpu, &problem, gate_up, of_down, NULL, NULL, &plan), "plan a layer of experts");
  expect(thresher_moe_workspace_bytes(plan) <= sizeof workspace, "the workspace of a layer of experts");
  for (int i = 0; i < grouped_rows * k; ++i) layer_out[i] = -1.0f;
  expect_ok(thresher_moe_run(plan, NULL, &x, topk_ids, topk_weights, &out, workspace), "run a layer of experts");
  expect(is_layer(1), "the values of a layer of experts");
  for (int i = 0; i < grouped_rows * k; ++i) layer_out[i] = -1.0f;
  expect_ok(thresher_moe_run_flat(plan, NULL, grouped_rows, grouped_a, k, NULL, 0, NULL, topk_ids, topk_weights,
                                  layer_out, 0, workspace),
            "run a layer of experts of plain arguments");
  expect(is_layer(1), "the values of a layer of experts of plain arguments");
  expect_refused(thresher_moe_run(plan, NULL, &x, NULL, topk_weights, &out, workspace),
                 "topk_ids has a null data pointer");
  thresher_moe_destroy(plan);
  plan = NULL;
  problem.down_bias = 2;
  expect_refused(thresher_moe_plan(cpu, &problem, gate_up, of_down, NULL, NULL, &plan),
                 "problem.down_bias is 2, expected 0 to 1");
  expect_refused(thresher_moe_plan(cpu, &problem, NULL, of_down, NULL, NULL, &plan), "gate_up is null");
  expect(plan == NULL, "no plan of a layer of experts after a refusal");
  thresher_grouped_weights_destroy(gate_up);
  thresher_grouped_weights_destroy(of_down);
}

/* ---- Processes ---- */

static int multiplies_like(const thresher_dual_gemm* plan, const thresher_matrix* in, const thresher_matrix* out,
                           const float* expected) {
  memset(out->data, 0xFF, fork_rows * fork_columns * sizeof(float));
  return thresher_dual_gemm_run(plan, NULL, in, out, workspace) == THRESHER_OK &&
         memcmp(out->data, expected, fork_rows * fork_columns * sizeof(float)) == 0;
}

/* A child that is forked after a call with two threads makes such a call, too. */
static void computes_in_a_forked_child(const char* strategy) {
  static _Alignas(64) uint16_t left[fork_rows * fork_depth];
  static _Alignas(64) uint16_t right[fork_columns * fork_depth];
  static _Alignas(64) float first[fork_rows * fork_columns];
  static _Alignas(64) float product[fork_rows * fork_columns];
  for (int i = 0; i < fork_rows * fork_depth; ++i) left[i] = fp16_of_small_integer(i % 3);
  for (int i = 0; i < fork_columns * fork_depth; ++i) right[i] = fp16_of_small_integer(i % 5);
  const thresher_matrix in = matrix(left, THRESHER_FP16, fork_rows, fork_depth);
  const thresher_matrix b = matrix(right, THRESHER_FP16, fork_columns, fork_depth);
  thresher_matrix out = matrix(first, THRESHER_FP32, fork_rows, fork_columns);
  thresher_dual_gemm_problem problem = problem_of_test();
  thresher_dual_gemm_options options;
  thresher_dual_gemm_options_init(&options, sizeof options);
  thresher_dual_gemm* plan = NULL;
  problem.m = fork_rows;
  problem.n = fork_columns;
  problem.k = fork_depth;
  options.threads = 2;
  options.strategy = strategy;
  expect_ok(thresher_dual_gemm_plan_raw(cpu, &problem, &b, &b, &options, &plan), "plan for two threads");
  expect(thresher_dual_gemm_workspace_bytes(plan) <= sizeof workspace, "the workspace for two threads");
  expect_ok(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace), "run with two threads");
  out.data = product;
  const pid_t child = fork();
  if (child == 0) {
    alarm(30); /* ends one that waits for threads which it does not have */
    _exit(multiplies_like(plan, &in, &out, first) ? 0 : 1);
  }
  int status = -1;
  expect(waitpid(child, &status, 0) == child && status == 0, "a forked child computes the same");
  expect(multiplies_like(plan, &in, &out, first), "so does its parent");
  thresher_dual_gemm_destroy(plan);
}

int main(void) {
  thresher_device best;
  char strategies[128];
  fill();
  fill_attention();
  expect(strcmp(thresher_version(), "0.2.0") == 0, "version");
  expect_ok(thresher_best_device(&best), "best device");
  expect_ok(thresher_dual_gemm_strategies(cpu, strategies, sizeof strategies), "strategies");
  expect(strcmp(strategies, "interleaved,two_pass") == 0, "the CPU's strategies");
  expect_ok(thresher_attention_strategies(cpu, strategies, sizeof strategies), "strategies of attention");
  expect(strcmp(strategies, "blockwise") == 0, "the CPU's strategies of attention");
  expect_ok(thresher_grouped_strategies(cpu, strategies, sizeof strategies), "strategies of the grouped products");
  expect(strcmp(strategies, "by_expert") == 0, "the CPU's strategies of the grouped products");
  fill_grouped();
  computes_groups();
  computes_groups_from_a_block();
  computes_groups_of_one_matrix();
  refuses_groups();
  expect_ok(thresher_gemm_strategies(cpu, strategies, sizeof strategies), "strategies of the GEMM");
  expect(strcmp(strategies, "by_expert") == 0, "the CPU's strategies of the GEMM");
  multiplies();
  refuses_to_multiply();
  fill_layers();
  computes_a_gated_mlp();
  computes_a_gated_mlp_of_parts();
  computes_a_layer_of_experts();
  computes_packed();
  computes_from_a_block();
  computes_raw();
  computes_flat();
  takes_scales();
  takes_fp8();
  quantizes_output();
  tells_zero_from_default();
  structs_grow();
  refuses();
  attends();
  attends_flat();
  attends_over_pages();
  attends_over_pages_flat();
  attends_with_fp8_queries();
  attends_with_fp8_queries_flat();
  attends_for_an_older_program();
  appends();
  quantizes();
  refuses_attention();
  computes_in_a_forked_child("interleaved");
  computes_in_a_forked_child("two_pass");
  printf("%d failures\n", failures);
  return failures;
}
