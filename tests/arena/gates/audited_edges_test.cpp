// What the library's strategies promise of their machine code holds at the edges too.
#include <gtest/gtest.h>

#include <algorithm>

#include "arena/audit/disassembler.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/suites/suite.hpp"
#include "ops/forecast.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

// Every program that a strategy would run on the suite `edges`, compiled for an H200, each read once.
TEST(LibraryMachineCode, KeepsItsPromisesAtTheEdges) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const Disassembler tools = find_disassembler();
  std::vector<KernelCode> seen;
  for (const Problem& problem : load_suite("edges").problems) {
    for (const char* strategy : {"packed", "interleaved", "sequential", "pingpong"}) {
      DualGemmOptions options;
      options.strategy = strategy;
      MachineCode code;
      try {
        code = machine_code_of(ops::planned_call(dual_gemm(problem), options, device_spec("H200")), "sm_90a");
      } catch (const Error&) {
        continue;  // not made for these formats
      }
      for (const KernelCode& kernel : code.kernels) {
        if (std::find(seen.begin(), seen.end(), kernel) != seen.end()) {
          continue;
        }
        seen.push_back(kernel);
        const std::vector<SassFunction> functions =
            tools.found() ? disassemble(tools, kernel.image).functions : std::vector<SassFunction>{};
        const auto function = std::find_if(functions.begin(), functions.end(),
                                           [&](const SassFunction& each) { return each.name == kernel.kernel; });
        const AuditReport report =
            audit(kernel.kernel, &kernel.resources, function == functions.end() ? nullptr : &*function,
                  kernel.dynamic_shared_bytes);
        const AuditVerdict verdict = judge_audit(report, kernel.expected);
        EXPECT_FALSE(verdict.failed()) << label(problem) << ", " << strategy << ": " << verdict.gate(report).sentence;
        EXPECT_EQ(function != functions.end(), tools.found());
      }
    }
  }
  EXPECT_GT(seen.size(), 10U);
}

}  // namespace
}  // namespace thresher::arena
