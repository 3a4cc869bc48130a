#include "ops/nvfp4_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/device_spec.hpp"
#include "ops/knob_words.hpp"
#include "strategies/dual_gemm/packed/choose.hpp"
#include "strategies/dual_gemm/packed/host/launches.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = strategies::dual_gemm::packed;

device_code::Number number(Format format) {
  switch (format) {
    case Format::bf16: return device_code::Number::bf16;
    case Format::fp32: return device_code::Number::fp32;
    default: return device_code::Number::fp16;
  }
}

/// Operand, output and activation: what a problem decides.
device_code::Config for_problem(device_code::Config config, const DualGemmProblem& problem) {
  config.operand = config.path == device_code::Path::exact && problem.a == Format::bf16 ? device_code::Number::bf16
                                                                                        : device_code::Number::fp16;
  config.output = number(problem.out);
  config.activation = static_cast<device_code::ActivationCode>(problem.activation.kind);
  return config;
}

[[noreturn]] void refuse(const planner::DualGemmConfig& planned, const std::string& why) {
  throw Error(ErrorCode::unsupported,
              fmt::format("the knobs \"{}\" cannot run with packed NVFP4 weights: {}", planner::text(planned), why));
}

/// Knobs that say nothing but the numerics leave the rest to the measured choice.
bool names_numerics_alone(const planner::DualGemmConfig& planned) {
  planner::DualGemmConfig bare;
  bare.numerics = planned.numerics;
  return planned == bare;
}

constexpr std::array token_counts{8, 16, 32, 64, 128, 256};

void require_supported(const planner::DualGemmConfig& planned) {
  const planner::Tile& tile = planned.tile;
  const auto block_k = static_cast<int>(device_code::block_k);
  if (planned.strategy != planner::Strategy::interleaved) {
    refuse(planned,
           fmt::format("the kernel interleaves gate and up, asked for is {}", planner::name(planned.strategy)));
  }
  if (planned.mma_rows != planner::MmaRows::weights || planned.epilogue != planner::Epilogue::simt ||
      planned.persistent) {
    refuse(planned,
           "it has weights along the rows, stores by its threads and takes one tile a block, so leave "
           "tokens_as_rows, tma and persistent out");
  }
  if (tile.weight_rows != 64 * planned.math_warpgroups) {
    refuse(planned, fmt::format("{} rows of weights are no 64 for each of {} warpgroups", tile.weight_rows,
                                planned.math_warpgroups));
  }
  if (std::find(token_counts.begin(), token_counts.end(), tile.tokens) == token_counts.end()) {
    refuse(planned, fmt::format("{} tokens, a tile has 8, 16, 32, 64, 128 or 256", tile.tokens));
  }
  if (tile.k != 2 * block_k && tile.k != 4 * block_k) {
    refuse(planned, fmt::format("{} along K a stage, it takes {} or {}", tile.k, 2 * block_k, 4 * block_k));
  }
  if (planned.split_k > 2 || planned.cluster != planned.split_k) {
    refuse(planned,
           fmt::format("cluster={} split_k={}: clusters are pairs that split K", planned.cluster, planned.split_k));
  }
}

}  // namespace

device_code::Config packed_config(const DualGemmProblem& problem, const planner::DualGemmConfig& planned) {
  require_supported(planned);
  device_code::Config config{.path = device_code::path_of(planned.numerics),
                             .math_warpgroups = planned.math_warpgroups,
                             .block_tokens = planned.tile.tokens,
                             .stages = planned.stages,
                             .split_k = planned.split_k,
                             .blocks_resident = planned.blocks_per_multiprocessor,
                             .loader_registers = planned.loader_registers,
                             .math_registers = planned.math_registers};
  config.blocks_per_slot = planned.tile.k / static_cast<int>(device_code::weight_block_k(config));
  config.overlap =
      device_code::usual_overlap(config.path, config.math_warpgroups, config.block_tokens, config.blocks_resident);
  return for_problem(config, problem);
}

planner::DualGemmConfig planned_config(const device_code::Config& config) {
  planner::DualGemmConfig planned;
  planned.tile = {64 * config.math_warpgroups, config.block_tokens,
                  config.blocks_per_slot * static_cast<int>(device_code::weight_block_k(config))};
  planned.numerics = config.path == device_code::Path::fast ? Numerics::fast : Numerics::exact;
  planned.stages = config.stages;
  planned.math_warpgroups = config.math_warpgroups;
  planned.cluster = planned.split_k = config.split_k;
  planned.blocks_per_multiprocessor = config.blocks_resident;
  planned.loader_registers = config.loader_registers;
  planned.math_registers = config.math_registers;
  planned.dependent_launch = true;
  return planned;
}

Numerics packing_numerics(const DualGemmOptions& options) {
  return options.knobs.empty() ? options.numerics : planner::parse_config(planner_words(options.knobs)).numerics;
}

device_code::Config choose_packed(const DualGemmProblem& problem, const std::string& knobs, int multiprocessors,
                                  Numerics numerics) {
  const planner::DualGemmConfig planned = planner::parse_config(knobs);
  if (knobs.empty() || names_numerics_alone(planned)) {
    const device_code::Path path = device_code::path_of(knobs.empty() ? numerics : planned.numerics);
    return for_problem(device_code::rank(path, problem.m, problem.n, problem.k, multiprocessors).front().config,
                       problem);
  }
  const device_code::Config config = packed_config(problem, planned);
  const int limit = device_spec("H200").shared_bytes_per_block;
  if (const int bytes = device_code::shared_bytes(config); bytes > limit) {
    refuse(planned, fmt::format("{} bytes of shared memory a block, {} is the most", bytes, limit));
  }
  return config;
}

}  // namespace thresher::ops
