#ifndef THRESHER_JAX_HANDLERS_H
#define THRESHER_JAX_HANDLERS_H
/* What thresher.jax and libthresher_jax.so tell each other (python/thresher/_jax_native.py has the same struct). The
 * library's handlers of XLA's foreign functions are thresher_jax_cpu and thresher_jax_cuda. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define THRESHER_JAX_API __attribute__((visibility("default")))

/* An array of a call, contiguous and row-major. */
typedef struct thresher_jax_buffer {
  void* data;
  const int64_t* extents;
  const void* header; /* of packed weights, in memory of the host; else null */
  int64_t header_bytes;
  int32_t type; /* XLA_FFI_DataType */
  int32_t rank;
} thresher_jax_buffer;

typedef struct thresher_jax_call {
  const char* text; /* the attribute `call`, which is Python's */
  int64_t text_bytes;
  const thresher_jax_buffer* operands;
  const thresher_jax_buffer* results;
  int32_t operand_count;
  int32_t result_count;
  int32_t device; /* -1: the CPU */
  int32_t reserved;
  void* stream;
} thresher_jax_call;

/* Makes the call; gives back null, or a sentence that is valid until this thread's next call. */
typedef const char* (*thresher_jax_run)(const thresher_jax_call* call);

THRESHER_JAX_API void thresher_jax_set_run(thresher_jax_run run);
/* Memory of the GPU for the call that this thread is making, until it ends; null where there is none. */
THRESHER_JAX_API void* thresher_jax_scratch(int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
