// Attention with two passes over the keys of each query: fixed lengths, different lengths, and keys in pages.
#include <vector>

#include "thresher/own_kernel.h"

namespace {

struct Sequence {
  long long batch;
  long long first_query;
  long long queries;
  long long first_key;
  long long keys;
};

Sequence sequence_of(const thresher_own_attention* call, long long batch) {
  Sequence sequence{batch, 0, call->queries, 0, call->keys};
  if (call->cu_seqlens_q.values) {
    sequence.first_query = thresher_own_integer(&call->cu_seqlens_q, batch);
    sequence.queries = thresher_own_integer(&call->cu_seqlens_q, batch + 1) - sequence.first_query;
  }
  if (call->seqused_k.values) {
    sequence.keys = thresher_own_integer(&call->seqused_k, batch);
  } else if (call->cu_seqlens_k.values) {
    sequence.first_key = thresher_own_integer(&call->cu_seqlens_k, batch);
    sequence.keys = thresher_own_integer(&call->cu_seqlens_k, batch + 1) - sequence.first_key;
  }
  return sequence;
}

/// The place of the first element of a key's or a value's row.
long long key_place(const thresher_own_attention* call, const thresher_own_tensor* tensor, const Sequence& sequence,
                    long long head, long long key) {
  if (call->block_table.values) {
    const long long block = thresher_own_place(&call->block_table, sequence.batch, key / call->page_size, 0, 0);
    return thresher_own_place(tensor, thresher_own_integer(&call->block_table, block), key % call->page_size, head, 0);
  }
  return tensor->rank == 3 ? thresher_own_place(tensor, sequence.first_key + key, head, 0, 0)
                           : thresher_own_place(tensor, sequence.batch, head, key, 0);
}

long long query_place(const thresher_own_tensor* tensor, const Sequence& sequence, long long head, long long query) {
  return tensor->rank == 3 ? thresher_own_place(tensor, sequence.first_query + query, head, 0, 0)
                           : thresher_own_place(tensor, sequence.batch, head, query, 0);
}

float descale(const thresher_own_tensor* tensor, long long batch, long long head) {
  return tensor->values ? thresher_own_value(tensor, thresher_own_place(tensor, batch, head, 0, 0)) : 1.0F;
}

float logit(const thresher_own_attention* call, long long q, long long k, float scale) {
  float sum = 0;
  for (long long d = 0; d < call->head_dim; ++d) {
    sum += thresher_own_value(&call->q, q + d) * thresher_own_value(&call->k, k + d);
  }
  sum *= scale;
  return call->softcap > 0 ? call->softcap * tanhf(sum / call->softcap) : sum;
}

void attend(const thresher_own_attention* call, const Sequence& sequence, long long head, long long query) {
  const long long kv_head = head / (call->heads / call->kv_heads);
  const long long diagonal = query + sequence.keys - sequence.queries;
  long long begin = 0;
  long long end = sequence.keys;
  if (call->window_left >= 0 && diagonal - call->window_left > begin) begin = diagonal - call->window_left;
  if (call->window_right >= 0 && diagonal + call->window_right + 1 < end) end = diagonal + call->window_right + 1;
  if (call->causal && diagonal + 1 < end) end = diagonal + 1;
  const float scale = call->scale * descale(&call->q_descale, sequence.batch, kv_head) *
                      descale(&call->k_descale, sequence.batch, kv_head);
  const long long q = query_place(&call->q, sequence, head, query);
  std::vector<float> logits;
  float largest = -INFINITY;
  for (long long key = begin; key < end; ++key) {
    logits.push_back(logit(call, q, key_place(call, &call->k, sequence, kv_head, key), scale));
    largest = logits.back() > largest ? logits.back() : largest;
  }
  const float sink = call->sinks.values ? thresher_own_value(&call->sinks, head) : -INFINITY;
  largest = sink > largest ? sink : largest;
  float sum = call->sinks.values ? expf(sink - largest) : 0.0F;
  std::vector<float> values(static_cast<unsigned long>(call->value_dim), 0.0F);
  for (long long key = begin; key < end; ++key) {
    const float weight = expf(logits[static_cast<unsigned long>(key - begin)] - largest);
    sum += weight;
    const long long v = key_place(call, &call->v, sequence, kv_head, key);
    for (long long d = 0; d < call->value_dim; ++d) {
      values[static_cast<unsigned long>(d)] += weight * thresher_own_value(&call->v, v + d);
    }
  }
  const float factor = logits.empty() ? 0.0F : descale(&call->v_descale, sequence.batch, kv_head) / sum;
  const long long o = query_place(&call->o, sequence, head, query);
  for (long long d = 0; d < call->value_dim; ++d) {
    thresher_own_put(&call->o, o + d, values[static_cast<unsigned long>(d)] * factor);
  }
  if (call->lse.values) {
    const long long place = call->lse.rank == 2
                                ? thresher_own_place(&call->lse, head, sequence.first_query + query, 0, 0)
                                : thresher_own_place(&call->lse, sequence.batch, head, query, 0);
    thresher_own_put(&call->lse, place, sum > 0 || sum != sum ? largest + logf(sum) : -INFINITY);
  }
}

}  // namespace

extern "C" void naive(const thresher_own_attention* call) {
  for (long long batch = 0; batch < call->batch; ++batch) {
    const Sequence sequence = sequence_of(call, batch);
    for (long long head = 0; head < call->heads; ++head) {
      for (long long query = 0; query < sequence.queries; ++query) {
        attend(call, sequence, head, query);
      }
    }
  }
}
