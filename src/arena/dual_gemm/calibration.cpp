// Times of the dual GEMM that the planner is fitted to.
#include <tuple>

#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/task.hpp"

namespace thresher::arena {
namespace {

using Cases = std::vector<CalibrationCase>;

void add(Cases& all, const DualGemmProblem& problem, const char* strategy,
         std::map<std::string, std::string> knobs = {}) {
  all.push_back({problem_of(problem), {std::string(dual_gemm_operation().name()), strategy, std::move(knobs)}});
}

}  // namespace

std::vector<CalibrationCase> DualGemmOperation::calibration_cases() const {
  Cases all;
  const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, Format a, Format b, Format out) {
    return DualGemmProblem{.m = m, .n = n, .k = k, .a = a, .b = b, .out = out};
  };
  const std::map<std::string, std::string> fast{{"numerics", "fast"}};
  for (const auto& [m, n, k] : {std::tuple{128, 5120, 5120}, {320, 6144, 4096}, {1024, 5120, 5120}}) {
    const DualGemmProblem plain = of(m, n, k, Format::bf16, Format::bf16, Format::bf16);
    for (const char* strategy : {"two_pass", "interleaved", "sequential", "pingpong"}) {
      add(all, plain, strategy);
    }
    const DualGemmProblem packed = of(m, n, k, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "packed", fast);
    add(all, packed, "packed",
        {{"math_warpgroups", "2"},
         {"block_tokens", "128"},
         {"blocks_per_slot", "2"},
         {"stages", "3"},
         {"split_k", "1"}});
  }
  for (const std::int64_t m : {2, 24, 48}) {
    const DualGemmProblem packed = of(m, 11008, 4096, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "packed", fast);
  }
  return all;
}

}  // namespace thresher::arena
