#ifndef THRESHER_TORCH_OPERATORS_H
#define THRESHER_TORCH_OPERATORS_H
/* What thresher.torch tells libthresher_torch.so (python/thresher/torch/_native.py has the same structs).
 *
 * An operator looks a call up by all that its checks look at. What is not found is done by the operator of the same
 * name in the namespace thresher_python, which checks, plans and runs in Python, and says by thresher_torch_keep how
 * such a call is made; from then on no Python is run for it. */
#include <stdint.h>

#include "thresher/thresher.h"

#ifdef __cplusplus
extern "C" {
#endif
#define THRESHER_TORCH_API __attribute__((visibility("default")))

/* Where an operator's arguments are, -1 for what it has not. */
typedef struct thresher_torch_places {
  int32_t out;
  int32_t a; /* or x; of attention q, of append k */
  int32_t a_scales;
  int32_t a_global_scale;
  int32_t offsets;
  int32_t counts;
  int32_t row_ids;
  int32_t row_weights;
  int32_t topk_ids;
  int32_t topk_weights;
  int32_t k;
  int32_t v;
  int32_t cu_seqlens_q;
  int32_t cu_seqlens_k;
  int32_t q;
  int32_t lse;
  int32_t block_table;
  int32_t seqused_k;
  int32_t sinks;
  int32_t q_descale;
  int32_t k_descale;
  int32_t v_descale;
  int32_t q_out;
  int32_t k_out;
  int32_t k_cache;
  int32_t v_cache;
  int32_t positions;
  int32_t slots;
  int32_t cos_sin;
} thresher_torch_places;

/* Which function of the C interface a call is made by. */
enum {
  THRESHER_TORCH_ROWS = 0, /* thresher_dual_gemm_run_flat and those like it */
  THRESHER_TORCH_GROUPED = 1,
  THRESHER_TORCH_MOE = 2,
  THRESHER_TORCH_ATTENTION = 3, /* thresher_attention_run_serving_flat */
  THRESHER_TORCH_APPEND = 4,
  THRESHER_TORCH_QUANTIZE = 5 /* thresher_quantize_run_flat, whose second output is the scales */
};

typedef struct thresher_torch_call {
  int32_t convention;
  int32_t a_scale_layout;      /* of a quantization that of the scales that it writes */
  int32_t a_scales_are_global; /* 1: FP8 with one scale */
  int32_t zeros;               /* 1: a new output is zeroed */
  int32_t scales_are_powers_of_two;
  void* run;
  void* plan;
  int64_t workspace_bytes;
  int64_t rows;
  int64_t tokens;
  int64_t a_stride;
  int64_t out_stride;
  int64_t strides[4][4]; /* of q, k, v and out */
  int32_t has_strides[4];
  int64_t table_stride;
  int64_t descale_strides[3][2];         /* of q_descale, k_descale and v_descale */
  const thresher_append_tensors* append; /* of an append, whose data and numbers come with each call; copied */
  int64_t owner;                         /* given back by thresher_torch_released when the call is dropped */
} thresher_torch_call;

/* 1 if this library has the operator, whose arguments are described by one character each: t a tensor, w one whose
 * address a plan depends on, o one that is written, p packed weights, i an int, f a float, b a bool, s a string, d a
 * type; capitals where None may be given. Before its first call. */
THRESHER_TORCH_API int32_t thresher_torch_describe(const char* name, const char* arguments,
                                                   const thresher_torch_places* places);
/* 1 if PyTorch took the operators of this library. */
THRESHER_TORCH_API int32_t thresher_torch_is_ready(void);
/* The dispatch keys of autograd, by the numbers that this torch gives them. Unless they are known Python looks at every
 * call outside of inference mode. */
THRESHER_TORCH_API void thresher_torch_autograd_keys(uint64_t keys);
/* thresher_places_are_known of the library whose functions calls are made by. Before its first call. */
THRESHER_TORCH_API void thresher_torch_say_by(int32_t (*known)(int32_t));
/* Forgets all calls, and says how many are kept from now on; beyond them all are forgotten again. 0 at first. */
THRESHER_TORCH_API void thresher_torch_keep_at_most(int64_t calls);
/* From the operator in Python: how the call that this thread is making is made again. */
THRESHER_TORCH_API void thresher_torch_keep(const thresher_torch_call* call);
/* From the operator in Python: that it failed, with a sentence that the operator then throws. */
THRESHER_TORCH_API void thresher_torch_fail(const char* sentence);
/* Packed weights on a GPU, whose header was read. has_version: PyTorch counts what is written to them. */
THRESHER_TORCH_API void thresher_torch_know_block(const void* block, int32_t has_version);
/* That tensor is gone: calls with a block at this address are not made again. */
THRESHER_TORCH_API void thresher_torch_forget_block(const void* block);
/* Up to `capacity` owners of calls that were dropped; returns their number. */
THRESHER_TORCH_API int32_t thresher_torch_released(int64_t* owners, int32_t capacity);

#ifdef __cplusplus
}
#endif
#endif
