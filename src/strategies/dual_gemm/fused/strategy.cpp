#include "strategies/dual_gemm/fused/strategy.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/fused/candidates.hpp"
#include "strategies/dual_gemm/fused/defaults.hpp"
#include "strategies/dual_gemm/fused/host/work.hpp"
#include "strategies/dual_gemm/fused/launch.hpp"
#include "strategies/dual_gemm/fused/obstacles.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "strategies/dual_gemm/host/samples.hpp"
#include "strategies/grouped_gemm/host/requantise.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

/// Few tokens leave a kernel waiting for memory from its first moment: starting it before the last one has ended pays
/// there, and costs elsewhere (docs/kernels/dual-gemm.md).
constexpr std::int64_t max_tokens_of_dependent_launch = 128;

/// A problem of a few tiles for `config`.
ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config) {
  return with_extents(problem, block_tokens(config) + 1, config.block_outputs + 8,
                      config.block_k * (config.stages * config.split_k + 1) + 8);
}

Sample<ProductProblem> sample_of(const Config& config) {
  const DualGemmProblem problem{.a = format_of(config.operand),
                                .b = format_of(config.operand),
                                .out = format_of(config.output),
                                .activation = {.kind = kind_of(config.activation)}};
  return {multi_tile_sample(problem, config), knob_table().knobs(config)};
}

template <class Configs>
std::vector<Sample<ProductProblem>> samples_of(const Configs& configs, Order order) {
  std::vector<Sample<ProductProblem>> found;
  for (const Config& config : configs) {
    if (config.order == order) {
      found.push_back(sample_of(config));
    }
  }
  return found;
}

/// What the kernel computes: outputs that are to be requantised in float32.
ProductProblem product_of(const ProductProblem& problem) {
  return format_traits(problem.out).is_requantised() ? grouped_gemm::unrounded(problem) : problem;
}

PlannedCall planned(const ProductProblem& problem, const Config& config) {
  const ProductProblem product = product_of(problem);
  PlannedCall call = planned_call(product, config);
  return product == problem ? call : grouped_gemm::with_output_quantization(std::move(call), problem);
}

}  // namespace

std::string_view FusedStrategy::name() const { return fused::name(order_); }

std::vector<KnobHelp> FusedStrategy::knobs() const { return knob_table().help(); }

std::optional<std::string> FusedStrategy::unsupported_reason(const ProductProblem& problem,
                                                             const DeviceSpec& device) const {
  if (device.matrix_unit != MatrixUnit::wgmma || problem.a != problem.b || !is_16_bit(problem.a)) {
    return fmt::format("strategy {} takes fp16 with fp16 or bf16 with bf16 on a Hopper GPU, not {} with {} on {}",
                       name(), thresher::name(problem.a), thresher::name(problem.b), device.name);
  }
  return std::nullopt;
}

Config FusedStrategy::config(const ProductProblem& problem, const Knobs& knobs) const {
  return knob_table().with(for_problem(product_of(problem), order_), knobs, name());
}

std::vector<std::string> FusedStrategy::infeasible_reasons(const ProductProblem& problem, const Knobs& knobs,
                                                           const DeviceSpec& device) const {
  const Config wanted = config(problem, knobs);
  if (auto sentence = unsupported_reason(problem, device)) {
    return {*sentence};
  }
  return fused::infeasible_reasons(product_of(problem), wanted, device);
}

std::vector<Knobs> FusedStrategy::candidates(const ProductProblem& problem, const Knobs& knobs,
                                             const DeviceSpec& device) const {
  (void)config(problem, knobs);
  std::vector<Knobs> found;
  if (unsupported_reason(problem, device)) {
    return found;
  }
  const ProductProblem product = product_of(problem);
  for (const Config& candidate : fused::candidates(product, order_, knobs, device)) {
    if (fused::infeasible_reasons(product, candidate, device).empty()) {
      found.push_back(knob_table().knobs(candidate));
    }
  }
  return found;
}

Config FusedStrategy::feasible_config(const ProductProblem& problem, const Knobs& knobs,
                                      const DeviceSpec& device) const {
  refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
  return config(problem, knobs);
}

PlannedCall FusedStrategy::plan(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec& device) const {
  return planned(problem, feasible_config(problem, knobs, device));
}

WorkModel FusedStrategy::work(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec&) const {
  const ProductProblem product = product_of(problem);
  WorkModel work = fused::work(product, config(problem, knobs));
  return product == problem ? work : grouped_gemm::with_output_quantization(std::move(work), problem);
}

std::optional<ProfiledCall> FusedStrategy::profiled(const ProductProblem& problem, const Knobs& knobs,
                                                    const DeviceSpec& device, const ProfileRequest& request) const {
  Config wanted = feasible_config(problem, knobs, device);
  wanted.profiled = request.timestamps;
  wanted.ablation = request.ablation;
  return ProfiledCall{planned(problem, wanted), 0, shape_of(wanted)};
}

std::vector<ProductProblem> FusedStrategy::edges(const ProductProblem& problem, const Knobs& knobs,
                                                 const DeviceSpec&) const {
  const Config wanted = config(problem, knobs);
  // Threads that store pairs of outputs must not store one beyond a row's last; the copy engine takes no such rows.
  const std::int64_t outputs = wanted.epilogue == Epilogue::simt ? 7 : 8;
  const ProductProblem least = with_extents(problem, 1, outputs, wanted.split_k > 1 ? wanted.block_k + 8 : 8);
  return {with_whole_scales(multi_tile_sample(problem, wanted)), with_whole_scales(least)};
}

std::vector<Sample<ProductProblem>> FusedStrategy::built_in() const { return samples_of(default_config_list, order_); }
std::vector<Sample<ProductProblem>> FusedStrategy::samples() const { return samples_of(small_config_list, order_); }

Config for_problem(const ProductProblem& problem, Order order) {
  return {.order = order,
          .operand = number_of(problem.a),
          .output = number_of(problem.out),
          .activation = code_of(problem.activation->kind),
          .persistent = order == Order::pingpong,
          .dependent_launch = problem.rows <= max_tokens_of_dependent_launch};
}

}  // namespace thresher::strategies::dual_gemm::fused
