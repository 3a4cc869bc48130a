/* The C interface, from C, through the shared library. Exit status 0 when all holds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "thresher/thresher.h"

static int failures = 0;

static void expect(int holds, const char* what) {
  if (!holds) {
    printf("FAILED: %s (last error: %s)\n", what, thresher_last_error());
    ++failures;
  }
}

static uint16_t fp16_of_small_integer(int value) { /* 0 to 7 */
  static const uint16_t bits[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  return bits[value];
}

enum { m = 3, n = 8, k = 32, stride = 40 };
static _Alignas(64) uint16_t a[m * stride];
static _Alignas(64) uint16_t b1[n * k];
static _Alignas(64) uint16_t b2[n * k];
static _Alignas(64) float c[m * n];

static const thresher_device cpu = {THRESHER_CPU, 0};

static thresher_matrix matrix(void* data, thresher_format format, int64_t rows, int64_t columns) {
  thresher_matrix made;
  memset(&made, 0, sizeof made);
  made.data = data;
  made.format = format;
  made.shape[0] = rows;
  made.shape[1] = columns;
  return made;
}

static thresher_dual_gemm_problem problem_of_test(void) {
  thresher_dual_gemm_problem problem;
  memset(&problem, 0, sizeof problem);
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

static float expected(int row, int column) {
  int gate = 0;
  int up = 0;
  for (int i = 0; i < k; ++i) {
    const int left = 1 + (row * stride + i) % 3;
    gate += left * (1 + (column * k + i) % 4);
    up += left * (1 + (column * k + i) % 5);
  }
  return (float)gate * (float)up; /* the gate is so large that silu is the identity */
}

static void computes(int packed) {
  thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  thresher_dual_gemm_problem problem = problem_of_test();
  thresher_weights* weights = NULL;
  thresher_dual_gemm* plan = NULL;
  if (packed) {
    expect(thresher_pack(cpu, &gate, &up, THRESHER_EXACT, &weights) == THRESHER_OK, "pack");
    expect(thresher_save_packed(weights, "c_api_packed.safetensors") == THRESHER_OK, "save");
    thresher_weights_destroy(weights);
    weights = NULL;
    expect(thresher_load_packed(cpu, "c_api_packed.safetensors", &weights) == THRESHER_OK, "load");
    remove("c_api_packed.safetensors");
    expect(thresher_plan(cpu, &problem, weights, NULL, &plan) == THRESHER_OK, "plan");
  } else {
    expect(thresher_plan_raw(cpu, &problem, &gate, &up, "two_pass", &plan) == THRESHER_OK, "plan from raw weights");
    expect(strcmp(thresher_strategy(plan), "two_pass") == 0, "the strategy is the one that was asked for");
  }
  static _Alignas(256) unsigned char workspace[1 << 20];
  expect(thresher_workspace_bytes(plan) <= sizeof workspace, "the workspace is small");
  thresher_matrix in = matrix(a, THRESHER_FP16, m, k);
  in.row_stride = stride;
  thresher_matrix out = matrix(c, THRESHER_FP32, m, n);
  memset(c, 0xFF, sizeof c);
  if (packed) {
    expect(thresher_prepare(plan, NULL, &in, workspace) == THRESHER_OK, "prepare");
    expect(thresher_run_prepared(plan, NULL, &in, &out, workspace) == THRESHER_OK, "run what is prepared");
  } else {
    expect(thresher_run(plan, NULL, &in, &out, workspace) == THRESHER_OK, "run");
  }
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      expect(fabsf(c[row * n + column] - expected(row, column)) == 0, "every element is exact");
    }
  }
  thresher_dual_gemm_destroy(plan);
  thresher_weights_destroy(weights);
}

static void refuses(void) {
  thresher_matrix gate = matrix(b1, THRESHER_FP16, n, k);
  thresher_matrix up = matrix(b2, THRESHER_FP16, n, k);
  thresher_dual_gemm_problem problem = problem_of_test();
  thresher_dual_gemm* plan = NULL;
  expect(thresher_plan_raw(cpu, NULL, &gate, &up, NULL, &plan) == THRESHER_INVALID_ARGUMENT, "null problem");
  expect(strcmp(thresher_last_error(), "problem is null") == 0, "the sentence names the argument");
  problem.k = 0;
  expect(thresher_plan_raw(cpu, &problem, &gate, &up, NULL, &plan) == THRESHER_INVALID_ARGUMENT, "k of 0");
  expect(strstr(thresher_last_error(), "problem.k") != NULL, "the sentence names k");
  problem = problem_of_test();
  problem.out = (thresher_format)77;
  expect(thresher_plan_raw(cpu, &problem, &gate, &up, NULL, &plan) == THRESHER_INVALID_ARGUMENT, "unknown format");
  expect(strcmp(thresher_last_error(), "problem.out is 77, expected 0 to 6") == 0, "the sentence names the value");
  problem = problem_of_test();
  expect(thresher_plan_raw(cpu, &problem, &gate, &up, "no such", &plan) == THRESHER_INVALID_ARGUMENT, "strategy");
  expect(plan == NULL, "no plan after a failure");
  expect(thresher_run(NULL, NULL, &gate, &up, NULL) == THRESHER_INVALID_ARGUMENT, "null plan");
  expect(thresher_prepare(NULL, NULL, &gate, NULL) == THRESHER_INVALID_ARGUMENT, "null plan");
  expect(thresher_run_prepared(NULL, NULL, &gate, &up, NULL) == THRESHER_INVALID_ARGUMENT, "null plan");
  char name[8];
  expect(thresher_device_name(cpu, name, sizeof name) == THRESHER_OK && strlen(name) < sizeof name,
         "a name is cut off");
  expect(thresher_device_name(cpu, NULL, 8) == THRESHER_INVALID_ARGUMENT, "null name");
  const thresher_device far = {THRESHER_CUDA, 1000};
  expect(thresher_device_name(far, name, sizeof name) != THRESHER_OK, "GPU 1000");
  expect(strlen(thresher_last_error()) > 10, "and why there is none");
}

int main(void) {
  thresher_device best;
  char strategies[128];
  fill();
  expect(strlen(thresher_version()) > 0, "version");
  expect(thresher_best_device(&best) == THRESHER_OK, "best device");
  expect(thresher_dual_gemm_strategies(cpu, strategies, sizeof strategies) == THRESHER_OK, "strategies");
  expect(strstr(strategies, "two_pass") != NULL, "two_pass is among the strategies");
  computes(1);
  computes(0);
  refuses();
  printf("%s\n", failures == 0 ? "all holds" : "failures");
  return failures != 0;
}
