// Attention, one thread for each element of the output: sequences of one length, and packed queries with keys in pages.
#include "thresher/own_kernel.h"

/* The place of the first element of a key's or a value's row. */
__device__ static long long key_place(const thresher_own_attention* call, const thresher_own_tensor* tensor,
                                      long long batch, long long head, long long key) {
  if (!call->block_table.values) {
    return thresher_own_place(tensor, batch, head, key, 0);
  }
  const long long block = thresher_own_place(&call->block_table, batch, key / call->page_size, 0, 0);
  return thresher_own_place(tensor, thresher_own_integer(&call->block_table, block), key % call->page_size, head, 0);
}

__device__ static float logit(const thresher_own_attention* call, long long q, long long k) {
  float sum = 0;
  for (long long d = 0; d < call->head_dim; ++d) {
    sum += thresher_own_value(&call->q, q + d) * thresher_own_value(&call->k, k + d);
  }
  return sum * call->scale;
}

/* One element: the largest logit first, then weights, their sum and the sum of weighted values. */
__device__ static float element(const thresher_own_attention* call, long long batch, long long head, long long q,
                                long long keys, long long column) {
  const long long kv_head = head / (call->heads / call->kv_heads);
  float largest = thresher_own_from_bits(0xFF800000U); /* -Inf */
  for (long long key = 0; key < keys; ++key) {
    largest = fmaxf(largest, logit(call, q, key_place(call, &call->k, batch, kv_head, key)));
  }
  float sum = 0;
  float value = 0;
  for (long long key = 0; key < keys; ++key) {
    const float weight = expf(logit(call, q, key_place(call, &call->k, batch, kv_head, key)) - largest);
    sum += weight;
    value += weight * thresher_own_value(&call->v, key_place(call, &call->v, batch, kv_head, key) + column);
  }
  return keys > 0 ? value / sum : 0.0F;
}

extern "C" __global__ void naive(thresher_own_attention call) {
  const bool is_packed = call.cu_seqlens_q.values != nullptr;
  const long long all = (is_packed ? 1 : call.batch) * call.heads * call.queries * call.value_dim;
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
    const long long column = i % call.value_dim;
    long long query = i / call.value_dim % call.queries;
    const long long head = i / call.value_dim / call.queries % call.heads;
    long long batch = i / call.value_dim / call.queries / call.heads;
    const long long q =
        is_packed ? thresher_own_place(&call.q, query, head, 0, 0) : thresher_own_place(&call.q, batch, head, query, 0);
    const long long o =
        is_packed ? thresher_own_place(&call.o, query, head, 0, 0) : thresher_own_place(&call.o, batch, head, query, 0);
    long long queries = call.queries;
    while (is_packed && query >= thresher_own_integer(&call.cu_seqlens_q, batch + 1)) {
      ++batch;
    }
    if (is_packed) {
      const long long first = thresher_own_integer(&call.cu_seqlens_q, batch);
      queries = thresher_own_integer(&call.cu_seqlens_q, batch + 1) - first;
      query -= first;
    }
    const long long keys = call.seqused_k.values ? thresher_own_integer(&call.seqused_k, batch) : call.keys;
    const long long seen = call.causal ? query + keys - queries + 1 : keys;
    thresher_own_put(&call.o, o + column, element(&call, batch, head, q, seen < keys ? seen : keys, column));
  }
}
