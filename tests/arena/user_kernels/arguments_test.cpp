// What user kernels are given: structures and signatures are made from an operation's arguments, which hold for each of
// its problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "arena/operations.hpp"
#include "arena/pitches/argument_text.hpp"
#include "arena/pitches/call_structure.hpp"
#include "arena/suites/suite.hpp"
#include "core/input_file.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {
namespace {

/// Problems of the suites that come with Thresher.
std::vector<Problem> known_problems() {
  std::vector<Problem> problems;
  for (const std::string& name : built_in_suites()) {
    const Suite suite = load_suite(name);
    problems.insert(problems.end(), suite.problems.begin(), suite.problems.end());
  }
  return problems;
}

bool is_small(const Problem& problem) {
  return problem.operation().cost(problem).compulsory_bytes + problem.operation().working_bytes(problem) < 4e6;
}

TEST(Arguments, TheHeaderIsMadeFromThem) {
  const std::filesystem::path header = std::filesystem::path(THRESHER_SOURCE_DIR) / "include/thresher/own_calls.h";
  EXPECT_EQ(read_input_file(header).bytes, calls_header()) << "thresher kernel-arguments --header > " << header;
}

template <class Call>
void expect_structure(const char* operation) {
  const std::vector<Argument> arguments = arguments_of(find_operation(operation));
  const CallStructure structure = call_structure(arguments, Receiver::c, nullptr, 0);
  EXPECT_EQ(structure.bytes.size(), sizeof(Call)) << operation;
  EXPECT_EQ(structure.offsets.back(), offsetof(Call, workspace)) << operation;
  EXPECT_EQ(structure.addresses.back(), offsetof(Call, workspace)) << operation;
}

TEST(Arguments, LieInTheStructureWhereACompilerLooksForThem) {
  expect_structure<thresher_own_dual_gemm>("dual_gemm");
  expect_structure<thresher_own_gemm>("gemm");
  expect_structure<thresher_own_grouped_dual_gemm>("grouped_dual_gemm");
  expect_structure<thresher_own_grouped_gemm>("grouped_gemm");
  expect_structure<thresher_own_attention>("attention");
  expect_structure<thresher_own_moe_layer>("moe_layer");
  expect_structure<thresher_own_gated_mlp>("gated_mlp");
  EXPECT_EQ(sizeof(thresher_own_tensor), 120U) << "python_server.py reads as many";
}

TEST(Arguments, HaveTheSameNamesAndKindsForEveryProblem) {
  for (const Problem& problem : known_problems()) {
    const std::vector<Argument> expected = arguments_of(problem.operation());
    const std::vector<Argument> found = arguments_of(problem);
    ASSERT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                           [](const Argument& one, const Argument& other) {
                             return one.name == other.name && one.kind == other.kind && one.role == other.role;
                           }))
        << label(problem);
  }
}

// A tensor that is no argument would keep a kernel from its problem, and a weight that is none would be given too late.
TEST(Arguments, AreAllTensorsOfAProblem) {
  std::set<std::string_view> operations;
  for (const Problem& problem : known_problems()) {
    if (!is_small(problem)) {
      continue;
    }
    operations.insert(problem.operation().name());
    const std::vector<Argument> arguments = arguments_of(problem);
    const auto role_of = [&](const HostTensor& tensor) {
      const auto found = std::find_if(arguments.begin(), arguments.end(),
                                      [&](const Argument& one) { return one.tensor == tensor.name; });
      return found == arguments.end() ? std::optional<ArgumentRole>() : found->role;
    };
    for (const HostTensor& input : problem.operation().inputs(problem, Distribution::normal, 1)) {
      EXPECT_EQ(role_of(input), input.is_weight ? ArgumentRole::weight : ArgumentRole::activation)
          << label(problem) << " " << input.name;
    }
    for (const HostTensor& output : problem.operation().outputs(problem)) {
      EXPECT_EQ(role_of(output), ArgumentRole::output) << label(problem) << " " << output.name;
    }
  }
  EXPECT_EQ(operations.size(), arena::operations().size());
}

TEST(ProblemBytes, AreReadAsTheProblem) {
  for (const Problem& problem : known_problems()) {
    const Operation& operation = problem.operation();
    const std::string bytes = operation.bytes(problem);
    EXPECT_EQ(operation.from_bytes(bytes), problem) << label(problem);
    EXPECT_THROW((void)operation.from_bytes(bytes.substr(0, bytes.size() - 1)), Error) << label(problem);
  }
}

}  // namespace
}  // namespace thresher::arena::user_kernels
