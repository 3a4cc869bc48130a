/* The structures that kernels of your own are given, one for each operation. thresher/own_kernel.h includes it.
 * Written by `thresher kernel-arguments --header`: do not edit. */
#pragma once

struct thresher_own_dual_gemm {
  /* tokens: rows of A and of C */
  long long m;
  /* rows of B1 and B2, columns of C */
  long long n;
  /* columns of A, B1 and B2 */
  long long k;
  /* [m, k] */
  thresher_own_matrix a;
  /* the gate [n, k] */
  thresher_own_matrix b1;
  /* up [n, k] */
  thresher_own_matrix b2;
  /* [m, n] */
  void* c;
  /* elements from one row to the next */
  long long c_row_stride;
  int c_format;
  /* of the gate: 0 silu, 1 gelu_tanh, 2 swiglu_clamped */
  int activation;
  /* this and the next two: swiglu_clamped alone */
  float alpha;
  float limit;
  float up_offset;
  /* what the pitch asked for, with anything in it; null when it asked for nothing */
  void* workspace;
  long long workspace_bytes;
};
