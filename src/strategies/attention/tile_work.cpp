#include "strategies/attention/tile_work.hpp"

#include <algorithm>

#include "core/integers.hpp"

namespace thresher::strategies::attention {
namespace {

constexpr double element_bytes = 2;  ///< of outputs, and of what is multiplied in 16 bits
/// The rate of partial results between blocks of a cluster, as measured.
constexpr double exchange_bytes_per_clock = 32;
/// For each FP8 element, counted in the machine code of the slower conversion, to bfloat16.
constexpr double widening_instructions = 3;
/// For each FP8 value that is transposed, counted in the machine code.
constexpr double turning_instructions = 1;
constexpr double lanes = 128;  ///< of a multiprocessor's four schedulers

bool is_masked(const AttentionProblem& problem) {
  return problem.causal || problem.window_left >= 0 || problem.window_right >= 0;
}

/// Steps over the keys that the queries of one tile see.
std::int64_t steps_of_tile(const AttentionProblem& problem, const TileWork& tile, std::int64_t index) {
  const std::int64_t first = index * tile.query_rows;
  const std::int64_t last = std::min(first + tile.query_rows, problem.queries) - 1;
  const std::int64_t shift = problem.keys - problem.queries;
  const std::int64_t right = problem.causal ? 0 : problem.window_right;
  const bool is_open_left = problem.window_left < 0;
  const bool is_open_right = !problem.causal && problem.window_right < 0;
  const std::int64_t end = is_open_right ? problem.keys : std::min(problem.keys, last + shift + right + 1);
  const std::int64_t begin = is_open_left ? 0 : std::max<std::int64_t>(0, first + shift - problem.window_left);
  return end <= begin ? 0 : ceil_div(end, tile.key_step) - begin / tile.key_step;
}

/// The work of the blocks of one head, before its keys are split.
struct Items {
  std::int64_t count = 0;
  std::int64_t longest = 0;  ///< steps
  std::int64_t all = 0;      ///< steps
};

Items items_of(const AttentionProblem& problem, const TileWork& tile, bool pairs) {
  const std::int64_t tiles = ceil_div(problem.queries, tile.query_rows);
  Items items{.count = pairs ? ceil_div(tiles, 2) : tiles};
  for (std::int64_t item = 0; item < items.count; ++item) {
    const std::int64_t other = tiles - 1 - item;
    const std::int64_t steps =
        steps_of_tile(problem, tile, item) + (pairs && other != item ? steps_of_tile(problem, tile, other) : 0);
    items.longest = std::max(items.longest, steps);
    items.all += steps;
  }
  return items;
}

/// The columns of a key and its value.
double columns_of(const AttentionProblem& problem) {
  return static_cast<double>(problem.head_dim + effective_value_dim(problem));
}

double key_element_bytes(const AttentionProblem& problem) { return bits(effective_kv_format(problem)) / 8.0; }
double query_element_bytes(const AttentionProblem& problem) { return bits(effective_q_format(problem)) / 8.0; }

/// FP8 products: values are written and read once more, as they are transposed, and threads add their product to the
/// output.
StepWork step_of_codes(const AttentionProblem& problem, const TileWork& tile) {
  const double rows = tile.query_rows;
  const double step = tile.key_step;
  const double elements = step * columns_of(problem);
  const auto width = static_cast<double>(effective_value_dim(problem));
  return {.matrix_type = MatrixType::fp8,
          .matrix_operations = 2 * rows * elements,
          .shared_bytes = elements * (1 + rows / 64) + 2 * step * width,
          .instructions = (step * turning_instructions + rows) * width / lanes,
          .logits = rows * step,
          .l2_bytes = elements / tile.multicast};
}

/// Each key and value is written once and read by each 64 rows. FP8 values are written and read before that, by threads
/// that share the schedulers with those of the softmax.
StepWork step_of(const AttentionProblem& problem, const TileWork& tile) {
  if (query_element_bytes(problem) < element_bytes) {
    return step_of_codes(problem, tile);
  }
  const double rows = tile.query_rows;
  const double step = tile.key_step;
  const double elements = step * columns_of(problem);
  const bool widens = key_element_bytes(problem) < element_bytes;
  return {.matrix_operations = 2 * rows * elements,
          .shared_bytes = elements * (element_bytes * (1 + rows / 64) + (widens ? 2 * key_element_bytes(problem) : 0)),
          .instructions = widens ? elements * widening_instructions / lanes : 0,
          .logits = rows * step,
          .l2_bytes = elements * key_element_bytes(problem) / tile.multicast};
}

double compulsory_bytes(const AttentionProblem& problem) {
  const auto rows = static_cast<double>(problem.batch * problem.heads * problem.queries);
  const auto keys = static_cast<double>(problem.batch * problem.kv_heads * problem.keys);
  return rows * (static_cast<double>(problem.head_dim) * query_element_bytes(problem) +
                 static_cast<double>(effective_value_dim(problem)) * element_bytes) +
         columns_of(problem) * key_element_bytes(problem) * keys;
}

}  // namespace

std::vector<AttentionProblem> assumed_sequences(const AttentionProblem& problem) {
  const auto alike = [&](std::int64_t batch, std::int64_t queries) {
    AttentionProblem sequences = problem;
    sequences.batch = batch;
    sequences.queries = queries;
    sequences.variable_length = false;
    return sequences;
  };
  if (problem.batch == 0) {
    return {};
  }
  if (problem.queries % problem.batch == 0) {
    return {alike(problem.batch, problem.queries / problem.batch)};
  }
  const std::int64_t others = problem.batch - 1;
  const std::int64_t most = std::max<std::int64_t>(1, std::min(problem.keys, problem.queries - others));
  return {alike(others, ceil_div(problem.queries - most, others)), alike(1, most)};
}

TiledKernel tiled_kernel(const AttentionProblem& problem, const TileWork& tile) {
  const bool pairs = tile.pairs_tiles && problem.causal && !problem.variable_length && problem.page_size == 0;
  const Items items = items_of(problem, tile, pairs);
  const std::int64_t heads = problem.batch * problem.heads;
  const int cluster = tile.split_keys * tile.multicast;
  const double tile_outputs = static_cast<double>(tile.query_rows) * static_cast<double>(effective_value_dim(problem));
  TiledKernel kernel;
  kernel.step = step_of(problem, tile);
  kernel.epilogue.store_bytes = tile_outputs * element_bytes;
  kernel.blocks = ceil_div(heads * items.count * tile.split_keys, cluster) * cluster;
  kernel.cluster = cluster;
  kernel.steps = static_cast<double>(items.longest) / tile.split_keys;
  kernel.all_steps = is_masked(problem) && !pairs ? static_cast<double>(heads * items.all) : 0;
  kernel.tiles_per_block = pairs ? 2 : 1;
  const bool asks_at_once = tile.stages * tile.split_keys >= ceil_div(problem.keys, tile.key_step);
  kernel.loads_in_flight = asks_at_once ? 0 : std::max(1.0, tile.stages - 0.5);
  // Blocks that share few keys may hold more than there are.
  kernel.hides_logits = is_masked(problem) || problem.keys % (std::int64_t{tile.key_step} * tile.stages) != 0;
  kernel.stages = tile.stages;
  kernel.exchange_clocks = tile.split_keys > 1 ? tile_outputs * 4 / 2 / exchange_bytes_per_clock : 0;
  kernel.hides_exchanges = true;
  kernel.persistent = tile.pairs_tiles;
  kernel.dependent_launch = tile.dependent_launch;
  kernel.dram_bytes = compulsory_bytes(problem);
  kernel.useful_share = static_cast<double>(problem.queries) /
                        static_cast<double>(ceil_div(problem.queries, tile.query_rows) * tile.query_rows);
  return kernel;
}

}  // namespace thresher::strategies::attention
