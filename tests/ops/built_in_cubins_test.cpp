#include "ops/built_in_cubins.hpp"

#include <gtest/gtest.h>

#include "ops/attention_call.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/product_choice.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/error.hpp"

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

/// Where nothing can be compiled, the best call whose programs are built in is launched.
TEST(BuiltInCubins, ServeProblemsInTheirDefaultFormatWithoutACompiler) {
  if (built_in_cubins().empty()) {
    GTEST_SKIP() << "built without NVRTC";
  }
  const CallObstacle obstacle = [](const strategies::PlannedCall& call) {
    return missing_program(call, "sm_90a", "there is no compiler");
  };
  const DeviceSpec& device = *find_device_spec("H200");
  const auto bf16 = Format::bf16;
  for (const std::int64_t rows : {1, 64, 300, 4096}) {
    for (const ProductProblem& problem : {ProductProblem(DualGemmProblem{rows, 4096, 7168, bf16, bf16, bf16, {}}),
                                          ProductProblem(GemmProblem{rows, 4096, 7168, bf16, bf16, bf16})}) {
      const strategies::PlannedCall call = choose_product(problem, {}, DeviceKind::cuda, device, obstacle);
      EXPECT_EQ(obstacle(call), "") << call.strategy << " " << call.knobs.text();
    }
  }
  AttentionProblem attention;
  attention.batch = 2;
  attention.heads = 32;
  attention.kv_heads = 8;
  attention.queries = 1;
  attention.keys = 4096;
  attention.head_dim = 128;
  EXPECT_EQ(obstacle(attention_call(attention, {}, device, DeviceKind::cuda, obstacle)), "");
}

TEST(BuiltInCubins, AProgramThatIsNowhereRefusesItsStrategy) {
  const ProductProblem problem(DualGemmProblem{64, 4096, 7168, Format::bf16, Format::bf16, Format::bf16, {}});
  const CallObstacle nowhere = [](strategies::PlannedCall call) {
    std::get<strategies::KernelLaunch>(call.steps.front()).program.text += "// in no library and no cache";
    return missing_program(call, "sm_90a", "there is no compiler");
  };
  try {
    (void)choose_product(problem, {.strategy = "interleaved"}, DeviceKind::cuda, *find_device_spec("H200"), nowhere);
    FAIL() << "a program was found that nothing holds";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("is not built in and cannot be compiled: there is no compiler"),
              std::string::npos)
        << error.what();
  }
}

// One machine code for the cards of a family, and none for others.
TEST(DevicePrograms, AreCompiledForTheFamilyWhoseInstructionsTheyNeed) {
  strategies::DeviceProgram program{.title = "product", .text = "", .kernels = {}, .options = {}};
  EXPECT_EQ(compiler_input(program, "sm_103a").arch, "sm_103a");
  EXPECT_EQ(compiler_input(program, "sm_80").arch, "sm_80");
  program.only_arch = Arch::sm_100f;
  for (const char* arch : {"sm_100a", "sm_103a", "sm_100f"}) {
    EXPECT_TRUE(can_run_on(program, arch)) << arch;
    EXPECT_EQ(compiler_input(program, arch).arch, "sm_100f") << arch;
  }
  for (const char* arch : {"sm_90a", "sm_120a", "sm_80"}) {
    EXPECT_FALSE(can_run_on(program, arch)) << arch;
    try {
      (void)compiler_input(program, arch);
      FAIL() << arch;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "product is for sm_100f, whose machine code does not run on " + std::string(arch));
    }
  }
  program.only_arch = Arch::sm_100a;
  EXPECT_FALSE(can_run_on(program, "sm_103a"));
  EXPECT_FALSE(can_run_on(program, "sm_100f"));
}

}  // namespace
}  // namespace thresher::ops
