#include "ops/forecast.hpp"

#include <fmt/format.h>

#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/nvfp4_choice.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

planner::Prediction forecast_two_pass(const DualGemmProblem& problem, const planner::DeviceSpec& device,
                                      const planner::Calibration& calibration) {
  planner::DualGemmConfig config;
  config.strategy = planner::Strategy::two_pass;
  return planner::predict(problem, config, device, calibration);
}

/// NVFP4 tokens are widened by a kernel of their own, whose launch hides under the one before.
planner::Prediction forecast_packed(DualGemmProblem problem, const PlanOptions& options,
                                    const planner::DeviceSpec& device, const planner::Calibration& calibration) {
  if (device.matrix_unit != planner::MatrixUnit::wgmma) {
    throw Error(ErrorCode::unsupported, fmt::format("strategy packed needs a Hopper GPU, not a {}", device.name));
  }
  const planner::DualGemmConfig config =
      planned_config(choose_packed(problem, options.knobs, device.multiprocessors, options.numerics));
  const bool widens = problem.a == Format::nvfp4;
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.k);
  const double widened_bytes = elements * (planner::stored_bits(Format::nvfp4) + 16) / 8;
  if (widens) {
    problem.a = Format::fp16;
  }
  planner::Prediction prediction = planner::predict(problem, config, device, calibration);
  if (widens) {
    prediction.parts.passes_us =
        calibration.fill_us + widened_bytes / (device.dram_bytes_per_us * calibration.dram_efficiency);
    prediction.why += fmt::format("; widening the tokens {:.1f} µs", prediction.parts.passes_us);
  }
  return prediction;
}

}  // namespace

planner::Prediction forecast(const DualGemmProblem& problem, const PlanOptions& options,
                             const planner::DeviceSpec& device, const planner::Calibration& calibration) {
  if (options.strategy == "two_pass") {
    return forecast_two_pass(problem, device, calibration);
  }
  const bool packs = problem.b == Format::nvfp4 && device.matrix_unit == planner::MatrixUnit::wgmma;
  if (options.strategy == "packed" || (packs && (options.strategy.empty() || !options.knobs.empty()))) {
    return forecast_packed(problem, options, device, calibration);
  }
  if (const auto choice = choose_fused(problem, {options.strategy, options.knobs}, device)) {
    return planner::predict(problem, choice->planned, device, calibration);
  }
  if (options.strategy.empty()) {
    return forecast_two_pass(problem, device, calibration);
  }
  throw Error(ErrorCode::unsupported, fmt::format("the planner knows no {} kernel for {} with {} on a {}",
                                                  options.strategy, name(problem.a), name(problem.b), device.name));
}

}  // namespace thresher::ops
