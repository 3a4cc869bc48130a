#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/combine.hpp"
#include "planner/library_products.hpp"
#include "planner/predict.hpp"

namespace thresher::planner {
namespace {

constexpr double block_elements = 64.0 * 64.0;
/// Instructions a warp issues for a 64×64 block whose operand needs no conversion.
constexpr double plain_instructions = 10;
constexpr double epilogue_instructions = 14;  ///< an output, store not counted
constexpr double specials_an_output = 2;      ///< exponential and reciprocal
constexpr double simt_store_bytes_per_clock = 24;
constexpr double tma_store_bytes_per_clock = 48;
constexpr double tma_store_latency_clocks = 300;
constexpr double exchange_bytes_per_clock = 14;  ///< between the blocks of a cluster, each way
/// Bytes that the matrix unit reads for each that a copy or a thread moves in the same time: tiles of 128 × 96, whose
/// operands are 1.4 times what one rate for all would allow, were measured at the full matrix rate.
constexpr double matrix_read_factor = 2;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Work {
  const DualGemmProblem& problem;
  const DualGemmConfig& config;
  const DeviceSpec& device;
  const Calibration& calibration;
  MatrixType type;
};

/// Rows of the matrix product as the unit executes them.
int padded_rows(const Work& work) {
  const int granule = work.device.matrix_unit == MatrixUnit::wgmma ? 64 : 128;
  return static_cast<int>(ceil_div(work.config.mma_row_count(), granule)) * granule;
}

double matrix_clocks_per_step(const Work& work) {
  const double operations = 2.0 * padded_rows(work) * work.config.mma_column_count() * work.config.tile.k;
  return operations / work.device.ops_per_clock(work.type) / work.calibration.matrix_efficiency;
}

/// Bytes that pass through shared memory in one step: written by the copies, read by matrix unit and conversions.
double shared_clocks_per_step(const Work& work) {
  const DualGemmConfig& config = work.config;
  const double k = config.tile.k;
  const double element_bytes = stored_bits(work.type) / 8;
  const double stored_weights = config.slot_weight_rows() * k * stored_bits(work.problem.b) / 8;
  const bool converts = converts_weights(work.problem, work.device);
  const bool rows_in_registers = converts && config.mma_rows == MmaRows::weights;
  double bytes = stored_weights + config.tile.tokens * k * element_bytes;
  bytes += converts ? stored_weights : 0;
  const int row_blocks = padded_rows(work) / (work.device.matrix_unit == MatrixUnit::wgmma ? 64 : 128);
  double read = row_blocks * config.mma_column_count() * k * element_bytes;
  read += rows_in_registers ? 0 : padded_rows(work) * k * element_bytes;
  bytes += converts && !rows_in_registers ? config.slot_weight_rows() * k * element_bytes : 0;
  return (bytes + read / matrix_read_factor) / work.device.shared_bytes_per_clock;
}

double issue_clocks_per_step(const Work& work) {
  const DualGemmConfig& config = work.config;
  const Calibration& calibration = work.calibration;
  const double converting =
      work.type == MatrixType::fp8 ? calibration.fast_instructions : calibration.exact_instructions;
  const double weight_blocks = config.slot_weight_rows() * config.tile.k / block_elements;
  const double token_blocks = config.tile.tokens * config.tile.k / block_elements;
  const double instructions =
      weight_blocks * (converts_weights(work.problem, work.device) ? converting : plain_instructions) +
      (converts_tokens(work.problem, work.device) ? token_blocks * converting : 0);
  return instructions / calibration.issue_efficiency;
}

/// What one multiprocessor draws from L2 in one step of one block.
double load_clocks_per_step(const Work& work) {
  const DualGemmConfig& config = work.config;
  const double weights = config.slot_weight_rows() * config.tile.k * stored_bits(work.problem.b) / 8;
  const double tokens = config.tile.tokens * config.tile.k * stored_bits(work.type) / 8;
  const double sharers = static_cast<double>(config.cluster) / config.split_k;
  // Neighbours have the larger of the two in common.
  const double bytes = std::min(weights, tokens) + std::max(weights, tokens) / sharers;
  return bytes / work.device.l2_bytes_per_clock_sm;
}

double compulsory_bytes(const DualGemmProblem& problem) {
  const double weights = 2.0 * static_cast<double>(problem.n * problem.k) * stored_bits(problem.b) / 8;
  const double tokens = static_cast<double>(problem.m * problem.k) * stored_bits(problem.a) / 8;
  const double out = static_cast<double>(problem.m * problem.n) * bits(problem.out) / 8;
  return weights + tokens + out;
}

struct Grid {
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;  ///< tiles on the busiest multiprocessor
  std::int64_t steps = 0;   ///< of one tile
  double busy_share = 1;
  double useful_share = 1;
  int resident = 1;  ///< blocks side by side on the busiest multiprocessor
};

Grid grid_of(const Work& work) {
  const DualGemmProblem& problem = work.problem;
  const DualGemmConfig& config = work.config;
  Grid grid;
  const std::int64_t token_tiles = ceil_div(problem.m, config.tile.tokens);
  const std::int64_t weight_tiles = ceil_div(2 * problem.n, config.tile.weight_rows);
  grid.blocks = ceil_div(token_tiles * weight_tiles * config.split_k, config.cluster) * config.cluster;
  const std::int64_t slots =
      work.device.resident_blocks(config.cluster, config.blocks_per_multiprocessor) / config.blocks_per_multiprocessor;
  grid.rounds = ceil_div(grid.blocks, slots);
  grid.resident = static_cast<int>(std::min<std::int64_t>(grid.rounds, config.blocks_per_multiprocessor));
  grid.steps = ceil_div(ceil_div(problem.k, config.tile.k), config.split_k) * config.passes();
  grid.busy_share = static_cast<double>(grid.blocks) / (static_cast<double>(grid.rounds) * work.device.multiprocessors);
  const double computed = static_cast<double>(token_tiles * weight_tiles) * padded_rows(work) *
                          config.mma_column_count() * config.passes() *
                          static_cast<double>(ceil_div(problem.k, config.tile.k) * config.tile.k);
  grid.useful_share = 2.0 * static_cast<double>(problem.m * problem.n * problem.k) / computed;
  return grid;
}

double epilogue_clocks(const Work& work) {
  const DualGemmConfig& config = work.config;
  const double outputs = config.tile.weight_rows / 2.0 * config.tile.tokens / config.split_k;
  const double issue = outputs * epilogue_instructions / 128 / work.calibration.issue_efficiency;
  const double special = outputs * specials_an_output / work.device.special_per_clock;
  const double bytes = outputs * bits(work.problem.out) / 8;
  const double store = config.epilogue == Epilogue::tma ? bytes / tma_store_bytes_per_clock + tma_store_latency_clocks
                                                        : bytes / simt_store_bytes_per_clock;
  return std::max(issue, special) + store;
}

double exchange_us(const Work& work, double clock_ghz) {
  if (work.config.split_k == 1) {
    return 0;
  }
  const double accumulator_bytes = 4.0 * work.config.tile.weight_rows * work.config.tile.tokens;
  const double sent = accumulator_bytes * (work.config.split_k - 1) / work.config.split_k;
  return work.calibration.exchange_us + sent / exchange_bytes_per_clock / clock_ghz * 1e-3;
}

/// The epilogue is hidden where another tile's products run beside it.
double epilogue_us(const Work& work, const Grid& grid, double clock_ghz) {
  const double one = epilogue_clocks(work) / clock_ghz * 1e-3;
  const bool overlapped = work.config.strategy == Strategy::pingpong || grid.resident > 1;
  return overlapped ? one : one * static_cast<double>(grid.rounds);
}

struct MainLoop {
  double us = 0;
  Bound bound = Bound::matrix;
};

/// What stays visible of the shorter of converting and multiplying where a block does them more or less in turns; 0
/// where the next block of weights is converted beside the products of the last.
double turns_loss(const Work& work) {
  if (!converts_weights(work.problem, work.device) || work.config.mma_rows != MmaRows::weights) {
    return 0;
  }
  const bool shares = work.config.blocks_per_multiprocessor > 1;  // registers for one fragment
  return shares ? work.calibration.turns_loss : work.type == MatrixType::fp8 ? work.calibration.fast_loss : 0;
}

Combined clocks_per_step(const Work& work, const Grid& grid) {
  const Loads loads{.matrix = matrix_clocks_per_step(work),
                    .shared = shared_clocks_per_step(work),
                    .issue = issue_clocks_per_step(work),
                    .memory = load_clocks_per_step(work)};
  // Blocks side by side hide each other's losses.
  const Combined together = combine(loads, work.calibration.overlap_loss / grid.resident);
  const Combined in_turns = combine({.matrix = loads.matrix, .issue = loads.issue}, turns_loss(work));
  return in_turns.clocks > together.clocks ? in_turns : together;
}

MainLoop main_loop(const Work& work, const Grid& grid, double clock_ghz) {
  const Combined step = clocks_per_step(work, grid);
  // A slot is given back a step late, and one is always being read: the copies of the others must cover the latency.
  const double in_flight = std::max(1.0, work.config.stages - 1.5) * grid.resident;
  const double latency = work.calibration.load_latency_clocks / in_flight;
  const double clocks = std::max(step.clocks, latency) * static_cast<double>(grid.steps * grid.rounds);
  const double compute_us = clocks / clock_ghz * 1e-3;
  const double dram_us =
      compulsory_bytes(work.problem) / (work.device.dram_bytes_per_us * work.calibration.dram_efficiency);
  if (dram_us > compute_us) {
    return {dram_us, Bound::memory};
  }
  return {compute_us, latency > step.clocks ? Bound::memory : step.bound};
}

Bound final_bound(const Prediction& prediction, Bound inner) {
  if (prediction.parts.main_us < prediction.us() / 2) {
    return Bound::launch;
  }
  const bool idle = prediction.busy_share < 0.8 && inner != Bound::memory;
  return idle ? Bound::waves : inner;
}

std::string reason(const Prediction& prediction, const DeviceSpec& device) {
  const TimeParts& parts = prediction.parts;
  std::string out = fmt::format(
      "bound by {}: {} blocks in {} round{} on {} multiprocessors ({:.0f} % busy, {:.0f} % of the products useful); "
      "launch {:.1f}, fill {:.1f}, main loop {:.1f}, exchange {:.1f}, epilogue {:.1f} µs",
      name(prediction.bound), prediction.blocks, prediction.rounds, prediction.rounds == 1 ? "" : "s",
      device.multiprocessors, 100 * prediction.busy_share, 100 * prediction.useful_share, parts.launch_us,
      parts.fill_us, parts.main_us, parts.exchange_us, parts.epilogue_us);
  return prediction.calibrated ? out : out + fmt::format("; never measured on a {}", device.name);
}

}  // namespace

double pass_us(double bytes, const DeviceSpec& device, const Calibration& calibration) {
  return calibration.fill_us + bytes / (device.dram_bytes_per_us * calibration.dram_efficiency);
}

double floor_us(const DualGemmProblem& problem, MatrixType type, const DeviceSpec& device) {
  const double operations = 4.0 * static_cast<double>(problem.m * problem.n) * static_cast<double>(problem.k);
  const double rate = device.multiprocessors * device.ops_per_clock(type) * device.max_clock_ghz * 1e3;
  return std::max(operations / rate, compulsory_bytes(problem) / device.dram_bytes_per_us);
}

Prediction predict(const DualGemmProblem& problem, const DualGemmConfig& config, const DeviceSpec& device,
                   const Calibration& calibration, Clocks clocks) {
  if (config.strategy == Strategy::two_pass) {
    return predict_library(problem, device, calibration, clocks);
  }
  const Work work{problem, config, device, calibration, matrix_type(problem, config, device)};
  const Grid grid = grid_of(work);
  double clock_ghz = device.clock_ghz(clocks);
  MainLoop main = main_loop(work, grid, clock_ghz);
  if (main.bound != Bound::matrix) {  // a card gets hot from products alone
    clock_ghz = device.burst_clock_ghz;
    main = main_loop(work, grid, clock_ghz);
  }
  Prediction out;
  out.blocks = grid.blocks;
  out.rounds = grid.rounds;
  out.busy_share = grid.busy_share;
  out.useful_share = grid.useful_share;
  out.calibrated = device.calibrated;
  out.parts.launch_us = device.launch_us;
  const std::int64_t fills = config.persistent ? 1 : ceil_div(grid.rounds, config.blocks_per_multiprocessor);
  const double saved = config.dependent_launch && main.bound != Bound::matrix ? calibration.dependent_launch_us : 0;
  out.parts.fill_us = std::max(0.0, calibration.fill_us * static_cast<double>(fills) - saved);
  out.parts.main_us = main.us;
  out.parts.exchange_us = exchange_us(work, clock_ghz);
  out.parts.epilogue_us = epilogue_us(work, grid, clock_ghz);
  out.bound = final_bound(out, main.bound);
  out.why = reason(out, device);
  return out;
}

}  // namespace thresher::planner
