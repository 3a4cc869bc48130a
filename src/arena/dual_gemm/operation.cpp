#include "arena/dual_gemm/operation.hpp"

#include <algorithm>
#include <functional>

#include "arena/dual_gemm/generate.hpp"
#include "arena/dual_gemm/inspector.hpp"
#include "arena/dual_gemm/judge.hpp"
#include "arena/dual_gemm/task.hpp"

namespace thresher::arena {
namespace {

/// Problems are not made smaller than this along any side.
constexpr std::int64_t min_extent = 64;
/// What every format's rows and scales divide into.
constexpr std::int64_t extent_step = 32;

}  // namespace

const Operation& dual_gemm_operation() {
  static const DualGemmOperation operation;
  return operation;
}

std::string DualGemmOperation::label(const Problem& problem) const { return label_of(problem.as<DualGemmTask>()); }

bool DualGemmOperation::offers(const Problem& problem, Distribution distribution) const {
  // The clamp keeps gates where σ is not 1, so nothing there is exact.
  return distribution != Distribution::integers || dual_gemm(problem).activation.kind != ActivationKind::swiglu_clamped;
}

std::vector<HostTensor> DualGemmOperation::inputs(const Problem& problem, Distribution distribution,
                                                  std::uint64_t seed) const {
  return dual_gemm_inputs(problem.as<DualGemmTask>(), distribution, seed);
}

std::vector<HostTensor> DualGemmOperation::outputs(const Problem& problem) const {
  const DualGemmProblem& gemm = dual_gemm(problem);
  std::vector<HostTensor> tensors;
  tensors.push_back(make_host_tensor("c", gemm.out, {gemm.m, gemm.n}));
  return tensors;
}

std::unique_ptr<Judge> DualGemmOperation::judge(const Problem& problem, Distribution distribution,
                                                const std::vector<HostTensor>& inputs, const Maker& maker,
                                                std::uint64_t seed) const {
  return make_dual_gemm_judge(dual_gemm(problem), distribution, inputs, maker, seed);
}

std::unique_ptr<Inspector> DualGemmOperation::inspector(const Problem& problem, Distribution distribution,
                                                        const std::vector<HostTensor>& inputs, const Maker& maker,
                                                        std::uint64_t seed) const {
  return make_dual_gemm_inspector(dual_gemm(problem), distribution, inputs, maker, seed);
}

Cost DualGemmOperation::cost(const Problem& problem) const {
  const DualGemmProblem& gemm = dual_gemm(problem);
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  const auto bytes_per_element = [](Format format, OperandRole role = OperandRole::tokens) {
    return format_traits(format).stored_bits(role) / 8;
  };
  return {4 * m * n * k, m * k * bytes_per_element(gemm.a) +
                             2 * n * k * bytes_per_element(gemm.b, OperandRole::weights) +
                             m * n * bytes_per_element(gemm.out)};
}

std::vector<HostTensor> DualGemmOperation::activations(const Problem& problem, Distribution distribution,
                                                       std::uint64_t seed) const {
  DualGemmTask narrow = problem.as<DualGemmTask>();
  narrow.problem.n = std::min<std::int64_t>(narrow.problem.n, min_extent);
  std::vector<HostTensor> tensors = dual_gemm_inputs(narrow, distribution, seed);
  std::erase_if(tensors, [](const HostTensor& tensor) { return tensor.is_weight; });
  return tensors;
}

std::optional<Problem> DualGemmOperation::neighbour(const Problem& problem) const {
  DualGemmTask near = problem.as<DualGemmTask>();
  near.problem.m += 3;
  near.problem.n += 24;
  near.problem.k += 32;
  return problem_of(near);
}

std::optional<Problem> DualGemmOperation::smaller(const Problem& problem) const {
  DualGemmTask half = problem.as<DualGemmTask>();
  DualGemmProblem& gemm = half.problem;
  std::int64_t& greatest = std::max({std::ref(gemm.n), std::ref(gemm.k), std::ref(gemm.m)}, std::less<std::int64_t>());
  if (greatest < 2 * min_extent) {
    return std::nullopt;
  }
  greatest = greatest / 2 / extent_step * extent_step;
  return problem_of(half);
}

}  // namespace thresher::arena
