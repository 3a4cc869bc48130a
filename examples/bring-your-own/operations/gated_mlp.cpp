// out = activation(x·gateᵀ, x·upᵀ)·downᵀ, token by token.
#include <vector>

#include "thresher/own_kernel.h"

static float product(const thresher_own_tensor* x, long long token, const thresher_own_tensor* weights, long long row) {
  float sum = 0;
  for (long long k = 0; k < weights->shape[1]; ++k) {
    sum += thresher_own_element(x, 0, token, k) * thresher_own_element(weights, 0, row, k);
  }
  return sum * thresher_own_scale_of(x, 0) * thresher_own_scale_of(weights, 0);
}

extern "C" void naive(const thresher_own_gated_mlp* call) {
  std::vector<float> between(static_cast<unsigned long>(call->intermediate_size));
  for (long long token = 0; token < call->tokens; ++token) {
    for (long long row = 0; row < call->intermediate_size; ++row) {
      const float gate = product(&call->x, token, &call->gate, row);
      const float up = product(&call->x, token, &call->up, row);
      const float value =
          thresher_own_activation(call->activation, call->alpha, call->limit, call->up_offset, gate, up);
      between[static_cast<unsigned long>(row)] = thresher_own_rounded(value, call->intermediate_format);
    }
    for (long long column = 0; column < call->hidden_size; ++column) {
      float sum = 0;
      for (long long row = 0; row < call->intermediate_size; ++row) {
        sum += between[static_cast<unsigned long>(row)] * thresher_own_element(&call->down, 0, column, row);
      }
      thresher_own_put(&call->out, thresher_own_place(&call->out, token, column, 0, 0),
                       sum * thresher_own_scale_of(&call->down, 0));
    }
  }
}
