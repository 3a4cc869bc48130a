#include "arena/dual_gemm/operation.hpp"

#include <algorithm>
#include <functional>

#include "arena/dual_gemm/generate.hpp"
#include "arena/dual_gemm/judge.hpp"

namespace thresher::arena {
namespace {

/// Problems are not made smaller than this along any side.
constexpr std::int64_t least_extent = 64;
/// What every format's rows and scales divide into.
constexpr std::int64_t extent_step = 32;

}  // namespace

bool DualGemmOperation::offers(const Problem& problem, Distribution distribution) const {
  // The clamp keeps gates where σ is not 1, so nothing there is exact.
  return distribution != Distribution::integers || problem.dual_gemm.activation.kind != ActivationKind::swiglu_clamped;
}

std::vector<HostTensor> DualGemmOperation::inputs(const Problem& problem, Distribution distribution,
                                                  std::uint64_t seed) const {
  return dual_gemm_inputs(problem, distribution, seed);
}

std::vector<HostTensor> DualGemmOperation::outputs(const Problem& problem) const {
  const DualGemmProblem& gemm = problem.dual_gemm;
  std::vector<HostTensor> tensors;
  tensors.push_back(make_host_tensor("c", gemm.out, {gemm.m, gemm.n}));
  return tensors;
}

std::vector<HostTensor> DualGemmOperation::variation(const std::vector<HostTensor>& inputs, std::size_t index) const {
  std::vector<HostTensor> varied;
  std::int64_t step = 1;  // another one for each operand, so that no two sets hold the same pairs of rows
  for (const HostTensor& input : inputs) {
    varied.push_back(rotate_rows(input, static_cast<std::int64_t>(index) * step));
    step += 2;
  }
  return varied;
}

std::unique_ptr<Judge> DualGemmOperation::judge(const Problem& problem, Distribution distribution,
                                                const std::vector<HostTensor>& inputs, const Maker& maker,
                                                std::uint64_t seed) const {
  return make_dual_gemm_judge(problem.dual_gemm, distribution, inputs, maker, seed);
}

Cost DualGemmOperation::cost(const Problem& problem) const {
  const DualGemmProblem& gemm = problem.dual_gemm;
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  const auto bytes_per_element = [](Format format) { return format_traits(format).stored_bits() / 8; };
  return {4 * m * n * k, m * k * bytes_per_element(gemm.a) + 2 * n * k * bytes_per_element(gemm.b) +
                             m * n * bytes_per_element(gemm.out)};
}

std::vector<HostTensor> DualGemmOperation::activations(const Problem& problem, Distribution distribution,
                                                       std::uint64_t seed) const {
  Problem narrow = problem;
  narrow.dual_gemm.n = std::min<std::int64_t>(narrow.dual_gemm.n, least_extent);
  std::vector<HostTensor> tensors = dual_gemm_inputs(narrow, distribution, seed);
  std::erase_if(tensors, [](const HostTensor& tensor) { return tensor.name != "a"; });
  return tensors;
}

std::optional<Problem> DualGemmOperation::neighbour(const Problem& problem) const {
  Problem near = problem;
  near.dual_gemm.m += 3;
  near.dual_gemm.n += 24;
  near.dual_gemm.k += 32;
  return near;
}

std::optional<Problem> DualGemmOperation::smaller(const Problem& problem) const {
  Problem half = problem;
  DualGemmProblem& gemm = half.dual_gemm;
  std::int64_t& greatest = std::max({std::ref(gemm.n), std::ref(gemm.k), std::ref(gemm.m)}, std::less<std::int64_t>());
  if (greatest < 2 * least_extent) {
    return std::nullopt;
  }
  greatest = greatest / 2 / extent_step * extent_step;
  return half;
}

}  // namespace thresher::arena
