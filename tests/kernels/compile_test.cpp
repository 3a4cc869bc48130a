// Every program compiles for Hopper, on any machine that has NVRTC.
#include <gtest/gtest.h>

#include "kernels/device_program.hpp"
#include "kernels/two_pass/program.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::kernels {
namespace {

runtime::Cubin compile(const DeviceProgram& program) {
  const std::span<const EmbeddedFile> headers = device_sources();
  return runtime::compile({.title = program.title,
                           .text = program.text,
                           .headers = {headers.begin(), headers.end()},
                           .kernels = program.kernels,
                           .options = program.options});
}

void expect_clean(const DeviceProgram& program) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const runtime::Cubin cubin = compile(program);
  ASSERT_EQ(cubin.kernels.size(), program.kernels.size());
  for (const runtime::CompiledKernel& kernel : cubin.kernels) {
    EXPECT_EQ(kernel.resources.spill_store_bytes, 0) << kernel.expression;
    EXPECT_EQ(kernel.resources.stack_bytes, 0) << kernel.expression;
    EXPECT_GT(kernel.resources.registers, 0) << kernel.expression;
  }
  EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
}

TEST(TwoPassKernels, CompileForHopperWithoutSpills) { expect_clean(two_pass::program()); }
TEST(ReferenceKernel, CompilesForHopperWithoutSpills) { expect_clean(reference::program()); }

}  // namespace
}  // namespace thresher::kernels
