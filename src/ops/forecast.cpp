#include "ops/forecast.hpp"

#include <fmt/format.h>

#include "ops/attention_call.hpp"
#include "ops/dual_gemm_choice.hpp"
#include "pipeline/attention/config.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

int number(const Knobs& knobs, const std::string& name) {
  const std::string* value = knobs.find(name);
  return value == nullptr ? 0 : std::stoi(*value);
}
bool is(const Knobs& knobs, const std::string& name, std::string_view value) {
  const std::string* found = knobs.find(name);
  return found != nullptr && *found == value;
}

/// What `packed` and the fused strategies have in common.
planner::DualGemmConfig common(const Knobs& knobs) {
  planner::DualGemmConfig config;
  config.stages = number(knobs, "stages");
  config.math_warpgroups = number(knobs, "math_warpgroups");
  config.split_k = number(knobs, "split_k");
  config.loader_registers = number(knobs, "loader_registers");
  config.math_registers = number(knobs, "math_registers");
  return config;
}

planner::DualGemmConfig packed_words(const Knobs& knobs) {
  planner::DualGemmConfig config = common(knobs);
  config.numerics = is(knobs, "numerics", "fast") ? Numerics::fast : Numerics::exact;
  const int block_k = config.numerics == Numerics::fast ? 128 : 64;
  config.tile = {64 * config.math_warpgroups, number(knobs, "block_tokens"),
                 number(knobs, "blocks_per_slot") * block_k};
  config.cluster = config.split_k;
  config.blocks_per_multiprocessor = number(knobs, "blocks_resident");
  config.dependent_launch = is(knobs, "dependent_launch", "true");
  return config;
}

planner::DualGemmConfig fused_words(planner::Strategy strategy, const Knobs& knobs) {
  planner::DualGemmConfig config = common(knobs);
  config.strategy = strategy;
  const int sharing = strategy == planner::Strategy::pingpong ? 1 : config.math_warpgroups;
  config.tile = {2 * number(knobs, "block_outputs"), 64 * number(knobs, "warpgroup_tiles") * sharing,
                 number(knobs, "block_k")};
  config.mma_rows = planner::MmaRows::tokens;
  config.cluster = config.split_k * number(knobs, "multicast");
  config.epilogue = is(knobs, "epilogue", "tma") ? planner::Epilogue::tma : planner::Epilogue::simt;
  config.raster = is(knobs, "raster", "rows_first") ? planner::Raster::same_weights : planner::Raster::same_tokens;
  config.persistent = is(knobs, "persistent", "true");
  return config;
}

}  // namespace

strategies::PlannedCall planned_call(const DualGemmProblem& problem, const DualGemmOptions& options,
                                     const DeviceSpec& device) {
  return choose_dual_gemm(problem, request_of(options), DeviceKind::cuda, device);
}

planner::DualGemmConfig planned_contestant(const DualGemmProblem& problem, const DualGemmOptions& options,
                                           const DeviceSpec& device) {
  const strategies::PlannedCall call = planned_call(problem, options, device);
  for (const planner::Strategy strategy :
       {planner::Strategy::sequential, planner::Strategy::interleaved, planner::Strategy::pingpong}) {
    if (call.strategy == planner::name(strategy)) {
      return fused_words(strategy, call.knobs);
    }
  }
  planner::DualGemmConfig library;
  library.strategy = planner::Strategy::two_pass;
  return call.packing != nullptr ? packed_words(call.knobs) : library;
}

double prepared_bytes(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device) {
  const strategies::PlannedCall call = planned_call(problem, options, device);
  double bytes = 0;
  for (const auto& part : call.work.parts) {
    if (const auto* pass = std::get_if<strategies::MemoryPass>(&part); pass != nullptr && pass->is_hidden_launch) {
      bytes += pass->bytes;
    }
  }
  return bytes;
}

planner::Prediction forecast(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device,
                             const planner::Calibration& calibration) {
  return planner::predict(planned_call(problem, options, device).work, device, calibration);
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
