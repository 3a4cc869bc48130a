/* The C interface of Thresher: the dual GEMM C = activation(A*B1^T) o (A*B2^T), planned once and run many times.
 *
 * Every function that can fail returns a status; thresher_last_error() then holds one sentence for this thread that
 * names the argument, its value and the limit. Nothing is written to any output on failure. Structs are to be
 * zero-initialised: zero is the default of every member that has one. Handles may be used from several threads, but are
 * destroyed by one. */
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
  THRESHER_NVFP4 = 4, /* e2m1, two a byte, low nibble first; one e4m3 scale for each 16 along K */
  THRESHER_INT32 = 5,
  THRESHER_UINT8 = 6
};

typedef int32_t thresher_device_kind;
enum { THRESHER_CPU = 0, THRESHER_CUDA = 1 };

typedef struct thresher_device {
  thresher_device_kind kind;
  int32_t ordinal;
} thresher_device;

typedef int32_t thresher_scale_layout;
enum {
  THRESHER_SCALES_ROW_MAJOR = 0, /* [rows, K/16] */
  THRESHER_SCALES_BLOCKED = 1    /* Blackwell's and cuBLAS's: see ScaleLayout in thresher/tensor.hpp */
};

/* A view of a matrix [shape[0], shape[1]], row-major; nothing is owned. row_stride counts elements from one row to the
 * next, 0 for shape[1]. For NVFP4 elements are e2m1 values, scales is set, and global_scale points to one float32 on
 * the tensor's device or is null for 1. */
typedef struct thresher_matrix {
  void* data;
  thresher_format format;
  int64_t shape[2];
  int64_t row_stride;
  thresher_device device;
  const uint8_t* scales;
  thresher_scale_layout scale_layout;
  const float* global_scale;
} thresher_matrix;

typedef int32_t thresher_activation;
enum {
  THRESHER_SILU = 0,
  THRESHER_GELU_TANH = 1,
  THRESHER_SWIGLU_CLAMPED = 2 /* with alpha 1.702, limit 7 and up_offset 1 where they are 0 in the problem */
};

typedef int32_t thresher_numerics;
enum { THRESHER_EXACT = 0, THRESHER_FAST = 1 };

/* C[m,n] from A[m,k], B1[n,k] (the gate) and B2[n,k] (up). a and b: fp16, bf16 or nvfp4; out: fp16, bf16 or fp32. */
typedef struct thresher_dual_gemm_problem {
  int64_t m;
  int64_t n;
  int64_t k;
  thresher_format a;
  thresher_format b;
  thresher_format out;
  thresher_activation activation;
  float alpha; /* swiglu_clamped only, 0 for the default; so are the next two */
  float limit;
  float up_offset;
} thresher_dual_gemm_problem;

typedef struct thresher_weights thresher_weights;
typedef struct thresher_dual_gemm thresher_dual_gemm;

/* "0.1.0" */
THRESHER_API const char* thresher_version(void);
/* The sentence of the last failure on this thread; "" before the first. Valid until the next failure on this thread. */
THRESHER_API const char* thresher_last_error(void);

/* The first usable GPU if there is one, else this CPU. */
THRESHER_API thresher_status thresher_best_device(thresher_device* device);
/* The model name, cut off to fit and always terminated. Fails with what is missing when the device cannot be used. */
THRESHER_API thresher_status thresher_device_name(thresher_device device, char* name, size_t capacity);
/* The strategies the device offers for the dual GEMM, the default first, separated by commas. */
THRESHER_API thresher_status thresher_dual_gemm_strategies(thresher_device device, char* names, size_t capacity);

/* Arranges the weights once for a device. On a GPU they are copied; on the CPU they must outlive the handle. */
THRESHER_API thresher_status thresher_pack(thresher_device device, const thresher_matrix* b1_gate,
                                           const thresher_matrix* b2_up, thresher_numerics numerics,
                                           thresher_weights** weights);
/* Weights in a file that appears whole or not at all; what was loaded owns its memory. A file that is damaged, of another
 * version or packed for another kind of device is refused. */
THRESHER_API thresher_status thresher_save_packed(const thresher_weights* weights, const char* path);
THRESHER_API thresher_status thresher_load_packed(thresher_device device, const char* path, thresher_weights** weights);
THRESHER_API void thresher_weights_destroy(thresher_weights* weights);

/* Chooses a strategy (strategy null or "") or takes the named one; may compile and allocate. The plan keeps what it
 * needs of the weights. */
THRESHER_API thresher_status thresher_plan(thresher_device device, const thresher_dual_gemm_problem* problem,
                                           const thresher_weights* weights, const char* strategy,
                                           thresher_dual_gemm** plan);
/* The same from weights that are not packed and must outlive the plan. */
THRESHER_API thresher_status thresher_plan_raw(thresher_device device, const thresher_dual_gemm_problem* problem,
                                               const thresher_matrix* b1_gate, const thresher_matrix* b2_up,
                                               const char* strategy, thresher_dual_gemm** plan);
THRESHER_API void thresher_dual_gemm_destroy(thresher_dual_gemm* plan);

/* What `workspace` must hold; 0 when null will do. */
THRESHER_API size_t thresher_workspace_bytes(const thresher_dual_gemm* plan);
/* The strategy that was chosen. Valid as long as the plan. */
THRESHER_API const char* thresher_strategy(const thresher_dual_gemm* plan);

/* Enqueues one call on `stream`, a CUstream or cudaStream_t (ignored on the CPU, where the call is complete on return).
 * No allocation, no synchronisation; can be captured in a CUDA graph. The workspace, 256-byte aligned and on the plan's
 * device, is not shared by concurrent runs. */
THRESHER_API thresher_status thresher_run(const thresher_dual_gemm* plan, void* stream, const thresher_matrix* a,
                                          const thresher_matrix* c, void* workspace);
/* The same in two parts: what the strategy makes of `a` beforehand (NVFP4 tokens widened; folded with numerics fast) is
 * put into the workspace; then, once or more often, the rest with the same `a`, whose memory must still be there. */
THRESHER_API thresher_status thresher_prepare(const thresher_dual_gemm* plan, void* stream, const thresher_matrix* a,
                                              void* workspace);
THRESHER_API thresher_status thresher_run_prepared(const thresher_dual_gemm* plan, void* stream,
                                                   const thresher_matrix* a, const thresher_matrix* c,
                                                   void* workspace);

#ifdef __cplusplus
}
#endif
#endif
