#include "strategies/dual_gemm/two_pass/program.hpp"

#include "thresher/error.hpp"

namespace thresher::strategies::dual_gemm::two_pass {
namespace {

std::string element(Format format) {
  switch (format) {
    case Format::fp16: return "thresher::machine::Half";
    case Format::bf16: return "thresher::machine::BFloat16";
    case Format::fp32: return "float";
    default: break;
  }
  throw Error(ErrorCode::internal, "two_pass has no kernel for " + std::string(name(format)));
}

}  // namespace

std::string widen_nvfp4_kernel(Format to) {
  return "thresher::strategies::dual_gemm::two_pass::widen_nvfp4<" + element(to) + ">";
}

std::string widen_to_float_kernel(Format from) {
  return "thresher::strategies::dual_gemm::two_pass::widen_to_float<" + element(from) + ">";
}

std::string copy_rows_kernel() { return "thresher::strategies::dual_gemm::two_pass::copy_rows<unsigned short>"; }

std::string activate_kernel(ActivationKind kind, Format out) {
  return "thresher::strategies::dual_gemm::two_pass::activate<thresher::strategies::dual_gemm::ActivationCode::" +
         std::string(name(kind)) + ", " + element(out) + ">";
}

DeviceProgram program() {
  DeviceProgram program{.title = "two_pass",
                        .text = "#include \"strategies/dual_gemm/two_pass/device/kernels.hpp\"\n",
                        .kernels = {},
                        .options = {}};
  program.kernels = {copy_rows_kernel()};
  for (const Format format : {Format::fp16, Format::bf16}) {
    program.kernels.push_back(widen_nvfp4_kernel(format));
    program.kernels.push_back(widen_to_float_kernel(format));
  }
  for (const ActivationKind kind : {ActivationKind::silu, ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      program.kernels.push_back(activate_kernel(kind, out));
    }
  }
  return program;
}

}  // namespace thresher::strategies::dual_gemm::two_pass
