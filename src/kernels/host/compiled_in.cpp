#include "kernels/host/compiled_in.hpp"

#include <map>

#include "kernels/attention/host/emulated.hpp"
#include "kernels/dual_gemm/host/emulated.hpp"
#include "kernels/nvfp4/host/emulated.hpp"

namespace thresher::kernels {
namespace {

std::map<std::string, HostKernel> all() {
  std::map<std::string, HostKernel> kernels;
  for (const auto& some : {attention::compiled_in(), dual_gemm::compiled_in(), nvfp4::compiled_in()}) {
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

}  // namespace thresher::kernels
