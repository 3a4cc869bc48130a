#include <algorithm>

#include "planner/predict.hpp"
#include "strategies/dual_gemm/host/tile_work.hpp"
#include "strategies/dual_gemm/two_pass/host/work.hpp"

namespace thresher::planner {
namespace {

strategies::WorkModel work_of(const DualGemmProblem& problem, const DualGemmConfig& config, const DeviceSpec& device) {
  namespace dual_gemm = strategies::dual_gemm;
  if (config.strategy == Strategy::two_pass) {
    return dual_gemm::two_pass::work(problem);
  }
  const MatrixType type = matrix_type(problem, config, device);
  const bool converts = converts_weights(problem, device);
  const bool weights_are_rows = config.mma_rows == MmaRows::weights;
  const bool shares = config.blocks_per_multiprocessor > 1;  // registers for one fragment
  strategies::TiledKernel kernel = dual_gemm::tiled_kernel(
      problem, {.weight_rows = config.tile.weight_rows,
                .slot_weight_rows = config.slot_weight_rows(),
                .tokens = config.tile.tokens,
                .k = config.tile.k,
                .walks = config.passes(),
                .weights_are_rows = weights_are_rows,
                .row_granule = device.matrix_unit == MatrixUnit::wgmma ? 64 : 128,
                .type = type,
                .converts_weights = converts,
                .converts_in_turns = converts && weights_are_rows && (shares || type == MatrixType::fp8),
                .stages = config.stages,
                .cluster = config.cluster,
                .split_k = config.split_k,
                .blocks_per_multiprocessor = config.blocks_per_multiprocessor,
                .persistent = config.persistent,
                .copy_engine_stores = config.epilogue == Epilogue::tma,
                .hides_epilogue = config.strategy == Strategy::pingpong,
                .dependent_launch = config.dependent_launch});
  if (converts_tokens(problem, device)) {
    kernel.step.converted_blocks += config.tile.tokens * config.tile.k / (64.0 * 64.0);
  }
  return {{kernel}};
}

}  // namespace

double pass_us(double bytes, const DeviceSpec& device, const Calibration& calibration) {
  return calibration.fill_us + bytes / (device.dram_bytes_per_us * calibration.dram_efficiency);
}

double floor_us(const DualGemmProblem& problem, MatrixType type, const DeviceSpec& device) {
  const double operations = 4.0 * static_cast<double>(problem.m * problem.n) * static_cast<double>(problem.k);
  const double rate = device.multiprocessors * device.ops_per_clock(type) * device.max_clock_ghz * 1e3;
  return std::max(operations / rate, strategies::dual_gemm::compulsory_bytes(problem) / device.dram_bytes_per_us);
}

Prediction predict(const DualGemmProblem& problem, const DualGemmConfig& config, const DeviceSpec& device,
                   const Calibration& calibration, Clocks clocks) {
  return predict(work_of(problem, config, device), device, calibration, clocks);
}

}  // namespace thresher::planner
