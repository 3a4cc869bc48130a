// An operation whose hooks are misspelt, mistyped or not listed does not compile, neither for the CPU nor for the GPU,
// and the compiler says in a sentence what is wrong.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "machine/device_program.hpp"
#include "pipeline/refusals.hpp"
#include "thresher/error.hpp"

namespace thresher::pipeline::test {
namespace {

constexpr const char* header = "pipeline/operations.hpp";
const std::array<Refusal, 11> refusals{{
    {"hooks.prepare is set, but there is no 'bool prepare(", 2},
    {"there is a 'prepare', but hooks.prepare is not set", 1},
    {"hooks.ahead is set, but there is no 'Ahead ahead(", 1},
    {"there is an 'ahead', but hooks.ahead is not set", 1},
    {"there is no 'void finish(Sums&, const Tile&, u32 warpgroup, u32 half, Shared<u8> staging, const Ahead&)", 1},
    {"hooks.load_constant is set, but there are no 'void load_constant(", 1},
    {"there is a 'load_constant' or 'load_fresh', but hooks.load_constant is not set", 1},
    {"hooks.load_constant is not set, and there is no 'template <int pass> void load(", 1},
    {"there is no 'void finish(Sums&, const Tile&, u32 warpgroup, u32 half, Shared<u8> staging) const'", 1},
    {"hooks.makes_operand is set, but the operation lacks something that MakesOperand asks of it", 1},
    {"there is a 'Packed' or 'slots_together', but hooks.makes_operand is not set", 1},
}};

TEST(HostCompiler, TakesGoodOperations) {
  const Outcome outcome = compile_for_host(header, "");
  EXPECT_TRUE(outcome.compiled) << outcome.log;
}

TEST(HostCompiler, RefusesWrongHooks) {
  const Outcome outcome = compile_for_host(header, "-DBAD_OPERATIONS");
  EXPECT_FALSE(outcome.compiled);
  expect_refusals(refusals, outcome.log);
  EXPECT_NE(outcome.log.find("Unhooked"), std::string::npos) << outcome.log;
}

class DeviceCompiler : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_status().problem.empty()) {
      GTEST_SKIP() << runtime::nvrtc_status().problem;
    }
  }
  [[nodiscard]] runtime::Program program() const {
    runtime::Program made = machine::test::program_of(header_, text_, {"thresher::pipeline::test::kernel"});
    made.text = "#include \"" + header_ + "\"\n";
    return made;
  }
  const std::string header_ = header;
  const std::string text_ = machine::test::read_file(std::string(THRESHER_SOURCE_DIR) + "/tests/" + header_);
};

TEST_F(DeviceCompiler, TakesGoodOperations) { EXPECT_EQ(runtime::compile(program()).kernels.size(), 1U); }

TEST_F(DeviceCompiler, RefusesWrongHooks) {
  std::string log;  // one after the other: of a program the first errors alone are told
  for (const char* const operation :
       {"MisspeltPrepare", "MistypedPrepare", "UnlistedPrepare", "MisspeltAhead", "UnlistedAhead", "UnusedAhead",
        "MisspeltLoadConstant", "UnlistedLoadConstant", "MisspeltLoad", "MistypedFinish", "MistypedExpand",
        "UnlistedSlotsTogether", "Unhooked"}) {
    runtime::Program bad = program();
    bad.options.emplace_back("-DBAD_OPERATIONS");
    bad.options.emplace_back(std::string("-DBAD_OPERATION=") + operation);
    try {
      runtime::compile(bad);
      ADD_FAILURE() << operation << " compiled";
    } catch (const Error& error) {
      log += error.what();
    }
  }
  expect_refusals(refusals, log);
  EXPECT_NE(log.find("no instance of function template \"thresher::pipeline::run\""), std::string::npos) << log;
}

}  // namespace
}  // namespace thresher::pipeline::test
