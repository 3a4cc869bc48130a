#pragma once
/// The fallback of the dual GEMM: operands are converted to one format, the vendor's library makes two products in
/// float32, and a kernel applies the activation. It is also the baseline of tournaments.
#include "strategies/device_program.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

const Strategy<ProductProblem>& two_pass_strategy();

namespace two_pass {
/// All its kernels, for every format and activation.
DeviceProgram program();
}  // namespace two_pass

}  // namespace thresher::strategies::gemm
