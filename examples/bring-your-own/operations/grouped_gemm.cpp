// Each expert's rows times its own weights, in every layout of rows.
#include "thresher/own_kernel.h"

static void row_of_expert(const thresher_own_grouped_gemm* call, long long expert, long long row) {
  const bool has_slots = call->counts.values != nullptr;
  long long from = row;
  if (call->row_ids.values) {
    const long long id = thresher_own_integer(&call->row_ids, row);
    if (id < 0 || id >= call->tokens * call->row_ids_divisor) {
      return;  // no expert owns the row
    }
    from = id / call->row_ids_divisor;
  }
  const long long stack = has_slots ? expert : 0;
  const float scale = thresher_own_scale_of(&call->a, stack) * thresher_own_scale_of(&call->b, expert);
  for (long long column = 0; column < call->n; ++column) {
    float sum = 0;
    for (long long k = 0; k < call->k; ++k) {
      sum += thresher_own_element(&call->a, stack, from, k) * thresher_own_element(&call->b, expert, column, k);
    }
    sum *= scale;
    if (call->bias.values) {
      sum += thresher_own_value(&call->bias, thresher_own_place(&call->bias, expert, column, 0, 0));
    }
    if (call->row_weights.values) {
      sum *= thresher_own_value(&call->row_weights, has_slots ? expert * call->rows + row : row);
    }
    thresher_own_put(&call->c,
                     has_slots ? thresher_own_place(&call->c, expert, row, column, 0)
                               : thresher_own_place(&call->c, row, column, 0, 0),
                     sum);
  }
}

extern "C" void naive(const thresher_own_grouped_gemm* call) {
  for (long long expert = 0; expert < call->experts; ++expert) {
    const bool has_slots = call->counts.values != nullptr;
    const long long begin = has_slots ? 0 : thresher_own_integer(&call->offsets, expert);
    const long long end =
        has_slots ? thresher_own_integer(&call->counts, expert) : thresher_own_integer(&call->offsets, expert + 1);
    for (long long row = begin; row < end; ++row) {
      row_of_expert(call, expert, row);
    }
  }
}
