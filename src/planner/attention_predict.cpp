#include <fmt/format.h>

#include <algorithm>

#include "planner/combine.hpp"
#include "planner/predict.hpp"

namespace thresher::planner {
namespace {

constexpr double element_bytes = 2;
constexpr double exchange_bytes_per_clock = 32;
/// Instructions that hiding a logit takes where a row does not see every key of a step.
constexpr double mask_instructions = 4;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool is_masked(const AttentionProblem& problem) {
  return problem.causal || problem.window_left >= 0 || problem.window_right >= 0;
}

/// Steps over the keys that the queries of one tile see.
std::int64_t steps_of_tile(const AttentionProblem& problem, const AttentionConfig& config, std::int64_t tile) {
  const std::int64_t first = tile * config.query_rows;
  const std::int64_t last = std::min(first + config.query_rows, problem.queries) - 1;
  const std::int64_t shift = problem.keys - problem.queries;
  const std::int64_t right = problem.causal ? 0 : problem.window_right;
  const bool is_open_left = problem.window_left < 0;
  const bool is_open_right = !problem.causal && problem.window_right < 0;
  const std::int64_t end = is_open_right ? problem.keys : std::min(problem.keys, last + shift + right + 1);
  const std::int64_t begin = is_open_left ? 0 : std::max<std::int64_t>(0, first + shift - problem.window_left);
  return end <= begin ? 0 : ceil_div(end, config.key_step) - begin / config.key_step;
}

/// The steps of the busiest multiprocessor, and how blocks lie on the machine.
struct Walk {
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;
  double steps = 0;
  double tiles = 0;  ///< of the busiest multiprocessor
};

/// Persistent blocks under a causal mask take the first and the last tile of queries, the second and the last but one,
/// …: all pairs have about the same number of keys.
Walk walk(const AttentionProblem& problem, const AttentionConfig& config, const DeviceSpec& device) {
  const std::int64_t tiles = ceil_div(problem.queries, config.query_rows);
  const bool folds = config.persistent && problem.causal && !problem.variable_length;
  const std::int64_t items = folds ? ceil_div(tiles, 2) : tiles;
  std::int64_t most = 0;
  std::int64_t all = 0;
  for (std::int64_t item = 0; item < items; ++item) {
    const std::int64_t other = tiles - 1 - item;
    const std::int64_t steps =
        steps_of_tile(problem, config, item) + (folds && other != item ? steps_of_tile(problem, config, other) : 0);
    most = std::max(most, steps);
    all += steps;
  }
  const std::int64_t heads = problem.batch * problem.heads;
  Walk out;
  out.blocks = ceil_div(heads * items * config.split_keys, config.cluster()) * config.cluster();
  const std::int64_t slots = device.resident_blocks(config.cluster(), 1);
  out.rounds = std::max<std::int64_t>(1, ceil_div(out.blocks, slots));
  // Equal blocks take whole rounds; of unequal ones the short fill what the long leave.
  const double whole = static_cast<double>(out.rounds * most);
  const double even = static_cast<double>(heads * all * config.split_keys) / static_cast<double>(slots);
  const bool is_equal = folds || !is_masked(problem);
  const double steps = is_equal ? whole : std::max(static_cast<double>(most), even);
  out.steps = std::max(1.0, steps / config.split_keys);
  out.tiles = static_cast<double>(out.rounds) * (folds ? 2 : 1);
  return out;
}

}  // namespace

Prediction predict(const AttentionProblem& problem, const AttentionConfig& config, const DeviceSpec& device,
                   const Calibration& calibration, Clocks clocks) {
  const double clock_ghz = device.clock_ghz(clocks);
  const double dim = static_cast<double>(problem.head_dim);
  const double rows = config.query_rows;
  const double step = config.key_step;

  Prediction out;
  out.calibrated = device.calibrated;
  const Walk walked = walk(problem, config, device);
  out.blocks = walked.blocks;
  out.rounds = walked.rounds;
  out.busy_share = static_cast<double>(out.blocks) / (static_cast<double>(out.rounds) * device.multiprocessors);
  out.useful_share = static_cast<double>(problem.queries) /
                     static_cast<double>(ceil_div(problem.queries, config.query_rows) * config.query_rows);

  const double matrix = 4 * rows * step * dim / device.ops_per_clock_16bit / calibration.matrix_efficiency;
  const double special = rows * step / device.special_per_clock;
  // A long row meets its mask in one or two of many steps; blocks that share few keys may hold more than there are.
  const bool is_short = walked.steps < 2 * config.stages;
  const bool hides = is_short && (is_masked(problem) || problem.keys % (config.key_step * config.stages) != 0);
  const double instructions = calibration.softmax_instructions + (hides ? mask_instructions : 0);
  const double softmax = std::max(special, rows * step * instructions / 128 / calibration.issue_efficiency);
  const Loads loads{.matrix = matrix,
                    .shared = 2 * step * dim * element_bytes * (1 + rows / 64) / device.shared_bytes_per_clock,
                    .issue = softmax,
                    .memory = 2 * step * dim * element_bytes / config.multicast / device.l2_bytes_per_clock_sm};
  const Combined each = combine(loads, calibration.softmax_loss);

  const bool one_shot = config.stages * config.split_keys >= ceil_div(problem.keys, config.key_step);
  const double latency = one_shot ? 0 : calibration.load_latency_clocks / std::max(1.0, config.stages - 0.5);
  const double compute_us = std::max(each.clocks, latency) * walked.steps / clock_ghz * 1e-3;
  const double bytes = element_bytes * dim * static_cast<double>(problem.batch) *
                       (2.0 * static_cast<double>(problem.heads * problem.queries) +
                        2.0 * static_cast<double>(problem.kv_heads * problem.keys));
  const double dram_us = bytes / (device.dram_bytes_per_us * calibration.dram_efficiency);

  out.parts.launch_us = config.dependent_launch ? device.launch_us / 2 : device.launch_us;
  out.parts.fill_us = calibration.attention_fill_us;
  out.parts.main_us = std::max(compute_us, dram_us);
  if (config.split_keys > 1) {
    out.parts.exchange_us = calibration.exchange_us + rows * dim * 4 / 2 / exchange_bytes_per_clock / clock_ghz * 1e-3;
  }
  out.parts.epilogue_us = walked.tiles * rows * dim * element_bytes / 24 / clock_ghz * 1e-3;
  const Bound inner = dram_us > compute_us || latency > each.clocks ? Bound::memory : each.bound;
  out.bound = out.parts.main_us < out.us() / 2                 ? Bound::launch
              : out.busy_share < 0.8 && inner != Bound::memory ? Bound::waves
                                                               : inner;
  out.why = fmt::format(
      "bound by {}: {} blocks in {} round{}; launch {:.1f}, fill {:.1f}, main loop {:.1f}, exchange {:.1f}, epilogue "
      "{:.1f} µs",
      name(out.bound), out.blocks, out.rounds, out.rounds == 1 ? "" : "s", out.parts.launch_us, out.parts.fill_us,
      out.parts.main_us, out.parts.exchange_us, out.parts.epilogue_us);
  return out;
}

}  // namespace thresher::planner
