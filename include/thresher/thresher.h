/* The C interface of Thresher: every operation is planned once and run many times.
 *
 * Every function that can fail returns a status; thresher_last_error() then holds one sentence for this thread that
 * names the argument, its value and the limit. Nothing is written to any output on failure. Several threads may use a
 * handle, each with its own workspace; one destroys it. A plan, its workspace and the tensors must outlive every
 * pending run and every replay of a graph that captured one. The handle of weights may be destroyed once plans are
 * made.
 *
 * Structs begin with struct_size. A struct's _init function sets it to the given size, sizeof of the struct, and sets
 * every other member to its default. Members are only ever added at the end. A struct of an older program lacks some,
 * which then have their defaults. A struct of a newer program has some that this library does not know; they must be 0,
 * or the call is rejected with an error. No struct has more than 4096 bytes. 0 means "default" only where documented. A
 * member that a call does not use must keep the value that its _init function sets, or the call is rejected. A size
 * must not cut a member in two: the sizes of all versions are multiples of 8.
 *
 * A workspace is written, and must not overlap any tensor of its call.
 *
 * A process may fork and make calls in the child, unless a GPU was used before.
 *
 * Functions whose names end in _flat take only numbers and pointers, for bindings. */
#ifndef THRESHER_H
#define THRESHER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define THRESHER_API __attribute__((visibility("default")))
#else
#define THRESHER_API
#endif

typedef int32_t thresher_status;
enum {
  THRESHER_OK = 0,
  THRESHER_INVALID_ARGUMENT = 1, /* an argument's value, shape, type or alignment is wrong */
  THRESHER_UNSUPPORTED = 2,      /* valid, but not available on this device or in this build */
  THRESHER_OUT_OF_MEMORY = 3,
  THRESHER_IO = 4,
  THRESHER_DEVICE = 5,  /* the GPU driver or a GPU library reported a failure */
  THRESHER_COMPILE = 6, /* device code did not compile, or compiled badly */
  THRESHER_INTERNAL = 7 /* a defect in Thresher itself */
};

typedef int32_t thresher_format;
enum {
  THRESHER_FP32 = 0,
  THRESHER_FP16 = 1,
  THRESHER_BF16 = 2,
  THRESHER_FP8_E4M3 = 3,
  THRESHER_NVFP4 = 4, /* e2m1, two per byte, low nibble first; one e4m3 scale per 16 along K */
  THRESHER_INT32 = 5,
  THRESHER_UINT8 = 6,
  /* e4m3 multiplied by float32 scales: */
  THRESHER_FP8_TENSOR = 7, /* per-tensor: one for the matrix, given as its global scale */
  THRESHER_FP8_ROW = 8,    /* per-row */
  THRESHER_FP8_BLOCK = 9   /* per-block: 128 along K of a row of tokens, 128 x 128 of weights */
};

typedef int32_t thresher_device_kind;
enum { THRESHER_CPU = 0, THRESHER_CUDA = 1 };

typedef struct thresher_device {
  thresher_device_kind kind;
  int32_t ordinal; /* 0 for the CPU */
} thresher_device;

typedef int32_t thresher_scale_layout;
enum {
  THRESHER_SCALES_ROW_MAJOR = 0,   /* [rows, C], C scales for a row's K values */
  THRESHER_SCALES_BLOCKED = 1,     /* NVFP4: Blackwell's and cuBLAS's: see ScaleLayout in thresher/format.hpp */
  THRESHER_SCALES_COLUMN_MAJOR = 2 /* tokens in FP8 blocks: [C, rows rounded up to 4] */
};

/* "0.2.0" */
THRESHER_API const char* thresher_version(void);
/* 1: from now on this thread promises that all pointers it passes to a run are memory of the plan's GPU. The driver is
 * then not asked, which takes some tenths of a microsecond per pointer; a pointer to other memory is undefined
 * behaviour. 0, the default: the driver is asked, and such a pointer is rejected with an error. Returns the previous
 * value. */
THRESHER_API int32_t thresher_places_are_known(int32_t yes);
/* The sentence of the last failure on this thread; "" before the first. Valid until the next failure on this thread. */
THRESHER_API const char* thresher_last_error(void);

/* The first usable GPU if there is one, otherwise this CPU. */
THRESHER_API thresher_status thresher_best_device(thresher_device* device);
/* The model name, truncated to fit and always terminated. Fails with what is missing when the device cannot be used. */
THRESHER_API thresher_status thresher_device_name(thresher_device device, char* name, size_t capacity);

/* ---- Dual GEMM: C = activation(A*B1^T) o (A*B2^T) ---- */

/* A non-owning view of a row-major matrix [shape[0], shape[1]]. For NVFP4 elements are e2m1 values, scales is set, and
 * global_scale points to one float32 on the tensor's device or is null for 1. */
typedef struct thresher_matrix {
  uint32_t struct_size;
  thresher_format format;
  void* data;
  int64_t shape[2];
  thresher_device device;
  int64_t row_stride; /* elements from one row to the next; 0 for shape[1] */
  const void* scales; /* on the tensor's device; null without scales; written for an output */
  const float* global_scale;
  thresher_scale_layout scale_layout;
  int32_t scales_are_powers_of_two; /* 1: round the scales of an output in fp8_row or fp8_block up to powers of two; 0
                                     * by default */
} thresher_matrix;

typedef int32_t thresher_activation;
enum {
  THRESHER_SILU = 0,
  THRESHER_GELU_TANH = 1,
  THRESHER_SWIGLU_CLAMPED = 2, /* with alpha, limit and up_offset */
  THRESHER_SITU = 3,           /* with alpha and limit, of Kimi-K3 4 and 25, which have to be set */
  THRESHER_RELU2 = 4           /* of one matrix: the GEMM, the grouped GEMM, and layers without a gate */
};

typedef int32_t thresher_numerics;
enum { THRESHER_EXACT = 0, THRESHER_FAST = 1 };

/* C[m,n] from A[m,k], B1[n,k] (the gate) and B2[n,k] (up). a and b: fp16, bf16, nvfp4 or one of FP8; out: fp16, bf16,
 * fp32, or quantized: one of FP8, or nvfp4. */
typedef struct thresher_dual_gemm_problem {
  uint32_t struct_size;
  thresher_format a;
  thresher_format b;
  thresher_format out;
  int64_t m; /* the maximum number of rows of a call */
  int64_t n;
  int64_t k;
  thresher_activation activation; /* silu by default */
  float alpha;                    /* of swiglu_clamped, 1.702 by default; of situ */
  float limit;                    /* of swiglu_clamped, 7 by default, above 0; of situ */
  float up_offset;                /* swiglu_clamped only, 1 by default */
} thresher_dual_gemm_problem;

typedef struct thresher_dual_gemm_options {
  uint32_t struct_size;
  int32_t threads;           /* CPU: 0, the default, for all */
  const char* strategy;      /* null or "", the default: chosen for the problem */
  const char* knobs;         /* "name=value ..." as `thresher plan` prints them; null or "": chosen for the problem.
                                "numerics=fast" says how plan_raw packs; packed weights have numerics of their own */
  const char* deterministic; /* "batch": a row's bits do not depend on the other rows of a call; null or "": they may */
} thresher_dual_gemm_options;

typedef struct thresher_dual_gemm_weights thresher_dual_gemm_weights;
typedef struct thresher_dual_gemm thresher_dual_gemm;

/* Sets struct_size and the defaults, for `struct_size` bytes; members without a default become 0. */
THRESHER_API void thresher_matrix_init(thresher_matrix* matrix, uint32_t struct_size);
THRESHER_API void thresher_dual_gemm_problem_init(thresher_dual_gemm_problem* problem, uint32_t struct_size);
THRESHER_API void thresher_dual_gemm_options_init(thresher_dual_gemm_options* options, uint32_t struct_size);

/* The strategies the device offers, the default first, separated by commas and terminated; an error when they do not
 * fit. */
THRESHER_API thresher_status thresher_dual_gemm_strategies(thresher_device device, char* names, size_t capacity);

/* Packs the weights for a device. On a GPU they are read in the legacy default stream and copied, finished on return;
 * on the CPU they must outlive the handle and the plans. */
THRESHER_API thresher_status thresher_dual_gemm_pack(thresher_device device, const thresher_matrix* b1_gate,
                                                     const thresher_matrix* b2_up, thresher_numerics numerics,
                                                     thresher_dual_gemm_weights** weights);
/* Weights in a file, which is replaced atomically; loaded weights own their memory. A file that is damaged, of another
 * version or packed for another kind of device is rejected with an error. */
THRESHER_API thresher_status thresher_dual_gemm_weights_save(const thresher_dual_gemm_weights* weights,
                                                             const char* path);
THRESHER_API thresher_status thresher_dual_gemm_weights_load(thresher_device device, const char* path,
                                                             thresher_dual_gemm_weights** weights);
THRESHER_API void thresher_dual_gemm_weights_destroy(thresher_dual_gemm_weights* weights);

/* ---- Packed weights as one block of bytes that the caller owns ----
 * A block holds what a file of packed weights holds: a header with layout, formats, shapes, a version and fingerprints,
 * and behind it the weights. It is memory of one device and starts at a multiple of THRESHER_BLOCK_ALIGNMENT bytes (on
 * a GPU of THRESHER_BLOCK_ALIGNMENT_ON_GPU). It may be copied, kept and loaded like any bytes. Weights for which
 * packing is the identity (on the CPU; 16-bit weights on a GPU) are stored as plain matrices and fit every device.
 * Others fit the kind of device they were packed for. */

enum { THRESHER_BLOCK_ALIGNMENT = 16, THRESHER_BLOCK_ALIGNMENT_ON_GPU = 256 };

/* The checks made before a block is used. */
typedef int32_t thresher_packed_check;
enum {
  THRESHER_CHECK_HEADER = 0, /* the header is as written and fits the block; the rest is not read */
  THRESHER_CHECK_CONTENT = 1 /* all bytes are as written; from a GPU they are copied to the host */
};

/* What packed weights hold, for the dual GEMM, the GEMM or a grouped product. */
typedef struct thresher_packed_info {
  uint32_t struct_size;
  thresher_format format; /* before packing */
  int64_t experts;        /* 0 for the dual GEMM */
  int64_t n;              /* rows of one matrix of one expert */
  int64_t k;
  int32_t matrices; /* per expert: 2 for gate and up, otherwise 1 */
  int32_t has_bias; /* 0 or 1 */
  thresher_numerics numerics;
  int32_t reserved; /* 0 */
} thresher_packed_info;

THRESHER_API void thresher_packed_info_init(thresher_packed_info* info, uint32_t struct_size);
/* Fills `info`, which must be initialised as every struct. */
THRESHER_API thresher_status thresher_dual_gemm_weights_info(const thresher_dual_gemm_weights* weights,
                                                             thresher_packed_info* info);
/* Bytes of the block that holds these weights. */
THRESHER_API thresher_status thresher_dual_gemm_weights_block_bytes(const thresher_dual_gemm_weights* weights,
                                                                    size_t* bytes);
/* Writes them to `block`, memory of the weights' device; finished on return. A block of another size, at another
 * multiple or on another device is THRESHER_INVALID_ARGUMENT, and nothing is written then. */
THRESHER_API thresher_status thresher_dual_gemm_weights_to_block(const thresher_dual_gemm_weights* weights, void* block,
                                                                 size_t bytes);
/* Weights that are read in place from `block`, memory of `device` that must outlive them and every plan made from them.
 * Bytes that are not packed weights, are damaged, of another version or of a grouped product are
 * THRESHER_INVALID_ARGUMENT. Bytes packed for another kind of device are THRESHER_UNSUPPORTED. */
THRESHER_API thresher_status thresher_dual_gemm_weights_from_block(thresher_device device, const void* block,
                                                                   size_t bytes, thresher_packed_check check,
                                                                   thresher_dual_gemm_weights** weights);

/* Chooses a strategy or takes the named one; may compile and allocate. `options` null: the defaults. The plan keeps
 * what it needs of the weights. */
THRESHER_API thresher_status thresher_dual_gemm_plan(thresher_device device, const thresher_dual_gemm_problem* problem,
                                                     const thresher_dual_gemm_weights* weights,
                                                     const thresher_dual_gemm_options* options,
                                                     thresher_dual_gemm** plan);
/* The same from weights that are not packed and must outlive the plan. */
THRESHER_API thresher_status thresher_dual_gemm_plan_raw(thresher_device device,
                                                         const thresher_dual_gemm_problem* problem,
                                                         const thresher_matrix* b1_gate, const thresher_matrix* b2_up,
                                                         const thresher_dual_gemm_options* options,
                                                         thresher_dual_gemm** plan);
THRESHER_API void thresher_dual_gemm_destroy(thresher_dual_gemm* plan);

/* The bytes that `workspace` must hold for any number of rows; 0 when null will do. */
THRESHER_API size_t thresher_dual_gemm_workspace_bytes(const thresher_dual_gemm* plan);
/* The chosen strategy. Valid as long as the plan. */
THRESHER_API const char* thresher_dual_gemm_strategy(const thresher_dual_gemm* plan);

/* Enqueues one call on `stream`, a CUstream or cudaStream_t (ignored on the CPU, where the call is complete on return).
 * `a` has 0 to m rows and `c` as many; c must not overlap a, B1 or B2. No allocation, no synchronisation; can be
 * captured in a CUDA graph. The workspace starts at a multiple of 256 bytes on the plan's device, and concurrent runs
 * must not share it. DualGemm::run in thresher/dual_gemm.hpp has the alignments of a and c. */
THRESHER_API thresher_status thresher_dual_gemm_run(const thresher_dual_gemm* plan, void* stream,
                                                    const thresher_matrix* a, const thresher_matrix* c,
                                                    void* workspace);
/* The same in two parts. `prepare` puts into the workspace what the strategy derives from `a`: NVFP4 tokens
 * dequantized, or quantized to e4m3 with numerics fast. The second part may run several times with the same `a`, whose
 * memory must still be valid. */
THRESHER_API thresher_status thresher_dual_gemm_prepare(const thresher_dual_gemm* plan, void* stream,
                                                        const thresher_matrix* a, void* workspace);
THRESHER_API thresher_status thresher_dual_gemm_run_prepared(const thresher_dual_gemm* plan, void* stream,
                                                             const thresher_matrix* a, const thresher_matrix* c,
                                                             void* workspace);

/* Row strides count elements, 0 for contiguous rows. `scales` and `global_scale` may be null for formats without them.
 */
THRESHER_API thresher_status thresher_dual_gemm_pack_flat(int32_t device_kind, int32_t device_ordinal, int32_t format,
                                                          int64_t n, int64_t k, const void* b1_gate,
                                                          int64_t b1_row_stride, const void* b1_scales,
                                                          const float* b1_global_scale, const void* b2_up,
                                                          int64_t b2_row_stride, const void* b2_scales,
                                                          const float* b2_global_scale, int32_t scale_layout,
                                                          int32_t numerics, thresher_dual_gemm_weights** weights);
/* The problem's format of B, n and k are those of the weights. `activation_constants` are alpha, limit and up_offset,
 * or null for the defaults; `strategy` and `knobs` may be null. */
THRESHER_API thresher_status thresher_dual_gemm_plan_flat(const thresher_dual_gemm_weights* weights, int64_t m,
                                                          int32_t a_format, int32_t out_format, int32_t activation,
                                                          const float* activation_constants, const char* strategy,
                                                          const char* knobs, int32_t threads,
                                                          thresher_dual_gemm** plan);
/* The same from weights that are not packed and must outlive the plan. */
THRESHER_API thresher_status thresher_dual_gemm_plan_raw_flat(
    int32_t device_kind, int32_t device_ordinal, int64_t m, int64_t n, int64_t k, int32_t a_format, int32_t b_format,
    int32_t out_format, int32_t activation, const float* activation_constants, const void* b1_gate,
    int64_t b1_row_stride, const void* b1_scales, const float* b1_global_scale, const void* b2_up,
    int64_t b2_row_stride, const void* b2_scales, const float* b2_global_scale, int32_t scale_layout,
    const char* strategy, const char* knobs, int32_t threads, thresher_dual_gemm** plan);
/* Formats, k, n and the device are the plan's. */
THRESHER_API thresher_status thresher_dual_gemm_run_flat(const thresher_dual_gemm* plan, void* stream, int64_t rows,
                                                         const void* a, int64_t a_row_stride, const void* a_scales,
                                                         int32_t a_scale_layout, const float* a_global_scale, void* c,
                                                         int64_t c_row_stride, void* workspace);
THRESHER_API thresher_status thresher_dual_gemm_prepare_flat(const thresher_dual_gemm* plan, void* stream, int64_t rows,
                                                             const void* a, int64_t a_row_stride, const void* a_scales,
                                                             int32_t a_scale_layout, const float* a_global_scale,
                                                             void* workspace);
THRESHER_API thresher_status thresher_dual_gemm_run_prepared_flat(const thresher_dual_gemm* plan, void* stream,
                                                                  int64_t rows, const void* a, int64_t a_row_stride,
                                                                  const void* a_scales, int32_t a_scale_layout,
                                                                  const float* a_global_scale, void* c,
                                                                  int64_t c_row_stride, void* workspace);

/* ---- GEMM: C = A*B^T, plus a bias, or relu2 of that ---- */

/* C[m,n] from A[m,k] and B[n,k]. a and b: fp16, bf16, nvfp4 or one of FP8; out: fp16, bf16 or fp32. */
typedef struct thresher_gemm_problem {
  uint32_t struct_size;
  thresher_format a;
  thresher_format b;
  thresher_format out;
  int64_t m; /* the maximum number of rows of a call */
  int64_t n;
  int64_t k;
  int32_t bias;                   /* 1: the weights have a bias; 0 by default */
  thresher_activation activation; /* THRESHER_RELU2; 0, the default: none */
} thresher_gemm_problem;

typedef struct thresher_gemm_weights thresher_gemm_weights;
typedef struct thresher_gemm thresher_gemm;

/* Each as its namesake of the dual GEMM, with the options of the dual GEMM. `bias` is null or [n], contiguous on the
 * device of b, in fp16, bf16 or fp32. Rows of b are contiguous if it has scales. */
THRESHER_API void thresher_gemm_problem_init(thresher_gemm_problem* problem, uint32_t struct_size);
THRESHER_API thresher_status thresher_gemm_strategies(thresher_device device, char* names, size_t capacity);
THRESHER_API thresher_status thresher_gemm_pack(thresher_device device, const thresher_matrix* b, const void* bias,
                                                thresher_format bias_format, thresher_numerics numerics,
                                                thresher_gemm_weights** weights);
THRESHER_API void thresher_gemm_weights_destroy(thresher_gemm_weights* weights);
/* As for one expert. */
THRESHER_API thresher_status thresher_gemm_weights_info(const thresher_gemm_weights* weights,
                                                        thresher_packed_info* info);
THRESHER_API thresher_status thresher_gemm_plan(thresher_device device, const thresher_gemm_problem* problem,
                                                const thresher_gemm_weights* weights,
                                                const thresher_dual_gemm_options* options, thresher_gemm** plan);
THRESHER_API thresher_status thresher_gemm_plan_raw(thresher_device device, const thresher_gemm_problem* problem,
                                                    const thresher_matrix* b, const void* bias,
                                                    thresher_format bias_format,
                                                    const thresher_dual_gemm_options* options, thresher_gemm** plan);
THRESHER_API void thresher_gemm_destroy(thresher_gemm* plan);
THRESHER_API size_t thresher_gemm_workspace_bytes(const thresher_gemm* plan);
THRESHER_API const char* thresher_gemm_strategy(const thresher_gemm* plan);
THRESHER_API thresher_status thresher_gemm_run(const thresher_gemm* plan, void* stream, const thresher_matrix* a,
                                               const thresher_matrix* c, void* workspace);
THRESHER_API thresher_status thresher_gemm_run_flat(const thresher_gemm* plan, void* stream, int64_t rows,
                                                    const void* a, int64_t a_row_stride, const void* a_scales,
                                                    int32_t a_scale_layout, const float* a_global_scale, void* c,
                                                    int64_t c_row_stride, void* workspace);

/* ---- Grouped products: each group of rows with the weights of its own expert ----
 * The grouped dual GEMM C = activation(A*B1^T) o (A*B2^T), and without an activation the grouped GEMM C = A*B1^T.
 * thresher/grouped_gemm.hpp documents the members under the same names. */

typedef int32_t thresher_row_layout;
enum {
  THRESHER_ROWS_PACKED = 0,  /* contiguous: A [rows,K]; expert e owns rows offsets[e] to offsets[e+1]-1 of C */
  THRESHER_ROWS_SLOTS = 1,   /* masked: A [E,rows,K]; expert e owns the first counts[e] rows of its slot of C */
  THRESHER_ROWS_GATHERED = 2 /* as packed; row r of C takes row row_ids[r]/row_ids_divisor of A [tokens,K] */
};

/* The order of the rows of gate and up. A wrong order cannot be detected. */
typedef int32_t thresher_gate_up;
enum {
  THRESHER_SEPARATE = 0,   /* b1 [E,N,K] is the gate and b2 [E,N,K] up; or b1 alone for the grouped GEMM */
  THRESHER_GATE_FIRST = 1, /* b1 [E,2N,K] has all of gate, then all of up */
  THRESHER_UP_FIRST = 2,   /* all of up, then all of gate */
  THRESHER_INTERLEAVED = 3 /* gate, up, gate, up, ... */
};

enum { THRESHER_NO_ACTIVATION = -1 }; /* for thresher_grouped_problem: the grouped GEMM */

typedef struct thresher_grouped_problem {
  uint32_t struct_size;
  thresher_row_layout layout; /* packed by default */
  int64_t experts;
  int64_t rows; /* the maximum of C's rows in a call; with slots per slot */
  int64_t n;
  int64_t k;
  int64_t tokens;          /* gathered: the maximum of A's rows; otherwise 0 */
  int64_t expected_rows;   /* rows that experts own in a usual call; 0, the default: unknown */
  int64_t row_ids_divisor; /* 1 by default */
  thresher_format a;
  thresher_format b;
  thresher_format out;
  thresher_activation activation; /* silu by default; THRESHER_NO_ACTIVATION, THRESHER_RELU2: the grouped GEMM */
  float alpha;                    /* these as in thresher_dual_gemm_problem */
  float limit;
  float up_offset;
  int32_t bias;        /* 1: the weights have biases; 0 by default */
  int32_t row_weights; /* 1: every row of C is multiplied by its own float32; 0 by default */
  int32_t reserved;    /* 0 */
} thresher_grouped_problem;

/* All pointers are to memory of the device. Strides count elements, 0 for contiguous tensors. */
typedef struct thresher_grouped_weights_view {
  uint32_t struct_size;
  thresher_format format;
  thresher_device device;
  int64_t experts;
  int64_t n; /* rows of one matrix of one expert */
  int64_t k;
  thresher_gate_up order;
  thresher_scale_layout scale_layout;
  const void* b1;
  const void* b2; /* null unless gate and up are separate */
  int64_t expert_stride;
  int64_t row_stride;
  const void* b1_scales; /* NVFP4: each expert's behind the one before */
  const void* b2_scales;
  const float* b1_global_scales; /* one per expert, or null for 1; of the gate if gate and up are one tensor */
  const float* b2_global_scales; /* of up; null for those of the gate if gate and up are one tensor */
  const void* bias1;             /* [E,N], in one tensor [E,2N] in the same order; or null */
  const void* bias2;
  thresher_format bias_format; /* fp32, fp16 or bf16 */
  int32_t reserved;            /* 0 */
} thresher_grouped_weights_view;

/* One call. All pointers are to memory of the plan's device; pointers that the layout does not use are null. */
typedef struct thresher_grouped_tensors {
  uint32_t struct_size;
  thresher_scale_layout a_scale_layout;
  int64_t rows;   /* of C; with slots per slot */
  int64_t tokens; /* gathered: rows of A; otherwise ignored */
  const void* a;
  int64_t a_row_stride; /* in elements, 0 for contiguous rows */
  const void* a_scales;
  const float* a_global_scale; /* one; with slots one per slot; or null for 1 */
  void* c;
  int64_t c_row_stride;
  const int32_t* groups; /* offsets [E+1]; with slots counts [E] */
  const int32_t* row_ids;
  const float* row_weights;
  /* For a c in FP8 or NVFP4, laid out as those of a: scales are written, global scales are read. */
  void* c_scales;
  const float* c_global_scale;
  thresher_scale_layout c_scale_layout;
  int32_t c_scales_are_powers_of_two; /* as in thresher_matrix */
} thresher_grouped_tensors;

/* Flags of thresher_grouped_run_status. */
enum {
  THRESHER_OFFSETS_DECREASE = 1,
  THRESHER_OFFSETS_NEGATIVE = 2,
  THRESHER_OFFSETS_BEYOND = 4,
  THRESHER_ROWS_SKIPPED = 8 /* ids outside A, which is no mistake by itself */
};

typedef struct thresher_grouped_weights thresher_grouped_weights;
typedef struct thresher_grouped thresher_grouped;

/* Each as its namesake of the dual GEMM, with the options of the dual GEMM. */
THRESHER_API void thresher_grouped_problem_init(thresher_grouped_problem* problem, uint32_t struct_size);
THRESHER_API void thresher_grouped_weights_view_init(thresher_grouped_weights_view* view, uint32_t struct_size);
THRESHER_API void thresher_grouped_tensors_init(thresher_grouped_tensors* tensors, uint32_t struct_size);
THRESHER_API thresher_status thresher_grouped_strategies(thresher_device device, char* names, size_t capacity);
THRESHER_API thresher_status thresher_grouped_pack(const thresher_grouped_weights_view* view,
                                                   thresher_numerics numerics, thresher_grouped_weights** weights);
THRESHER_API void thresher_grouped_weights_destroy(thresher_grouped_weights* weights);
THRESHER_API thresher_status thresher_grouped_weights_info(const thresher_grouped_weights* weights,
                                                           thresher_packed_info* info);
THRESHER_API thresher_status thresher_grouped_weights_block_bytes(const thresher_grouped_weights* weights,
                                                                  size_t* bytes);
THRESHER_API thresher_status thresher_grouped_weights_to_block(const thresher_grouped_weights* weights, void* block,
                                                               size_t bytes);
THRESHER_API thresher_status thresher_grouped_weights_from_block(thresher_device device, const void* block,
                                                                 size_t bytes, thresher_packed_check check,
                                                                 thresher_grouped_weights** weights);
/* The weights of the plain GEMM from those of one expert, whose memory they share. */
THRESHER_API thresher_status thresher_gemm_weights_of_expert(const thresher_grouped_weights* grouped,
                                                             thresher_gemm_weights** weights);
THRESHER_API thresher_status thresher_grouped_plan(thresher_device device, const thresher_grouped_problem* problem,
                                                   const thresher_grouped_weights* weights,
                                                   const thresher_dual_gemm_options* options, thresher_grouped** plan);
THRESHER_API thresher_status thresher_grouped_plan_raw(thresher_device device, const thresher_grouped_problem* problem,
                                                       const thresher_grouped_weights_view* view,
                                                       const thresher_dual_gemm_options* options,
                                                       thresher_grouped** plan);
THRESHER_API void thresher_grouped_destroy(thresher_grouped* plan);
THRESHER_API size_t thresher_grouped_workspace_bytes(const thresher_grouped* plan);
THRESHER_API const char* thresher_grouped_strategy(const thresher_grouped* plan);
/* Writes the rows of C that experts own. The host never reads the contents of groups and row_ids: they may change
 * between replays of a captured graph. */
THRESHER_API thresher_status thresher_grouped_run(const thresher_grouped* plan, void* stream,
                                                  const thresher_grouped_tensors* tensors, void* workspace);
/* The flags of the last run in `stream` with this workspace, for which it waits. */
THRESHER_API thresher_status thresher_grouped_run_status(const thresher_grouped* plan, void* stream,
                                                         const void* workspace, uint32_t* flags);
/* The members of thresher_grouped_tensors in their order. */
THRESHER_API thresher_status thresher_grouped_run_flat(const thresher_grouped* plan, void* stream,
                                                       int32_t a_scale_layout, int64_t rows, int64_t tokens,
                                                       const void* a, int64_t a_row_stride, const void* a_scales,
                                                       const float* a_global_scale, void* c, int64_t c_row_stride,
                                                       const int32_t* groups, const int32_t* row_ids,
                                                       const float* row_weights, void* workspace);

/* ---- Layers: a dense gated MLP, and a layer of MoE experts ----
 * thresher/gated_mlp.hpp and thresher/moe_layer.hpp document the members under the same names. The options of each
 * product are those of the dual GEMM, null for the defaults. */

typedef struct thresher_gated_mlp_problem {
  uint32_t struct_size;
  thresher_format x;
  int64_t tokens; /* the maximum number of rows of a call */
  int64_t hidden_size;
  int64_t intermediate_size;
  thresher_format gate_up;
  thresher_format intermediate; /* fp16, bf16, nvfp4 or one of FP8 */
  thresher_format down;
  thresher_format out;            /* fp16, bf16 or fp32 */
  thresher_activation activation; /* silu by default */
  float alpha;                    /* these as in thresher_dual_gemm_problem */
  float limit;
  float up_offset;
  float intermediate_scale; /* the one scale of fp8_tensor, the global scale of nvfp4; 1 by default, and for other
                             * formats */
  int32_t reserved;         /* 0 */
} thresher_gated_mlp_problem;

typedef struct thresher_gated_mlp_weights thresher_gated_mlp_weights;
typedef struct thresher_gated_mlp thresher_gated_mlp;

THRESHER_API void thresher_gated_mlp_problem_init(thresher_gated_mlp_problem* problem, uint32_t struct_size);
/* gate and up [intermediate_size, hidden_size], down [hidden_size, intermediate_size]; gate is null for relu2. On a GPU
 * they are copied; on the CPU they must outlive the handle. */
THRESHER_API thresher_status thresher_gated_mlp_pack(thresher_device device, const thresher_matrix* gate,
                                                     const thresher_matrix* up, const thresher_matrix* down,
                                                     thresher_numerics numerics, thresher_gated_mlp_weights** weights);
/* From products that were packed separately, for instance in blocks; they share their memory. */
THRESHER_API thresher_status thresher_gated_mlp_weights_of_parts(const thresher_dual_gemm_weights* gate_up,
                                                                 const thresher_gemm_weights* down,
                                                                 thresher_gated_mlp_weights** weights);
/* The same for relu2, which has no gate. */
THRESHER_API thresher_status thresher_gated_mlp_weights_of_up(const thresher_gemm_weights* up,
                                                              const thresher_gemm_weights* down,
                                                              thresher_gated_mlp_weights** weights);
THRESHER_API void thresher_gated_mlp_weights_destroy(thresher_gated_mlp_weights* weights);
THRESHER_API thresher_status thresher_gated_mlp_plan(thresher_device device, const thresher_gated_mlp_problem* problem,
                                                     const thresher_gated_mlp_weights* weights,
                                                     const thresher_dual_gemm_options* gate_up_options,
                                                     const thresher_dual_gemm_options* down_options,
                                                     thresher_gated_mlp** plan);
THRESHER_API void thresher_gated_mlp_destroy(thresher_gated_mlp* plan);
THRESHER_API size_t thresher_gated_mlp_workspace_bytes(const thresher_gated_mlp* plan);
/* As thresher_dual_gemm_run: x and out have 0 to `tokens` rows. */
THRESHER_API thresher_status thresher_gated_mlp_run(const thresher_gated_mlp* plan, void* stream,
                                                    const thresher_matrix* x, const thresher_matrix* out,
                                                    void* workspace);

THRESHER_API thresher_status thresher_gated_mlp_run_flat(const thresher_gated_mlp* plan, void* stream, int64_t rows,
                                                         const void* x, int64_t x_row_stride, const void* x_scales,
                                                         int32_t x_scale_layout, const float* x_global_scale, void* out,
                                                         int64_t out_row_stride, void* workspace);

typedef struct thresher_moe_problem {
  uint32_t struct_size;
  thresher_format x;
  int64_t experts;
  int64_t tokens; /* the maximum of x's rows in a call */
  int64_t top_k;  /* top-k assignments per token */
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t expected_rows; /* assignments in a usual call; 0, the default: unknown */
  thresher_format gate_up;
  thresher_format intermediate; /* fp16, bf16, nvfp4 or one of FP8 */
  thresher_format down;
  thresher_format rows;           /* of the combined rows: fp16, bf16 or fp32 */
  thresher_format out;            /* fp16, bf16 or fp32 */
  thresher_activation activation; /* silu by default */
  float alpha;                    /* these as in thresher_dual_gemm_problem */
  float limit;
  float up_offset;
  int32_t gate_up_bias; /* 1: the weights have biases; 0 by default */
  int32_t down_bias;
  float intermediate_scale;    /* as for a gated MLP */
  thresher_format quantized_x; /* THRESHER_FP8_BLOCK or THRESHER_FP8_ROW, to which x in 16 bits is quantized first; 0,
                                * the default: x is multiplied as it is */
  int32_t reserved;            /* 0 */
} thresher_moe_problem;

typedef struct thresher_moe thresher_moe;

THRESHER_API void thresher_moe_problem_init(thresher_moe_problem* problem, uint32_t struct_size);
/* `gate_up` has gate and up of every expert, `down` one matrix of each; the plan keeps what it needs of them. */
THRESHER_API thresher_status thresher_moe_plan(thresher_device device, const thresher_moe_problem* problem,
                                               const thresher_grouped_weights* gate_up,
                                               const thresher_grouped_weights* down,
                                               const thresher_dual_gemm_options* gate_up_options,
                                               const thresher_dual_gemm_options* down_options, thresher_moe** plan);
THRESHER_API void thresher_moe_destroy(thresher_moe* plan);
THRESHER_API size_t thresher_moe_workspace_bytes(const thresher_moe* plan);
/* x and out as for a gated MLP; topk_ids and topk_weights [rows of x, top_k], contiguous memory of the plan's device.
 * The host never reads their contents: they may change between replays of a captured graph. */
THRESHER_API thresher_status thresher_moe_run(const thresher_moe* plan, void* stream, const thresher_matrix* x,
                                              const int32_t* topk_ids, const float* topk_weights,
                                              const thresher_matrix* out, void* workspace);
THRESHER_API thresher_status thresher_moe_run_flat(const thresher_moe* plan, void* stream, int64_t rows, const void* x,
                                                   int64_t x_row_stride, const void* x_scales, int32_t x_scale_layout,
                                                   const float* x_global_scale, const int32_t* topk_ids,
                                                   const float* topk_weights, void* out, int64_t out_row_stride,
                                                   void* workspace);

/* ---- Attention, forward: O = softmax(Q*K^T*scale + mask)*V ---- */

/* The members are those of AttentionProblem in thresher/attention.hpp. */
typedef struct thresher_attention_problem {
  uint32_t struct_size;
  thresher_format format; /* fp16 or bf16 */
  int64_t batch;          /* sequences, 1 by default */
  int64_t heads;          /* query heads, a multiple of kv_heads; 1 by default */
  int64_t kv_heads;       /* 1 by default */
  int64_t queries;        /* per sequence, or with variable_length in total */
  int64_t keys;           /* as queries */
  int64_t head_dim;       /* of q and k: 64, 128, 192, 256 or 576 */
  int32_t causal;         /* 0, the default, or 1 */
  int32_t has_scale;      /* 0, the default: the scale is 1/sqrt(head_dim), and `scale` 0; 1: it is `scale` */
  float scale;
  float softcap;        /* 0, the default, for none */
  int64_t window_left;  /* keys to the left that are visible, -1, the default, for all */
  int64_t window_right; /* as window_left */
  int32_t variable_length;
  int32_t sinks;             /* 1: attention sinks, a logit per query head in the softmax denominator; 0 by default */
  int64_t value_dim;         /* of v and o: 64, 128, 192, 256 or 512; 0, the default: head_dim */
  int64_t page_size;         /* keys per page; 0, the default: not paged */
  int64_t pages;             /* of k and v */
  int32_t has_kv_format;     /* 0, the default: k and v are in `format`; 1: in kv_format */
  thresher_format kv_format; /* `format` or THRESHER_FP8_E4M3 */
  int32_t has_q_format;      /* 0, the default: q is in `format`; 1: in q_format */
  thresher_format q_format;  /* `format`, or THRESHER_FP8_E4M3 where kv_format is */
} thresher_attention_problem;

typedef struct thresher_attention_options {
  uint32_t struct_size;
  int32_t threads;           /* CPU: 0, the default, for all */
  const char* strategy;      /* null or "", the default: chosen for the problem */
  const char* knobs;         /* "name=value ..." for a named strategy; null or "": its defaults */
  int32_t dependent_launch;  /* 1: programmatic dependent launch (PDL): a call may start while the previous one in the
                              * stream is ending; 0 by default */
  int32_t reserved;          /* 0 */
  const char* deterministic; /* "batch": a sequence's bits do not depend on the other sequences; null or "": they may */
} thresher_attention_options;

/* A non-owning view of up to four dimensions. */
typedef struct thresher_tensor {
  uint32_t struct_size;
  thresher_format format;
  void* data;
  thresher_device device;
  int32_t rank;
  int32_t reserved; /* 0 */
  int64_t shape[4];
  int64_t strides[4]; /* in elements; all 0 for a contiguous tensor */
} thresher_tensor;

/* q and o [B,H,Sq,D], k and v [B,Hk,Sk,D]; with variable_length [T,H,D] and [Tk,Hk,D]; with pages k and v are
 * [pages,page_size,Hk,D]. lse: float32 [B,H,Sq] or [H,T], or null when it is not wanted. cu_seqlens: int32 [B+1] with
 * variable_length, otherwise null; cu_seqlens_k is null with pages. Rows of q behind the last sequence are not read;
 * those of o and lse are left unchanged. With pages: block_table int32 [B,ceil(keys/page_size)] and seqused_k int32
 * [B], otherwise null. sinks: float32 [H] with problem.sinks, otherwise null. Descales: float32 [B,Hk], null for 1,
 * with an extent of 1 where sequences or heads share one; only with FP8 keys, that of q only with FP8 queries. */
typedef struct thresher_attention_tensors {
  uint32_t struct_size;
  int32_t reserved; /* 0 */
  const thresher_tensor* q;
  const thresher_tensor* k;
  const thresher_tensor* v;
  const thresher_tensor* o;
  const thresher_tensor* lse;
  const thresher_tensor* cu_seqlens_q;
  const thresher_tensor* cu_seqlens_k;
  const thresher_tensor* block_table;
  const thresher_tensor* seqused_k;
  const thresher_tensor* sinks;
  const thresher_tensor* k_descale;
  const thresher_tensor* v_descale;
  const thresher_tensor* q_descale;
} thresher_attention_tensors;

typedef struct thresher_attention thresher_attention;

/* As those of the dual GEMM. */
THRESHER_API void thresher_tensor_init(thresher_tensor* tensor, uint32_t struct_size);
THRESHER_API void thresher_attention_problem_init(thresher_attention_problem* problem, uint32_t struct_size);
THRESHER_API void thresher_attention_options_init(thresher_attention_options* options, uint32_t struct_size);
THRESHER_API void thresher_attention_tensors_init(thresher_attention_tensors* tensors, uint32_t struct_size);

/* Each as its namesake of the dual GEMM. */
THRESHER_API thresher_status thresher_attention_strategies(thresher_device device, char* names, size_t capacity);
THRESHER_API thresher_status thresher_attention_plan(thresher_device device, const thresher_attention_problem* problem,
                                                     const thresher_attention_options* options,
                                                     thresher_attention** plan);
THRESHER_API void thresher_attention_destroy(thresher_attention* plan);
THRESHER_API size_t thresher_attention_workspace_bytes(const thresher_attention* plan);
THRESHER_API const char* thresher_attention_strategy(const thresher_attention* plan);
/* On a GPU the host never reads the contents of cu_seqlens, block_table, seqused_k and descales, but no access is
 * outside the tensors. */
THRESHER_API thresher_status thresher_attention_run(const thresher_attention* plan, void* stream,
                                                    const thresher_attention_tensors* tensors, void* workspace);
/* Flags of thresher_attention_run_status: the values that a run over pages on a GPU had to clamp. */
enum {
  THRESHER_LENGTHS_CLAMPED = 1,      /* seqused_k: below 0, or above problem.keys */
  THRESHER_PAGES_CLAMPED = 2,        /* block_table: a page outside the pool */
  THRESHER_QUERY_OFFSETS_CLAMPED = 4 /* cu_seqlens_q: decreasing, below 0, or above the rows of q */
};
/* The flags of the last run in `stream` with this workspace, for which it waits. */
THRESHER_API thresher_status thresher_attention_run_status(const thresher_attention* plan, void* stream,
                                                           const void* workspace, uint32_t* flags);

/* `scale` and `softcap` point to one number, or are null for 1/sqrt(head_dim) and none. */
THRESHER_API thresher_status thresher_attention_plan_flat(
    int32_t device_kind, int32_t device_ordinal, int32_t format, int64_t batch, int64_t heads, int64_t kv_heads,
    int64_t queries, int64_t keys, int64_t head_dim, int32_t causal, const float* scale, int64_t window_left,
    int64_t window_right, const float* softcap, int32_t variable_length, const char* strategy, const char* knobs,
    int32_t dependent_launch, int32_t threads, thresher_attention** plan);
/* Shapes and formats are the plan's. Strides, one per dimension, may be null for contiguous tensors. lse is contiguous,
 * or null when it is not wanted; cu_seqlens are contiguous, or null unless lengths vary. */
THRESHER_API thresher_status thresher_attention_run_flat(const thresher_attention* plan, void* stream, const void* q,
                                                         const int64_t* q_strides, const void* k,
                                                         const int64_t* k_strides, const void* v,
                                                         const int64_t* v_strides, void* o, const int64_t* o_strides,
                                                         float* lse, const int32_t* cu_seqlens_q,
                                                         const int32_t* cu_seqlens_k, void* workspace);

/* The same with the arguments of serving. q_format and kv_format are `format` where queries, and keys and values, are
 * not FP8; value_dim is 0 for head_dim, page_size 0 for no pages. */
THRESHER_API thresher_status thresher_attention_plan_serving_flat(
    int32_t device_kind, int32_t device_ordinal, int32_t format, int32_t q_format, int32_t kv_format, int64_t batch,
    int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys, int64_t head_dim, int64_t value_dim, int32_t causal,
    const float* scale, int64_t window_left, int64_t window_right, const float* softcap, int32_t variable_length,
    int64_t page_size, int64_t pages, int32_t sinks, const char* strategy, const char* knobs, int32_t dependent_launch,
    int32_t threads, thresher_attention** plan);
/* block_table: rows are block_table_stride elements apart, 0 for contiguous ones; descales: two strides, null for
 * contiguous [B,Hk]; sinks and seqused_k are contiguous. Pointers that the plan does not use are null. */
THRESHER_API thresher_status thresher_attention_run_serving_flat(
    const thresher_attention* plan, void* stream, const void* q, const int64_t* q_strides, const void* k,
    const int64_t* k_strides, const void* v, const int64_t* v_strides, void* o, const int64_t* o_strides, float* lse,
    const int32_t* cu_seqlens_q, const int32_t* cu_seqlens_k, const int32_t* block_table, int64_t block_table_stride,
    const int32_t* seqused_k, const float* sinks, const float* q_descale, const int64_t* q_descale_strides,
    const float* k_descale, const int64_t* k_descale_strides, const float* v_descale, const int64_t* v_descale_strides,
    void* workspace);

/* ---- Append: rotary position embedding, and new keys and values into pages ---- */

/* The members are those of AppendProblem in thresher/append.hpp. */
typedef int32_t thresher_rotary_pairs;
enum { THRESHER_ROTARY_NONE = 0, THRESHER_ROTARY_HALVES = 1, THRESHER_ROTARY_INTERLEAVED = 2 };

typedef struct thresher_append_problem {
  uint32_t struct_size;
  thresher_format format; /* fp16 or bf16; of q, k and v */
  int64_t tokens;         /* the maximum of a call */
  int64_t heads;          /* 1 by default, as kv_heads */
  int64_t kv_heads;
  int64_t head_dim;            /* of q and k */
  int64_t value_dim;           /* 0, the default: head_dim */
  int64_t rotary_dim;          /* 0, the default: head_dim */
  int64_t max_position;        /* rows of the table; 0, the default: no table */
  int64_t page_size;           /* 16 by default */
  int64_t pages;               /* 1 by default */
  thresher_rotary_pairs pairs; /* halves by default */
  float theta;                 /* 10000 by default */
  int32_t has_kv_format;       /* 0, the default: the pages are in `format`; 1: in kv_format */
  thresher_format kv_format;   /* `format` or THRESHER_FP8_E4M3 */
} thresher_append_problem;

/* q and q_out [T,H,D], or both null; k [T,Hk,D] and v [T,Hk,value_dim]; k_out as k, or null; positions and slots [T] in
 * number_bits bits, 32 or 64; cos_sin float32 [max_position,rotary_dim], all cosines, then all sines; k_cache
 * [pages,page_size,Hk,D] and v_cache; descales float32 [Hk] with FP8 pages, or null for 1. */
typedef struct thresher_append_tensors {
  uint32_t struct_size;
  int32_t number_bits; /* 64 by default */
  const thresher_tensor* q;
  const thresher_tensor* q_out;
  const thresher_tensor* k;
  const thresher_tensor* v;
  const thresher_tensor* k_out;
  const void* positions;
  const void* slots;
  const thresher_tensor* cos_sin;
  const thresher_tensor* k_cache;
  const thresher_tensor* v_cache;
  const thresher_tensor* k_descale;
  const thresher_tensor* v_descale;
} thresher_append_tensors;

typedef struct thresher_append thresher_append;

THRESHER_API void thresher_append_problem_init(thresher_append_problem* problem, uint32_t struct_size);
THRESHER_API void thresher_append_tensors_init(thresher_append_tensors* tensors, uint32_t struct_size);
/* Each as its namesake of attention; threads of the CPU, 0 for all. A GPU is one of compute capability 9.0. */
THRESHER_API thresher_status thresher_append_plan(thresher_device device, const thresher_append_problem* problem,
                                                  int32_t threads, thresher_append** plan);
THRESHER_API void thresher_append_destroy(thresher_append* plan);
THRESHER_API thresher_status thresher_append_run(const thresher_append* plan, void* stream,
                                                 const thresher_append_tensors* tensors);

/* ---- Quantize: tokens of 16 bits in FP8 ---- */

/* The members are those of QuantizeProblem in thresher/quantize.hpp. */
typedef struct thresher_quantize_problem {
  uint32_t struct_size;
  thresher_format x;   /* bf16 by default, or fp16 */
  thresher_format out; /* THRESHER_FP8_BLOCK by default, or THRESHER_FP8_ROW */
  int32_t reserved;    /* 0 */
  int64_t rows;        /* the maximum of a call */
  int64_t columns;
} thresher_quantize_problem;

typedef struct thresher_quantize thresher_quantize;

THRESHER_API void thresher_quantize_problem_init(thresher_quantize_problem* problem, uint32_t struct_size);
/* Each as its namesake of append. `out` is written with its scales, which are powers of two if it says so. */
THRESHER_API thresher_status thresher_quantize_plan(thresher_device device, const thresher_quantize_problem* problem,
                                                    int32_t threads, thresher_quantize** plan);
THRESHER_API void thresher_quantize_destroy(thresher_quantize* plan);
THRESHER_API thresher_status thresher_quantize_run(const thresher_quantize* plan, void* stream,
                                                   const thresher_matrix* x, const thresher_matrix* out);
/* Formats, columns and the device are the plan's; row strides are 0 for contiguous rows. */
THRESHER_API thresher_status thresher_quantize_run_flat(const thresher_quantize* plan, void* stream, int64_t rows,
                                                        const void* x, int64_t x_row_stride, void* out,
                                                        int64_t out_row_stride, float* scales, int32_t scale_layout,
                                                        int32_t scales_are_powers_of_two);

#ifdef __cplusplus
}
#endif
#endif
