#include "strategies/host/compiled_in.hpp"

#include <map>

#include "strategies/attention/host/emulated.hpp"
#include "strategies/dual_gemm/fused/host/emulated.hpp"
#include "strategies/dual_gemm/packed/host/emulated.hpp"

namespace thresher::strategies {
namespace {

std::map<std::string, HostKernel> all() {
  std::map<std::string, HostKernel> kernels;
  for (const auto& some :
       {attention::compiled_in(), dual_gemm::fused::compiled_in(), dual_gemm::packed::compiled_in()}) {
    for (const CompiledIn& one : some) {
      kernels.emplace(one.expression, one.kernel);
    }
  }
  return kernels;
}

}  // namespace

HostKernel find_compiled_in(const std::string& expression) {
  static const std::map<std::string, HostKernel> kernels = all();
  const auto found = kernels.find(expression);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace thresher::strategies
