#include <fmt/format.h>

#include <algorithm>

#include "planner/combine.hpp"
#include "planner/predict.hpp"

namespace thresher::planner {
namespace {

constexpr double element_bytes = 2;
constexpr double exchange_bytes_per_clock = 32;
/// Of the shorter of products and softmax that stays visible: with one warpgroup they follow one another, with more
/// one's softmax hides under the other's products.
constexpr double serial_share_one_warpgroup = 0.6;
constexpr double serial_share = 0.2;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Share of the key steps that a causal mask or a window leaves, whole steps counted.
double visible_share(const AttentionProblem& problem, const AttentionConfig& config) {
  const double keys = static_cast<double>(problem.keys);
  double share = 1;
  if (problem.causal && problem.queries > 1) {
    const double queries = static_cast<double>(problem.queries);
    const double seen = keys - std::min(queries, keys) / 2 + config.key_step / 2.0;
    share = std::min(1.0, seen / keys);
  }
  if (problem.window_left >= 0) {
    const double right = problem.causal ? 0 : std::max<double>(0, static_cast<double>(problem.window_right));
    const double width = static_cast<double>(problem.window_left) + right + config.query_rows + config.key_step;
    share = std::min(share, std::max(width, 1.0) / keys);
  }
  return share;
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
  const std::int64_t tiles = problem.batch * problem.heads * ceil_div(problem.queries, config.query_rows);
  out.blocks = ceil_div(tiles * config.split_keys, config.cluster()) * config.cluster();
  const std::int64_t slots = device.resident_blocks(config.cluster(), 1);
  out.rounds = ceil_div(out.blocks, slots);
  out.busy_share = static_cast<double>(out.blocks) / (static_cast<double>(out.rounds) * device.multiprocessors);
  out.useful_share = static_cast<double>(problem.queries) /
                     static_cast<double>(ceil_div(problem.queries, config.query_rows) * config.query_rows);

  const double matrix = 4 * rows * step * dim / device.ops_per_clock_16bit / calibration.matrix_efficiency;
  const double special = rows * step / device.special_per_clock;
  const double softmax =
      std::max(special, rows * step * calibration.softmax_instructions / 128 / calibration.issue_efficiency);
  const Loads loads{.matrix = matrix,
                    .shared = 2 * step * dim * element_bytes * (1 + rows / 64) / device.shared_bytes_per_clock,
                    .issue = softmax,
                    .memory = 2 * step * dim * element_bytes / config.multicast / device.l2_bytes_per_clock_sm};
  const double loss = config.consumer_warpgroups == 1 ? serial_share_one_warpgroup : serial_share;
  const Combined each = combine(loads, loss);

  const double visible = visible_share(problem, config);
  const double steps =
      std::max(1.0, static_cast<double>(ceil_div(problem.keys, config.key_step)) * visible / config.split_keys);
  // Rounds of unequal length (causal) even out over a persistent or a long grid.
  const double even_rounds = static_cast<double>(out.blocks) / static_cast<double>(slots);
  const bool evens_out = problem.causal || config.persistent;
  const double rounds = evens_out ? std::max(1.0, even_rounds * 1.03) : static_cast<double>(out.rounds);
  const bool one_shot = config.stages * config.split_keys >= ceil_div(problem.keys, config.key_step);
  const double latency = one_shot ? 0 : calibration.load_latency_clocks / std::max(1.0, config.stages - 0.5);
  const double compute_us = std::max(each.clocks, latency) * steps * rounds / clock_ghz * 1e-3;
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
  out.parts.epilogue_us = rows * dim * element_bytes / 24 / clock_ghz * 1e-3;
  const Bound inner = dram_us > compute_us || latency > each.clocks ? Bound::memory : each.bound;
  out.bound = out.parts.main_us < out.us() / 2                               ? Bound::launch
              : !evens_out && out.busy_share < 0.8 && inner != Bound::memory ? Bound::waves
                                                                             : inner;
  out.why = fmt::format(
      "bound by {}: {} blocks in {} round{}; launch {:.1f}, fill {:.1f}, main loop {:.1f}, exchange {:.1f}, epilogue "
      "{:.1f} µs",
      name(out.bound), out.blocks, out.rounds, out.rounds == 1 ? "" : "s", out.parts.launch_us, out.parts.fill_us,
      out.parts.main_us, out.parts.exchange_us, out.parts.epilogue_us);
  return out;
}

}  // namespace thresher::planner
