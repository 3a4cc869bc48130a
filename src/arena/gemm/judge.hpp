#pragma once
/// Judges outputs of products against the float64 definition, each expert's rows as the output of a product of their
/// own, and names the commonest mistakes; and looks at outputs of many calls.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/gemm/task.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// Outputs whose definition costs more multiplications than this are judged on a random part of every tile.
inline constexpr double whole_output_products = 0.8e9;

/// The judge keeps what it needs of `inputs`. Numerics `fast` of NVFP4 weights are judged against the definition on the
/// quantized operands (reference/fold.hpp) with the general rule. The dual GEMM is judged bit for bit where neither
/// that nor sums of 14 bits lose anything. The distance from the exact operands is evidence.
[[nodiscard]] std::unique_ptr<Judge> make_product_judge(const ProductTask& task, Distribution distribution,
                                                        const std::vector<HostTensor>& inputs, const Maker& maker,
                                                        std::uint64_t seed);
/// Goes by the judge's rule. `inputs` are some of the distribution: what a plain computation errs on a part of them,
/// and as much again, is what it may err anywhere. Whole outputs of numerics `fast` are compared tile by tile, since
/// what is trusted need not quantize its operands.
[[nodiscard]] std::unique_ptr<Inspector> make_product_inspector(const ProductTask& task, Distribution distribution,
                                                                const std::vector<HostTensor>& inputs,
                                                                const Maker& maker, std::uint64_t seed);

}  // namespace thresher::arena
