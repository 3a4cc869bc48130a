// A layer of experts, token by token: each choice's row is rounded, weighted and added.
#include <vector>

#include "thresher/own_kernel.h"

namespace {

using Row = std::vector<float>;

float bias_of(const thresher_own_tensor* bias, long long expert, long long column) {
  return bias->values ? thresher_own_value(bias, thresher_own_place(bias, expert, column, 0, 0)) : 0.0F;
}

float product(const thresher_own_moe_layer* call, long long token, const thresher_own_tensor* weights, long long expert,
              long long row) {
  float sum = 0;
  for (long long k = 0; k < call->hidden_size; ++k) {
    sum += thresher_own_element(&call->x, 0, token, k) * thresher_own_element(weights, expert, row, k);
  }
  return sum * thresher_own_scale_of(&call->x, 0) * thresher_own_scale_of(weights, expert);
}

Row between_products(const thresher_own_moe_layer* call, long long token, long long expert) {
  Row values;
  for (long long row = 0; row < call->intermediate_size; ++row) {
    const float gate = product(call, token, &call->gate, expert, row) + bias_of(&call->gate_bias, expert, row);
    const float up = product(call, token, &call->up, expert, row) + bias_of(&call->up_bias, expert, row);
    const float value = thresher_own_activation(call->activation, call->alpha, call->limit, call->up_offset, gate, up);
    values.push_back(thresher_own_rounded(value, call->intermediate_format));
  }
  return values;
}

void add_choice(const thresher_own_moe_layer* call, long long token, long long expert, float weight, Row& sums) {
  const Row between = between_products(call, token, expert);
  for (long long column = 0; column < call->hidden_size; ++column) {
    float sum = 0;
    for (long long row = 0; row < call->intermediate_size; ++row) {
      sum += between[static_cast<unsigned long>(row)] * thresher_own_element(&call->down, expert, column, row);
    }
    sum = sum * thresher_own_scale_of(&call->down, expert) + bias_of(&call->down_bias, expert, column);
    sums[static_cast<unsigned long>(column)] += weight * thresher_own_rounded(sum, call->rows_format);
  }
}

}  // namespace

extern "C" void naive(const thresher_own_moe_layer* call) {
  for (long long token = 0; token < call->tokens; ++token) {
    Row sums(static_cast<unsigned long>(call->hidden_size), 0.0F);
    for (long long choice = 0; choice < call->top_k; ++choice) {
      const long long place = token * call->top_k + choice;
      const int expert = thresher_own_integer(&call->topk_ids, place);
      if (expert >= 0 && expert < call->experts) {
        add_choice(call, token, expert, thresher_own_value(&call->topk_weights, place), sums);
      }
    }
    for (long long column = 0; column < call->hidden_size; ++column) {
      thresher_own_put(&call->out, thresher_own_place(&call->out, token, column, 0, 0),
                       sums[static_cast<unsigned long>(column)]);
    }
  }
}
