#include "strategies/attention/stream_k/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/attention/launch.hpp"
#include "strategies/attention/stream_k/params.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/launch_tools.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamKConfig;

constexpr std::uint32_t merging_threads = 128;
constexpr std::int64_t rows_of_merging_block = 4;

static_assert(lengths_clamped == AttentionStatus::lengths && pages_clamped == AttentionStatus::pages &&
              offsets_clamped == AttentionStatus::offsets);

// Both launches move an item as two vectors of four.
static_assert(sizeof(SplitItem) == 32 && offsetof(SplitItem, parts) == 0 && offsetof(SplitItem, batch) == 4 &&
              offsetof(SplitItem, kv_head) == 8 && offsetof(SplitItem, first_query) == 12 &&
              offsetof(SplitItem, queries) == 16 && offsetof(SplitItem, keys) == 20 &&
              offsetof(SplitItem, first_row) == 24 && offsetof(SplitItem, rows) == 28);

/// Pieces of the workspace.
struct Pieces {
  /// The first launch writes them for the second.
  struct Split {
    std::size_t block_count;
    std::size_t items;
    std::size_t parts;
    std::size_t part_sums;
  };
  std::size_t status;
  std::optional<Split> split;  ///< not with clusters
};

Pieces add_pieces(PlannedCall& call, const StreamKConfig& config, std::int64_t blocks) {
  const auto rows = static_cast<std::size_t>(2 * blocks * config.tile_rows());
  Pieces pieces{};
  pieces.status = add_status(call, static_cast<std::size_t>(blocks * config.loader_warps()));
  if (!config.is_clustered()) {
    Pieces::Split& own = pieces.split.emplace();
    own.block_count = add_piece(call, "number of blocks", 4);
    own.items = add_piece(call, "items left", static_cast<std::size_t>(blocks) * sizeof(SplitItem));
    own.parts = add_piece(call, "parts", rows * static_cast<std::size_t>(config.value_dim) * sizeof(float));
    own.part_sums = add_piece(call, "sums of parts", rows * 2 * sizeof(float));
  }
  return pieces;
}

int box_rows(const AttentionProblem& problem, const StreamKConfig& config) {
  return config.boxes ? page_box_rows(problem, config.keys()) : config.keys();
}

StreamKParams known_params(const AttentionProblem& problem, const StreamKConfig& config, int blocks,
                           const QueryRange& queries) {
  StreamKParams params{};
  params.max_blocks = blocks;
  params.call = params_of(problem, {.tile_rows = config.rows}, queries);
  params.head_sets = static_cast<int>(problem.kv_heads / config.heads);
  params.group = divisor(problem.heads / problem.kv_heads);
  params.call.paging.box_shift = box_shift(box_rows(problem, config));
  return params;
}

/// A warp's work on a chunk of keys: two products of 16 keys, and the copies of keys and values.
Expectations expectations(const StreamKConfig& config) {
  return {.matrix_kind = "HMMA",
          .min_matrix_instructions = (config.head_dim + config.value_dim) / 16 * (config.rows / 8),
          .min_tma_loads = config.boxes ? 2 : 0};
}

using BindParams = std::function<void(const CallTensors&, LaunchArguments&)>;

KernelLaunch multiplying_launch(const AttentionProblem& problem, const StreamKConfig& config, bool dependent, int grid,
                                const BindParams& bind) {
  KernelLaunch launch;
  launch.title = "attend to chunks";
  launch.expression = stream_k_expression(config, formats_of(problem), logits_of(problem));
  launch.program = device_program("stream_k", "stream_k/device/kernel.hpp", {launch.expression});
  launch.block.x = static_cast<std::uint32_t>(config.threads());
  launch.cluster.x = static_cast<std::uint32_t>(config.cluster);
  launch.shared_bytes = config.shared_bytes(narrow(problem.batch));
  launch.dependent = dependent;
  launch.expected = expectations(config);
  launch.persistent = !config.is_clustered();
  launch.bind = [=](const CallTensors& tensors, LaunchArguments& out) {
    bind(tensors, out);
    out.grid.x = narrow(grid);
    if (config.boxes) {
      const int rows = box_rows(problem, config);
      out.add_map(offsetof(StreamKParams, call) + offsetof(Params, key_map),
                  page_map(tensors.tensors[key_index], rows, all_panels, config.heads));
      out.add_map(offsetof(StreamKParams, call) + offsetof(Params, value_map),
                  page_map(tensors.tensors[value_index], rows, all_panels, config.heads));
    }
    return true;
  };
  return launch;
}

KernelLaunch merging_launch(const AttentionProblem& problem, const StreamKConfig& config, int grid,
                            const BindParams& bind) {
  KernelLaunch launch;
  launch.title = "merge parts";
  launch.expression = merge_parts_expression(config, formats_of(problem), logits_of(problem));
  launch.block.x = merging_threads;
  launch.dependent = true;
  launch.persistent = true;
  launch.expected.uses_shared_memory = false;
  launch.bind = [=](const CallTensors& tensors, LaunchArguments& out) {
    bind(tensors, out);
    out.grid.x = narrow(ceil_div(grid * config.tile_rows(), rows_of_merging_block));
    return true;
  };
  return launch;
}

}  // namespace

std::int64_t max_tiles(const AttentionProblem& problem, const StreamKConfig& config) {
  const std::int64_t rows = problem.queries * (problem.heads / problem.kv_heads);
  const std::int64_t tiles = (rows + problem.batch * (config.rows - 1)) / config.rows;
  const std::int64_t fewest = problem.batch > 0 ? 1 : 0;  // so that lengths are checked even without queries
  return std::max(tiles, fewest) * (problem.kv_heads / config.heads);
}

std::int64_t max_chunks(const AttentionProblem& problem, const StreamKConfig& config) {
  return std::max<std::int64_t>(1, ceil_div(problem.keys, config.keys()));
}

double max_units(const AttentionProblem& problem, const StreamKConfig& config) {
  return static_cast<double>(max_tiles(problem, config)) * static_cast<double>(max_chunks(problem, config));
}

void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const StreamKConfig& config, bool dependent,
                  int blocks, const QueryRange& queries) {
  const int grid = config.is_clustered() ? static_cast<int>(max_tiles(problem, config) * config.cluster)
                                         : static_cast<int>(std::min<double>(blocks, max_units(problem, config)));
  const Pieces pieces = add_pieces(call, config, grid);
  const BindParams bind = [problem, known = known_params(problem, config, grid, queries), offsets = call.workspace,
                           pieces](const CallTensors& tensors, LaunchArguments& out) {
    StreamKParams params = known;
    add_tensors(params.call, problem, tensors);
    const auto piece = [&](std::size_t index) { return device_address(tensors.workspace) + offsets[index].offset; };
    params.call.paging.status = piece(pieces.status);
    if (pieces.split) {
      params.block_count = piece(pieces.split->block_count);
      params.split_items = piece(pieces.split->items);
      params.parts = piece(pieces.split->parts);
      params.part_sums = piece(pieces.split->part_sums);
    }
    out.set(params);
  };
  KernelLaunch multiply = multiplying_launch(problem, config, dependent, grid, bind);
  multiply.accesses = tensor_accesses();
  multiply.accesses.push_back({Access::Memory::workspace, pieces.status, Access::Use::writes});
  if (!pieces.split) {
    call.steps.emplace_back(std::move(multiply));
    return;
  }
  KernelLaunch merge = merging_launch(problem, config, grid, bind);
  multiply.program.kernels.push_back(merge.expression);
  merge.program = multiply.program;
  merge.accesses = tensor_accesses();
  for (const std::size_t piece :
       {pieces.split->block_count, pieces.split->items, pieces.split->parts, pieces.split->part_sums}) {
    multiply.accesses.push_back({Access::Memory::workspace, piece, Access::Use::writes});
    merge.accesses.push_back({Access::Memory::workspace, piece, Access::Use::depends_on_previous});
  }
  call.steps.emplace_back(std::move(multiply));
  call.steps.emplace_back(std::move(merge));
}

}  // namespace thresher::strategies::attention
