/* The gate and up half of a gated MLP on the CPU, from C: C = silu(A*B1^T) o (A*B2^T). */
#include <stdio.h>
#include <stdlib.h>

#include "thresher/thresher.h"

enum { m = 2, n = 16, k = 32, workspace_alignment = 256 };

static void must(thresher_status status) {
  if (status != THRESHER_OK) {
    fprintf(stderr, "%s\n", thresher_last_error());
    exit(1);
  }
}

static thresher_matrix matrix(void* data, thresher_format format, int64_t rows, int64_t columns) {
  thresher_matrix made;
  thresher_matrix_init(&made, sizeof made);
  made.data = data;
  made.format = format;
  made.shape[0] = rows;
  made.shape[1] = columns;
  return made; /* contiguous, in memory of the CPU */
}

int main(void) {
  static uint16_t a[m * k], gate[n * k], up[n * k];
  static float c[m * n];
  for (int i = 0; i < m * k; ++i) a[i] = 0x3F80; /* 1.0 in bf16 */
  for (int i = 0; i < n * k; ++i) gate[i] = up[i] = 0x3F80;
  const thresher_matrix in = matrix(a, THRESHER_BF16, m, k), out = matrix(c, THRESHER_FP32, m, n);
  const thresher_matrix b1 = matrix(gate, THRESHER_BF16, n, k), b2 = matrix(up, THRESHER_BF16, n, k);
  const thresher_device cpu = {THRESHER_CPU, 0};

  thresher_dual_gemm_problem problem;
  thresher_dual_gemm_problem_init(&problem, sizeof problem);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = problem.b = THRESHER_BF16;
  problem.out = THRESHER_FP32;

  thresher_dual_gemm_weights* weights = NULL;
  thresher_dual_gemm* plan = NULL;
  must(thresher_dual_gemm_pack(cpu, &b1, &b2, THRESHER_EXACT, &weights));
  must(thresher_dual_gemm_plan(cpu, &problem, weights, NULL, &plan));
  thresher_dual_gemm_weights_destroy(weights); /* the plan keeps what it needs; gate and up must stay */

  const size_t blocks = thresher_dual_gemm_workspace_bytes(plan) / workspace_alignment + 1;
  void* const workspace = aligned_alloc(workspace_alignment, blocks * workspace_alignment);
  must(thresher_dual_gemm_run(plan, NULL, &in, &out, workspace));
  printf("%s: c[0] = %g\n", thresher_dual_gemm_strategy(plan), (double)c[0]);
  thresher_dual_gemm_destroy(plan);
  free(workspace);
  return c[0] == 1024.0F ? 0 : 1; /* silu(32)*32 = 1024 in float32 */
}
