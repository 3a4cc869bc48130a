#include "strategies/host/compiled_in.hpp"

#include <map>

#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies {
namespace {

std::map<std::string, HostKernel> own() {
  std::map<std::string, HostKernel> kernels;
  for (const auto& some :
       {append::compiled_in(), attention::compiled_in(), gemm::fused::compiled_in(), gemm::wgmma_dequant::compiled_in(),
        gemm::tcgen05::compiled_in(), gemm::wgmma::compiled_in(), moe_layer::compiled_in()}) {
    for (const CompiledIn& one : some) {
      kernels.emplace(one.expression, one.kernel);
    }
  }
  return kernels;
}

std::map<std::string, HostKernel>& all() {
  static std::map<std::string, HostKernel> kernels = own();
  return kernels;
}

}  // namespace

HostKernel find_compiled_in(const std::string& expression) {
  const auto found = all().find(expression);
  return found == all().end() ? nullptr : found->second;
}

void add_compiled_in(const CompiledIn& kernel) { all().emplace(kernel.expression, kernel.kernel); }

}  // namespace thresher::strategies
