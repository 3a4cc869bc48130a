// An operation whose hooks are misspelt, mistyped or not listed does not compile, neither for the CPU nor for the GPU,
// and the compiler says in a sentence what is wrong.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <regex>
#include <string>
#include <utility>

#include "machine/device_program.hpp"
#include "thresher/error.hpp"

namespace thresher::pipeline::test {
namespace {

/// A sentence of the skeleton's, and how many of the bad operations earn it.
const std::array<std::pair<const char*, int>, 11> refusals{{
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

/// The words of a compiler that refused the bad operations.
void expect_refusals(const std::string& log) {
  const std::string quoted = R"re(static assertion failed(: | with "))re";
  for (const auto& [sentence, count] : refusals) {
    const std::string literal = std::regex_replace(std::string(sentence), std::regex(R"re([.()&<>])re"), R"re(\$&)re");
    const std::regex wanted(quoted + literal);
    EXPECT_EQ(std::distance(std::sregex_iterator(log.begin(), log.end(), wanted), std::sregex_iterator()), count)
        << sentence << "\n"
        << log;
  }
}

struct Outcome {
  bool compiled;
  std::string log;
};

Outcome compile_for_host(const std::string& definition) {
  const std::string source = THRESHER_SOURCE_DIR;
  const std::string command = std::string(THRESHER_CXX_COMPILER) + " -std=c++20 -fsyntax-only -Wno-psabi " +
                              definition + " -I'" + source + "/src' -I'" + source + "/include' -x c++ '" + source +
                              "/tests/pipeline/operations.hpp' 2>&1";
  FILE* const words = popen(command.c_str(), "r");
  Outcome outcome{false, ""};
  for (int c = fgetc(words); c != EOF; c = fgetc(words)) {
    outcome.log += static_cast<char>(c);
  }
  outcome.compiled = pclose(words) == 0;
  return outcome;
}

TEST(HostCompiler, TakesGoodOperations) {
  const Outcome outcome = compile_for_host("");
  EXPECT_TRUE(outcome.compiled) << outcome.log;
}

TEST(HostCompiler, RefusesWrongHooks) {
  const Outcome outcome = compile_for_host("-DBAD_OPERATIONS");
  EXPECT_FALSE(outcome.compiled);
  expect_refusals(outcome.log);
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
  const std::string header_ = "pipeline/operations.hpp";
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
  expect_refusals(log);
  EXPECT_NE(log.find("no instance of function template \"thresher::pipeline::run\""), std::string::npos) << log;
}

}  // namespace
}  // namespace thresher::pipeline::test
