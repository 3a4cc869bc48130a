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

struct thresher_own_grouped_dual_gemm {
  /* groups of rows, each with weights of its own */
  long long experts;
  /* rows of C; of slots the rows of each */
  long long rows;
  /* columns of C */
  long long n;
  /* columns of A */
  long long k;
  /* rows of A where rows are gathered */
  long long tokens;
  /* [rows, k]; of slots [experts, rows, k]; of gathered [tokens, k] */
  thresher_own_tensor a;
  /* the gate [experts, n, k]; with an order gate and up [experts, 2 n, k] */
  thresher_own_tensor b1;
  /* up [experts, n, k]; none with an order */
  thresher_own_tensor b2;
  /* of b1 [experts, n] or [experts, 2 n] */
  thresher_own_tensor bias1;
  /* of b2 [experts, n] */
  thresher_own_tensor bias2;
  /* of up [experts], with an order; that of b1 is the gate's */
  thresher_own_tensor up_global_scales;
  /* int32 [experts + 1]: expert e owns rows offsets[e] to offsets[e + 1] */
  thresher_own_tensor offsets;
  /* int32 [experts], of slots: expert e owns the first counts[e] rows of its slot */
  thresher_own_tensor counts;
  /* int32 [rows], of gathered: row r takes row row_ids[r] / row_ids_divisor of A */
  thresher_own_tensor row_ids;
  /* float32, one for each row of C */
  thresher_own_tensor row_weights;
  /* float32 [1], of slots [experts]: the scale that C in fp8_tensor is divided by */
  thresher_own_tensor c_scale;
  /* [rows, n]; of slots [experts, rows, n]. A row that no expert owns stays unwritten */
  thresher_own_tensor c;
  /* float32, of C in fp8_row and fp8_block: its values are divided by them */
  thresher_own_tensor c_scales;
  /* of rows: 0 packed, 1 slots, 2 gathered */
  int layout;
  /* ids outside [0, tokens row_ids_divisor) own no row */
  int row_ids_divisor;
  /* of gate and up: 0 separate, 1 gate-first, 2 up-first, 3 interleaved */
  int order;
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

struct thresher_own_grouped_gemm {
  /* groups of rows, each with weights of its own */
  long long experts;
  /* rows of C; of slots the rows of each */
  long long rows;
  /* columns of C */
  long long n;
  /* columns of A */
  long long k;
  /* rows of A where rows are gathered */
  long long tokens;
  /* [rows, k]; of slots [experts, rows, k]; of gathered [tokens, k] */
  thresher_own_tensor a;
  /* [experts, n, k] */
  thresher_own_tensor b;
  /* [experts, n] */
  thresher_own_tensor bias;
  /* int32 [experts + 1]: expert e owns rows offsets[e] to offsets[e + 1] */
  thresher_own_tensor offsets;
  /* int32 [experts], of slots: expert e owns the first counts[e] rows of its slot */
  thresher_own_tensor counts;
  /* int32 [rows], of gathered: row r takes row row_ids[r] / row_ids_divisor of A */
  thresher_own_tensor row_ids;
  /* float32, one for each row of C */
  thresher_own_tensor row_weights;
  /* float32 [1], of slots [experts]: the scale that C in fp8_tensor is divided by */
  thresher_own_tensor c_scale;
  /* [rows, n]; of slots [experts, rows, n]. A row that no expert owns stays unwritten */
  thresher_own_tensor c;
  /* float32, of C in fp8_row and fp8_block: its values are divided by them */
  thresher_own_tensor c_scales;
  /* of rows: 0 packed, 1 slots, 2 gathered */
  int layout;
  /* ids outside [0, tokens row_ids_divisor) own no row */
  int row_ids_divisor;
  /* what the pitch asked for, with anything in it; null when it asked for nothing */
  void* workspace;
  long long workspace_bytes;
};

struct thresher_own_gemm {
  /* rows of A and of C */
  long long m;
  /* rows of B, columns of C */
  long long n;
  /* columns of A and B */
  long long k;
  /* [m, k] */
  thresher_own_tensor a;
  /* [n, k] */
  thresher_own_tensor b;
  /* [n] */
  thresher_own_tensor bias;
  /* [m, n] */
  thresher_own_tensor c;
  /* what the pitch asked for, with anything in it; null when it asked for nothing */
  void* workspace;
  long long workspace_bytes;
};
