#include "ops/forecast.hpp"

#include <fmt/format.h>

#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/nvfp4_choice.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

/// Whether packed NVFP4 weights run it, whose kernel has no name of its own among the planner's strategies.
bool is_packed(const DualGemmProblem& problem, const PlanOptions& options, const planner::DeviceSpec& device) {
  const bool packs = problem.b == Format::nvfp4 && device.matrix_unit == planner::MatrixUnit::wgmma;
  const bool by_knobs = !options.knobs.empty() && options.strategy != "two_pass";
  return packs && (by_knobs || options.strategy.empty() || options.strategy == "packed");
}

planner::DualGemmConfig library_products() {
  planner::DualGemmConfig config;
  config.strategy = planner::Strategy::two_pass;
  return config;
}

}  // namespace

planner::DualGemmConfig planned_contestant(const DualGemmProblem& problem, const PlanOptions& options,
                                           const planner::DeviceSpec& device) {
  if (options.strategy == "two_pass") {
    return library_products();
  }
  if (is_packed(problem, options, device)) {
    return planned_config(choose_packed(problem, options.knobs, device.multiprocessors, options.numerics));
  }
  if (options.strategy != "packed") {
    if (const auto choice = choose_fused(problem, {options.strategy, options.knobs}, device)) {
      return choice->planned;
    }
    if (options.strategy.empty()) {
      return library_products();
    }
  }
  throw Error(ErrorCode::unsupported, fmt::format("the planner knows no {} kernel for {} with {} on a {}",
                                                  options.strategy, name(problem.a), name(problem.b), device.name));
}

planner::Prediction forecast(const DualGemmProblem& problem, const PlanOptions& options,
                             const planner::DeviceSpec& device, const planner::Calibration& calibration) {
  const planner::DualGemmConfig config = planned_contestant(problem, options, device);
  if (problem.a != Format::nvfp4 || !is_packed(problem, options, device)) {
    return planner::predict(problem, config, device, calibration);
  }
  // NVFP4 tokens are widened by a kernel of their own, whose launch hides under the one before.
  DualGemmProblem widened = problem;
  widened.a = Format::fp16;
  planner::Prediction prediction = planner::predict(widened, config, device, calibration);
  const double bytes =
      static_cast<double>(problem.m) * static_cast<double>(problem.k) * (planner::stored_bits(Format::nvfp4) + 16) / 8;
  prediction.parts.passes_us = calibration.fill_us + bytes / (device.dram_bytes_per_us * calibration.dram_efficiency);
  prediction.why += fmt::format("; widening the tokens {:.1f} µs", prediction.parts.passes_us);
  return prediction;
}

}  // namespace thresher::ops
