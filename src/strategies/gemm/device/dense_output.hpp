#pragma once
/// The end of a dense dual GEMM whose sums lie in tensor memory: the activation, one rounding, and rows of C.
#include "machine/numbers.hpp"
#include "pipeline/output.hpp"
#include "pipeline/transposed_output.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/number_type.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

/// One output for two neighbouring tokens.
template <Number output, ActivationCode activation, class Params, class Products>
TH_DEVICE auto dense_outputs(const Params& params, const Products& products, int group, int eight) {
  float result[2];
  TH_UNROLL
  for (int e = 0; e < 2; ++e) {
    const float gate = products.gate(group, eight, e);
    const float up = products.up(group, eight, e);
    result[e] = activate<activation>(gate, up, params);
  }
  return output_pair<output>(result);
}

/// Writes the outputs of `tokens` tokens. `products.gate(group, eight, e)` and `up` alike are finished products of
/// token 2(lane%4) + e of the group of 8. `params` has c, c_row_stride, m, n, c_wide and the activation's numbers.
template <Number output, ActivationCode activation, int tokens, int eights, class Params, class Products>
TH_DEVICE void write_dense(const Params& params, pipeline::OutputOrigin origin, Shared<u8> staging,
                           const Products& products) {
  using Result = typename NumberType<output>::type;
  constexpr u32 output_barrier = 1;
  const auto value = [&](int group, int eight) {
    return dense_outputs<output, activation>(params, products, group, eight);
  };
  const pipeline::OutputMatrix<Result> matrix{params.c.template as<Result>(), params.c_row_stride, params.m, params.n,
                                              params.c_wide};
  if constexpr (output == Number::fp32) {
    pipeline::TransposedFloatOutput<tokens, eights>::write(matrix, origin, value);
  } else {
    pipeline::TransposedOutput<Result, tokens, eights>::write(matrix, origin, staging, output_barrier, value);
  }
}

}  // namespace thresher::strategies::gemm
