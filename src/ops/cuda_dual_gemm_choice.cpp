#include "ops/cuda_dual_gemm_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/dual_gemm/fused/host/obstacles.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = strategies::dual_gemm::fused;

constexpr std::int64_t copy_engine_bytes = 16;

bool is_16_bit(Format format) { return format == Format::fp16 || format == Format::bf16; }

device_code::Number number(Format format) {
  return format == Format::fp16   ? device_code::Number::fp16
         : format == Format::bf16 ? device_code::Number::bf16
                                  : device_code::Number::fp32;
}

device_code::Strategy strategy_of(planner::Strategy strategy) {
  switch (strategy) {
    case planner::Strategy::sequential: return device_code::Strategy::sequential;
    case planner::Strategy::interleaved: return device_code::Strategy::interleaved;
    case planner::Strategy::pingpong: return device_code::Strategy::pingpong;
    case planner::Strategy::two_pass: break;
  }
  throw Error(ErrorCode::unsupported, "two_pass is not a fused kernel");
}

device_code::ActivationCode activation_code(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::silu: return device_code::ActivationCode::silu;
    case ActivationKind::gelu_tanh: return device_code::ActivationCode::gelu_tanh;
    case ActivationKind::swiglu_clamped: break;
  }
  return device_code::ActivationCode::swiglu_clamped;
}

/// Everything that stands in the way: the planner's reasons and the kernel's own.
std::vector<std::string> obstacles(const DualGemmProblem& problem, const planner::DualGemmConfig& planned,
                                   const DeviceSpec& device) {
  std::vector<std::string> found = planner::feasible(problem, planned, device).obstacles;
  if (found.empty()) {
    found = device_code::obstacles(kernel_config(problem, planned));
  }
  return found;
}

FusedChoice chosen(const DualGemmProblem& problem, const planner::DualGemmConfig& planned, const DeviceSpec& device) {
  return {planned, kernel_config(problem, planned), planner::predict(problem, planned, device)};
}

FusedChoice from_knobs(const DualGemmProblem& problem, const FusedRequest& request, const DeviceSpec& device) {
  const std::string& knobs = request.knobs;
  const planner::DualGemmConfig planned = planner::parse_config(knobs);
  if (!request.strategy.empty() && request.strategy != planner::name(planned.strategy)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the knobs \"{}\" are of strategy {}, asked for is {}", knobs,
                                                         planner::name(planned.strategy), request.strategy));
  }
  const std::vector<std::string> found = obstacles(problem, planned, device);
  if (!found.empty()) {
    throw Error(ErrorCode::unsupported, fmt::format("the knobs \"{}\" cannot run: {}", knobs, fmt::join(found, "; ")));
  }
  return chosen(problem, planned, device);
}

}  // namespace

device_code::Config kernel_config(const DualGemmProblem& problem, const planner::DualGemmConfig& planned) {
  if (planned.mma_rows != planner::MmaRows::tokens) {
    throw Error(ErrorCode::unsupported,
                "operands of 16 bits are multiplied with tokens along the rows: tokens_as_rows");
  }
  if (planned.blocks_per_multiprocessor != 1) {
    throw Error(ErrorCode::unsupported,
                fmt::format("blocks={}: operands of 16 bits fill a multiprocessor with one block",
                            planned.blocks_per_multiprocessor));
  }
  device_code::Config config;
  config.strategy = strategy_of(planned.strategy);
  config.operand = number(problem.a);
  config.output = number(problem.out);
  config.activation = activation_code(problem.activation.kind);
  config.math_warpgroups = planned.math_warpgroups;
  const int sharing = planned.strategy == planner::Strategy::pingpong ? 1 : planned.math_warpgroups;
  config.warpgroup_tiles = planned.tile.tokens / (64 * std::max(1, sharing));
  config.block_outputs = planned.tile.weight_rows / 2;
  config.block_k = planned.tile.k;
  config.stages = planned.stages;
  config.split_k = planned.split_k;
  config.multicast = planned.cluster / std::max(1, planned.split_k);
  config.epilogue =
      planned.epilogue == planner::Epilogue::tma ? device_code::Epilogue::tma : device_code::Epilogue::simt;
  config.raster = planned.raster == planner::Raster::same_weights ? device_code::Raster::rows_first
                                                                  : device_code::Raster::columns_first;
  config.persistent = planned.persistent;
  config.loader_registers = planned.loader_registers;
  config.math_registers = planned.math_registers;
  return config;
}

std::optional<FusedChoice> choose_fused(const DualGemmProblem& problem, const FusedRequest& request,
                                        const DeviceSpec& device) {
  const bool row_is_addressable = problem.k * bits(problem.a) / 8 % copy_engine_bytes == 0;
  if (device.matrix_unit != MatrixUnit::wgmma || problem.a != problem.b || !is_16_bit(problem.a) ||
      !row_is_addressable) {
    return std::nullopt;
  }
  if (!request.knobs.empty()) {
    return from_knobs(problem, request, device);
  }
  const std::vector<planner::DualGemmConfig> candidates = planner::dual_gemm_candidates(problem, device);
  for (const auto& choice : planner::rank(problem, candidates, device).choices) {
    const planner::Strategy strategy = choice.config.strategy;
    const bool is_wanted = request.strategy.empty() || request.strategy == planner::name(strategy);
    if (strategy != planner::Strategy::two_pass && is_wanted && obstacles(problem, choice.config, device).empty()) {
      return chosen(problem, choice.config, device);
    }
  }
  return std::nullopt;
}

}  // namespace thresher::ops
