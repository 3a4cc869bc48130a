#pragma once
/// A planned dual GEMM on the operands of a test, in the emulator.
#include <utility>
#include <vector>

#include "strategies/gemm/tensors.hpp"
#include "strategies/host/compiled_in.hpp"
#include "strategies/host/emulated_call.hpp"
#include "support/dual_gemm_case.hpp"
#include "thresher/error.hpp"

namespace thresher::test {

inline strategies::HostKernel compiled_in_kernel(const strategies::KernelLaunch& launch) {
  if (const strategies::HostKernel kernel = strategies::find_compiled_in(launch.expression)) {
    return kernel;
  }
  throw Error(ErrorCode::unsupported, "not compiled in: " + launch.expression);
}

/// `call` is of small and default configurations, whose kernels the build compiled.
inline strategies::EmulatedCall emulated_call(strategies::PlannedCall call, DualGemmCase& host,
                                              const Tensor& profile = {}) {
  std::vector<strategies::NamedTensor> tensors{
      {"a", host.a.view()}, {"b1 (gate)", host.b1_gate.view()}, {"b2 (up)", host.b2_up.view()}, {"c", host.c.view()}};
  tensors.resize(strategies::gemm::profile_index);
  tensors.push_back({"profile", profile});
  return {std::move(call), std::move(tensors), compiled_in_kernel};
}

inline emulator::Report emulate(strategies::PlannedCall call, DualGemmCase& host, std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  return emulated_call(std::move(call), host).run(options);
}

}  // namespace thresher::test
