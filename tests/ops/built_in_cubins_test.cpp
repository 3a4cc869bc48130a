#include "ops/built_in_cubins.hpp"

#include <gtest/gtest.h>

#include "ops/cuda_programs.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::ops {
namespace {

TEST(BuiltInCubins, HoldEveryDefaultProgramWhole) {
  if (built_in_cubins().empty() && !runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << "built without NVRTC: " << runtime::nvrtc_status().problem;
  }
  ASSERT_FALSE(default_programs("sm_90a").empty());
  for (const strategies::DeviceProgram& program : default_programs("sm_90a")) {
    const std::optional<runtime::Cubin> cubin = find_built_in(compiler_input(program, "sm_90a"));
    ASSERT_TRUE(cubin.has_value()) << program.title;
    EXPECT_FALSE(cubin->image.empty());
    ASSERT_EQ(cubin->kernels.size(), program.kernels.size());
    for (std::size_t i = 0; i < program.kernels.size(); ++i) {
      EXPECT_EQ(cubin->kernels[i].expression, program.kernels[i]);
      EXPECT_FALSE(cubin->kernels[i].lowered_name.empty());
    }
  }
}

/// Machine code of a matrix kernel that spills, or whose matrix instructions the compiler serialised, is useless.
TEST(BuiltInCubins, HoldNothingThatSpills) {
  for (const BuiltInCubin& built_in : built_in_cubins()) {
    const std::optional<runtime::Cubin> cubin = runtime::deserialise(std::string(built_in.key), built_in.entry);
    ASSERT_TRUE(cubin.has_value()) << built_in.key;
    for (const runtime::CompiledKernel& kernel : cubin->kernels) {
      EXPECT_EQ(kernel.resources.spill_store_bytes, 0) << kernel.expression;
      EXPECT_EQ(kernel.resources.stack_bytes, 0) << kernel.expression;
      EXPECT_GT(kernel.resources.registers, 0) << kernel.expression;
    }
    EXPECT_EQ(cubin->log.find("warning"), std::string::npos) << cubin->log;
    EXPECT_EQ(cubin->log.find("Potential Performance Loss"), std::string::npos) << cubin->log;
  }
}

TEST(BuiltInCubins, AreNotTakenForAnotherProgram) {
  strategies::DeviceProgram program = default_programs("sm_90a").front();
  program.text += "// changed\n";
  EXPECT_FALSE(find_built_in(compiler_input(program, "sm_90a")).has_value());
  EXPECT_FALSE(find_built_in(compiler_input(default_programs("sm_90a").front(), "sm_80")).has_value());
}

}  // namespace
}  // namespace thresher::ops
