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
  /* of the gate: 0 silu, 1 gelu_tanh, 2 swiglu_clamped, 3 situ, 4 relu2 */
  int activation;
  /* this and the next two: of swiglu_clamped; situ has no up_offset */
  float alpha;
  float limit;
  float up_offset;
  /* what the pitch asked for, with anything in it; null when it asked for nothing */
  void* workspace;
  long long workspace_bytes;
};

struct thresher_own_attention {
  /* sequences */
  long long batch;
  /* query heads */
  long long heads;
  /* key heads: query head h reads h / (heads / kv_heads) */
  long long kv_heads;
  /* of each sequence; of all together with cu_seqlens_q */
  long long queries;
  /* of each sequence; of all with cu_seqlens_k; with pages the most of one */
  long long keys;
  /* columns of q and k */
  long long head_dim;
  /* columns of v and o */
  long long value_dim;
  /* of the cache; 0 without pages */
  long long pages;
  /* keys of a page; 0 without pages */
  long long page_size;
  /* [batch, heads, queries, head_dim]; with cu_seqlens_q [queries, heads, head_dim] */
  thresher_own_tensor q;
  /* like q, of keys and kv_heads; in pages [pages, page_size, kv_heads, head_dim] */
  thresher_own_tensor k;
  /* like k, of value_dim columns */
  thresher_own_tensor v;
  /* int32 [batch + 1]: sequence b has the queries cu_seqlens_q[b] to cu_seqlens_q[b + 1] */
  thresher_own_tensor cu_seqlens_q;
  /* int32 [batch + 1]: the same of keys */
  thresher_own_tensor cu_seqlens_k;
  /* int32 [batch, blocks]: key j lies in row j % page_size of page block_table[b, j / page_size] */
  thresher_own_tensor block_table;
  /* int32 [batch]: keys of each sequence in pages */
  thresher_own_tensor seqused_k;
  /* float32 [heads]: a logit that joins the denominator */
  thresher_own_tensor sinks;
  /* float32 [batch, kv_heads]: multiplies q in fp8_e4m3 */
  thresher_own_tensor q_descale;
  /* float32 [batch, kv_heads]: multiplies k in fp8_e4m3 */
  thresher_own_tensor k_descale;
  /* float32 [batch, kv_heads]: multiplies v in fp8_e4m3 */
  thresher_own_tensor v_descale;
  /* like q, of value_dim columns */
  thresher_own_tensor o;
  /* float32 [batch, heads, queries], or [heads, queries]: logarithms of the sums */
  thresher_own_tensor lse;
  /* query i sees keys up to i + keys - queries */
  int causal;
  /* so many keys to the left of that one are seen; -1 for all */
  int window_left;
  /* the same to the right */
  int window_right;
  /* multiplies the products of q and k */
  float scale;
  /* logits become softcap tanh(logit / softcap); 0 for none */
  float softcap;
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
  /* of the gate: 0 silu, 1 gelu_tanh, 2 swiglu_clamped, 3 situ, 4 relu2 */
  int activation;
  /* this and the next two: of swiglu_clamped; situ has no up_offset */
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

struct thresher_own_moe_layer {
  /* rows of x and of out */
  long long tokens;
  /* columns of x and of out */
  long long hidden_size;
  /* columns between the products */
  long long intermediate_size;
  /* of the layer */
  long long experts;
  /* choices of a token */
  long long top_k;
  /* [tokens, hidden_size] */
  thresher_own_tensor x;
  /* int32 [tokens, top_k]: experts; a choice outside [0, experts) adds nothing */
  thresher_own_tensor topk_ids;
  /* float32 [tokens, top_k]: multiply the choices' rows before they are added */
  thresher_own_tensor topk_weights;
  /* [experts, intermediate_size, hidden_size]; with an order gate and up, 2 intermediate_size rows */
  thresher_own_tensor gate;
  /* [experts, intermediate_size, hidden_size]; none with an order */
  thresher_own_tensor up;
  /* [experts, hidden_size, intermediate_size] */
  thresher_own_tensor down;
  /* of gate [experts, its rows] */
  thresher_own_tensor gate_bias;
  /* of up [experts, intermediate_size] */
  thresher_own_tensor up_bias;
  /* of down [experts, hidden_size] */
  thresher_own_tensor down_bias;
  /* of up [experts], with an order; that of gate is the gate's */
  thresher_own_tensor up_global_scales;
  /* [tokens, hidden_size] */
  thresher_own_tensor out;
  /* of the gate: 0 silu, 1 gelu_tanh, 2 swiglu_clamped, 3 situ, 4 relu2 */
  int activation;
  /* this and the next two: of swiglu_clamped; situ has no up_offset */
  float alpha;
  float limit;
  float up_offset;
  /* activations are rounded to it before down; THRESHER_OWN_FP32 and so on */
  int intermediate_format;
  /* of an intermediate in fp8_tensor or nvfp4; else 1 */
  float intermediate_scale;
  /* a choice's row is rounded to it before it is added; THRESHER_OWN_FP32 and so on */
  int rows_format;
  /* of gate and up: 0 separate, 1 gate-first, 2 up-first, 3 interleaved */
  int order;
  /* what the pitch asked for, with anything in it; null when it asked for nothing */
  void* workspace;
  long long workspace_bytes;
};

struct thresher_own_gated_mlp {
  /* rows of x and of out */
  long long tokens;
  /* columns of x and of out */
  long long hidden_size;
  /* columns between the products */
  long long intermediate_size;
  /* [tokens, hidden_size] */
  thresher_own_tensor x;
  /* [intermediate_size, hidden_size] */
  thresher_own_tensor gate;
  /* [intermediate_size, hidden_size] */
  thresher_own_tensor up;
  /* [hidden_size, intermediate_size] */
  thresher_own_tensor down;
  /* [tokens, hidden_size] */
  thresher_own_tensor out;
  /* of the gate: 0 silu, 1 gelu_tanh, 2 swiglu_clamped, 3 situ, 4 relu2 */
  int activation;
  /* this and the next two: of swiglu_clamped; situ has no up_offset */
  float alpha;
  float limit;
  float up_offset;
  /* activations are rounded to it before down; THRESHER_OWN_FP32 and so on */
  int intermediate_format;
  /* of an intermediate in fp8_tensor or nvfp4; else 1 */
  float intermediate_scale;
  /* what the pitch asked for, with anything in it; null when it asked for nothing */
  void* workspace;
  long long workspace_bytes;
};
