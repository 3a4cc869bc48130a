#include "ops/forecast.hpp"

#include <fmt/format.h>

#include "ops/attention_call.hpp"
#include "pipeline/attention/config.hpp"
#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/knob_words.hpp"
#include "ops/nvfp4_choice.hpp"
#include "strategies/dual_gemm/packed/exact_layout.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

/// Whether packed NVFP4 weights run it, whose kernel has no name of its own among the planner's strategies.
bool is_packed(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device) {
  const bool packs = problem.b == Format::nvfp4 && device.matrix_unit == MatrixUnit::wgmma;
  const bool by_knobs = !options.knobs.empty() && options.strategy != "two_pass";
  return packs && (by_knobs || options.strategy.empty() || options.strategy == "packed");
}

/// What has to be done to the tokens before packed weights can be multiplied with them; null when nothing.
const char* preparation(const DualGemmProblem& problem, const planner::DualGemmConfig& config) {
  if (config.numerics == Numerics::fast) {
    return "folding";
  }
  if (problem.a == Format::nvfp4) {
    return "widening";
  }
  return problem.k % strategies::dual_gemm::packed::block_k != 0 ? "padding" : nullptr;
}

planner::DualGemmConfig library_products() {
  planner::DualGemmConfig config;
  config.strategy = planner::Strategy::two_pass;
  return config;
}

}  // namespace

planner::DualGemmConfig planned_contestant(const DualGemmProblem& problem, const DualGemmOptions& options,
                                           const DeviceSpec& device) {
  if (options.strategy == "two_pass") {
    return library_products();
  }
  if (is_packed(problem, options, device)) {
    return planned_config(
        choose_packed(problem, planner_words(options.knobs), device.multiprocessors, options.numerics));
  }
  if (options.strategy != "packed") {
    if (const auto choice = choose_fused(problem, {options.strategy, planner_words(options.knobs)}, device)) {
      return choice->planned;
    }
    if (options.strategy.empty()) {
      return library_products();
    }
  }
  throw Error(ErrorCode::unsupported, fmt::format("the planner knows no {} kernel for {} with {} on a {}",
                                                  options.strategy, name(problem.a), name(problem.b), device.name));
}

double prepared_bytes(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device) {
  if (!is_packed(problem, options, device) ||
      preparation(problem, planned_contestant(problem, options, device)) == nullptr) {
    return 0;
  }
  const double written_bits = packing_numerics(options) == Numerics::fast ? 8 : 16;
  return static_cast<double>(problem.m) * static_cast<double>(problem.k) *
         (planner::stored_bits(problem.a) + written_bits) / 8;
}

planner::Prediction forecast(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device,
                             const planner::Calibration& calibration) {
  const planner::DualGemmConfig config = planned_contestant(problem, options, device);
  const double bytes = prepared_bytes(problem, options, device);
  if (bytes == 0) {
    return planner::predict(problem, config, device, calibration);
  }
  // By a kernel of its own, whose launch hides under the one before.
  DualGemmProblem prepared = problem;
  prepared.a = problem.a == Format::nvfp4 ? Format::fp16 : problem.a;
  planner::Prediction prediction = planner::predict(prepared, config, device, calibration);
  prediction.parts.passes_us = planner::pass_us(bytes, device, calibration);
  prediction.why += fmt::format("; {} the tokens {:.1f} µs", preparation(problem, config), prediction.parts.passes_us);
  return prediction;
}

planner::AttentionConfig planned_contestant(const AttentionProblem& problem, const AttentionOptions& options,
                                            const DeviceSpec& device) {
  const strategies::PlannedCall call = attention_call(problem, options, device);
  const auto number = [&](const char* knob) { return std::stoi(*call.knobs.find(knob)); };
  planner::AttentionConfig config;
  config.dependent_launch = *call.knobs.find("dependent_launch") == "true";
  if (call.strategy == "pipelined") {
    pipeline::attention::StreamConfig stream{};
    stream.math_warpgroups = number("math_warpgroups");
    config.query_rows = stream.rows();
    config.key_step = number("keys");
    config.stages = number("stages");
    config.math_warpgroups = stream.math_warpgroups;
    config.multicast = number("cluster");
    config.queries_in_registers = *call.knobs.find("queries_in_registers") == "true";
    config.loader_registers = stream.loader_registers();
    config.math_registers = stream.math_registers();
    config.persistent = true;
    return config;
  }
  if (call.strategy == "split") {
    using pipeline::attention::SplitConfig;
    config.query_rows = SplitConfig::rows;
    config.key_step = SplitConfig::chunk;
    config.stages = SplitConfig::chunks;
    config.math_warpgroups = 1;
    config.split_keys = number("cluster");
    return config;
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("the planner knows attention on the matrix unit alone, not the strategy {}", call.strategy));
}

planner::Prediction forecast(const AttentionProblem& problem, const AttentionOptions& options, const DeviceSpec& device,
                             const planner::Calibration& calibration) {
  const strategies::PlannedCall call = attention_call(problem, options, device);
  if (call.work.parts.empty()) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the planner knows attention on the matrix unit alone, not the strategy {}", call.strategy));
  }
  return planner::predict(call.work, device, calibration);
}

}  // namespace thresher::ops
