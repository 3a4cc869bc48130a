#include "strategies/attention/stream_k/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/integers.hpp"
#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/stream_k/params.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/attention/tile_work.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamKConfig;
using Config = Launched<StreamKConfig>;

/// The maximum of a call's tiles of query rows; a call with one sequence has exactly as many. Each sequence may have a
/// tile that lacks rows, and no query brings more tiles than it would alone. Sequences with more than `most` queries
/// have none.
std::int64_t max_tiles(const AttentionProblem& problem, const StreamKConfig& config, int most = QueryRange{}.max) {
  const std::int64_t group = problem.heads / problem.kv_heads;
  const std::int64_t queries = std::min(problem.queries, size_product(problem.batch, most));
  const std::int64_t tiles = std::min((queries * group + problem.batch * (config.rows - 1)) / config.rows,
                                      queries * ceil_div(group, std::int64_t{config.rows}));
  const std::int64_t fewest = problem.batch > 0 ? 1 : 0;  // so that lengths are checked even without queries
  return std::max(tiles, fewest) * (problem.kv_heads / config.heads);
}

/// The maximum of a tile's chunks of keys.
std::int64_t max_chunks(const AttentionProblem& problem, const StreamKConfig& config) {
  return std::max<std::int64_t>(1, ceil_div(problem.keys, config.keys()));
}

/// The maximum of a call's chunks of keys, over all tiles.
double max_units(const AttentionProblem& problem, const StreamKConfig& config) {
  return static_cast<double>(max_tiles(problem, config)) * static_cast<double>(max_chunks(problem, config));
}

/// The clusters of a call: one for each tile where that is asked for. Else as many as are resident at once, unless each
/// would have more tiles than it keeps track of.
std::int64_t max_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device,
                          int max_queries = QueryRange{}.max) {
  constexpr std::int64_t tiles_of_cluster = 32;
  const std::int64_t tiles = max_tiles(problem, config, max_queries);
  if (config.single_tiles) {
    return tiles;
  }
  const std::int64_t resident = device.resident_blocks(config.cluster, 1) / config.cluster;
  return std::min(tiles, std::max(resident, ceil_div(tiles, tiles_of_cluster)));
}

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

/// Adds workspace and launches: two, or one with clusters.
void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const Config& config, const DeviceSpec& device,
                  const QueryRange& queries) {
  const bool dependent = config.dependent_launch;
  const int grid = config.is_clustered()
                       ? static_cast<int>(max_clusters(problem, config, device, queries.max) * config.cluster)
                       : static_cast<int>(std::min<double>(device.multiprocessors, max_units(problem, config)));
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

const KnobTable<Config>& stream_k_knobs() {
  static const KnobTable<Config> table{
      "thresher::pipeline::attention::StreamKConfig",
      {from_problem(number<Config>("head_dim", &StreamKConfig::head_dim, {}, "")),
       from_problem(number<Config>("value_dim", &StreamKConfig::value_dim, {}, "")),
       number<Config>("rows", &StreamKConfig::rows, {8, 16, 32}, "query rows of a tile, of all heads of a group"),
       number<Config>("warps", &StreamKConfig::warps, {4, 8}, "warps that multiply, 16 keys of a chunk each"),
       number<Config>("stages", &StreamKConfig::stages, {2, 3, 4, 5, 6, 7, 8}, "chunks that are under way"),
       from_problem(number<Config>("key_bytes", &StreamKConfig::key_bytes, {}, "")),
       flag<Config>("boxes", &StreamKConfig::boxes, "pages come by TMA, which takes pages of 8 rows"),
       number<Config>("least_chunks", &StreamKConfig::least_chunks, {1, 2, 4, 8},
                      "of keys that a block takes where it takes any"),
       flag<Config>("aligned", &StreamKConfig::aligned,
                    "of tiles with as many chunks each blocks take whole ones, or have one of their own to share"),
       number<Config>("heads", &StreamKConfig::heads, {1, 2},
                      "heads of keys that a chunk has: narrow rows come with those of the head beside them"),
       number<Config>("cluster", &StreamKConfig::cluster, {1, 2, 4, 8, 16},
                      "blocks that share the chunks of some tiles and merge them in one launch; 1: two launches"),
       flag<Config>("single_tiles", &StreamKConfig::single_tiles,
                    "a tile has a cluster of its own, so that no other tile changes its sums"),
       dependent_launch_knob<Config>()}};
  return table;
}

int dim(std::int64_t columns) { return static_cast<int>(columns); }

std::string kernel(const char* name, const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return fmt::format("thresher::strategies::attention::{}<{}, {}, {}, {}{}>", name, stream_k_knobs().spelling({config}),
                     element_argument(formats.output), element_argument(formats.keys), logits_argument(logits),
                     formats.queries == formats.output ? "" : ", " + element_argument(formats.queries));
}

/// A cluster has a tile whatever the length of its sequence, which the host does not know. One long sequence among
/// others would be left to the clusters of its heads. So several sequences have clusters where even the longest leaves
/// few chunks to a block: it loads 16 of 32 KiB in 7 us. They must also be few enough to be sorted.
bool is_for_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device) {
  constexpr std::int64_t chunks_of_block = 16;
  constexpr std::int64_t sorted_sequences = 32;
  const std::int64_t chunks = max_chunks(problem, config);
  const bool is_resident = max_tiles(problem, config) * config.cluster <= device.resident_blocks(config.cluster, 1);
  return config.cluster <= device.max_cluster && config.cluster <= std::max<std::int64_t>(2, chunks) &&
         (problem.batch == 1 ? is_resident
                             : problem.batch <= sorted_sequences && chunks <= chunks_of_block * config.cluster);
}

double output_elements(const AttentionProblem& problem) {
  return static_cast<double>(problem.queries * problem.heads) * static_cast<double>(effective_value_dim(problem));
}

/// Each tile of query rows reads the keys again.
double moved_bytes(const AttentionProblem& problem, const StreamKConfig& config) {
  std::int64_t readings = 0;
  for (const AttentionProblem& alike : assumed_sequences(problem)) {
    readings += alike.batch * ceil_div(alike.queries * (problem.heads / problem.kv_heads), config.rows);
  }
  const auto columns = static_cast<double>(problem.head_dim + effective_value_dim(problem));
  const auto keys = static_cast<double>(readings * problem.keys * problem.kv_heads);
  const auto rows = static_cast<double>(problem.queries * problem.heads);
  return keys * columns * config.key_bytes + rows * columns * 2;
}

/// The tiles of a call whose sequences are alike.
std::int64_t assumed_tiles(const AttentionProblem& problem, const StreamKConfig& config) {
  std::int64_t tiles = 0;
  for (const AttentionProblem& alike : assumed_sequences(problem)) {
    tiles += alike.batch * ceil_div(alike.queries * (problem.heads / problem.kv_heads), config.rows);
  }
  return tiles * (problem.kv_heads / config.heads);
}

/// The share of the memory's rate that blocks on this share of all multiprocessors reach together
/// (measurements/decode_clusters_h200_2026-11-29: 64 and 120 of 132).
double rate_share(double blocks_share) { return std::min({1.0, 1.75 * blocks_share, 0.7 + 0.3 * blocks_share}); }

/// The bytes that all multiprocessors would read in the time in which clusters read the assumed tiles. All clusters
/// have as many tiles at first. Then some have one more.
double bytes_of_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device) {
  const std::int64_t tiles = assumed_tiles(problem, config);
  const std::int64_t clusters = max_clusters(problem, config, device);
  if (tiles == 0) {
    return 0;
  }
  const double tile_bytes = moved_bytes(problem, config) / static_cast<double>(tiles);
  const auto read = [&](std::int64_t each) {
    const double blocks_share = static_cast<double>(each * config.cluster) / device.multiprocessors;
    return each == 0 ? 0 : static_cast<double>(each) * tile_bytes / rate_share(blocks_share);
  };
  return static_cast<double>(tiles / clusters) * read(clusters) + read(tiles % clusters);
}

TiledKernel work_of_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device) {
  // The rate of partial results between blocks, as measured for `split`.
  constexpr double exchange_bytes_per_clock = 32;
  TiledKernel kernel;
  const std::int64_t clusters = max_clusters(problem, config, device);
  kernel.blocks = clusters * config.cluster;
  kernel.cluster = config.cluster;
  kernel.persistent = true;
  kernel.steps = static_cast<double>(
      ceil_div(ceil_div(assumed_tiles(problem, config), clusters) * max_chunks(problem, config), config.cluster));
  kernel.step.l2_bytes = config.slot_bytes();
  kernel.stages = config.stages;
  kernel.loads_in_flight = kernel.steps <= config.stages ? 0 : std::max(1.0, config.stages - 0.5);
  kernel.exchange_clocks = config.tile_rows() * config.value_dim * 4 / exchange_bytes_per_clock;
  kernel.dram_bytes = bytes_of_clusters(problem, config, device);
  return kernel;
}

/// A chunk has two heads while there are chunks for all multiprocessors. A call with too few chunks, even of half as
/// many keys each, has chunks of half as many keys, which arrive earlier.
void follow_extents(const AttentionProblem& problem, const Knobs& knobs, int multiprocessors, StreamKConfig& config) {
  const auto leaves_some_idle = [&](const StreamKConfig& of) { return max_units(problem, of) <= multiprocessors; };
  if (knobs.find("heads") == nullptr && problem.kv_heads % 2 == 0) {
    StreamKConfig paired = config;
    paired.heads = heads_of_chunk(config);
    config.heads = leaves_some_idle(paired) ? 1 : paired.heads;
  }
  StreamKConfig shorter = config;
  shorter.warps = 4;
  if (knobs.find("warps") == nullptr && leaves_some_idle(shorter)) {
    config.warps = shorter.warps;
  }
}

void add_limits(std::vector<std::string>& all, const AttentionProblem& problem, const Config& config) {
  for (const auto& [argument, rows] :
       {std::pair{"queries", problem.queries * (problem.heads / problem.kv_heads)}, std::pair{"keys", problem.keys}}) {
    if (rows >= max_rows) {
      all.push_back(fmt::format("problem.{} come to {} rows, a GPU takes less than {}", argument, rows, max_rows));
    }
  }
  constexpr std::int64_t max_sequences = std::int64_t{1} << 24;  // the bytes of whose directory 32 bits count
  if (problem.batch >= max_sequences) {
    all.push_back(fmt::format("problem.batch is {}, it takes less than {} sequences", problem.batch, max_sequences));
  }
  constexpr double unit_limit = 1U << 31U;
  const auto tiles = (static_cast<double>(problem.queries) * static_cast<double>(problem.heads) / config.rows +
                      static_cast<double>(problem.batch * problem.kv_heads)) /
                     config.heads;
  const double units =
      tiles * static_cast<double>(std::max<std::int64_t>(ceil_div(problem.keys, config.keys()) + 1, config.cluster));
  if (units >= unit_limit) {
    all.push_back(
        fmt::format("its work would come to {:.0f} chunks of keys, it takes less than {:.0f}", units, unit_limit));
  }
}

struct StreamK : FamilyDefaults<AttentionProblem, Config> {
  static constexpr Overrides overrides{.steady_knobs = true,
                                       .own_choice = true,
                                       .completed = true,
                                       .candidates = true,
                                       .work = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};
  static constexpr std::string_view name = "stream_k";
  static constexpr std::string_view summary =
      "for a paged KV cache and few queries: all blocks, or those of a cluster, share the keys evenly";
  static const KnobTable<Config>& knob_table() { return stream_k_knobs(); }
  static std::optional<Knobs> steady_knobs(const AttentionProblem& problem) {
    return takes_single_queries(problem) && problem.queries <= problem.batch
               ? std::optional(single_query_knobs(problem))
               : std::nullopt;
  }

  static Config own_choice(const AttentionProblem& problem, const Knobs&, const DeviceSpec&) {
    const std::int64_t queries = problem.batch > 0 ? ceil_div(problem.queries, problem.batch) : 1;
    return {stream_k_choice(dim(problem.head_dim), dim(effective_value_dim(problem)),
                            bits(effective_kv_format(problem)) / 8, queries * (problem.heads / problem.kv_heads),
                            problem.page_size % 8 == 0)};
  }
  static Config completed(const Config& config, const AttentionProblem& problem, const Knobs& knobs,
                          const DeviceSpec& device) {
    Config completed = config;
    follow_extents(problem, knobs, device.multiprocessors, completed);
    completed.single_tiles =
        completed.is_clustered() && max_clusters(problem, completed, device) == max_tiles(problem, completed);
    if (knobs.find("stages") == nullptr) {
      static_cast<StreamKConfig&>(completed) =
          with_stages(completed, narrow(problem.batch), static_cast<std::uint32_t>(device.shared_bytes_per_block));
    }
    return completed;
  }
  /// With few sequences clusters too, the larger before smaller ones with the same prediction.
  static std::vector<Config> candidates(const AttentionProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec& device) {
    std::vector<Config> all;
    for (const int cluster : {8, 4, 2}) {
      Config clustered = own;
      clustered.cluster = cluster;
      if (knobs.find("cluster") == nullptr &&
          is_for_clusters(problem, completed(knob_table().with(clustered, knobs, name), problem, knobs, device),
                          device)) {
        all.push_back(clustered);
      }
    }
    all.push_back(own);
    return all;
  }

  static std::optional<std::string> unsupported_reason(const AttentionProblem& problem, const DeviceSpec& device) {
    return unless_pages_on_hopper(name, problem, device);
  }
  static std::vector<std::string> infeasible_reasons(const AttentionProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    std::vector<std::string> all = beyond(all_abilities({64, 128, 256}), problem);
    if (!all.empty()) {
      return all;
    }
    add_limits(all, problem, config);
    constexpr int max_words = 2048;
    if (config.rows * std::max(config.head_dim, config.value_dim) > max_words) {
      all.push_back(fmt::format("rows is {}, a warp keeps at most {} of {} columns in registers", config.rows,
                                max_words / std::max(config.head_dim, config.value_dim),
                                std::max(config.head_dim, config.value_dim)));
    }
    if (config.rows > 16 && config.warps > 4) {
      all.push_back(fmt::format("rows is {}, for which {} warps have too few registers: 4 have enough", config.rows,
                                config.warps));
    }
    if (config.boxes && problem.page_size % 8 != 0) {
      all.push_back(fmt::format("boxes is true, which takes pages of a multiple of 8 rows, problem.page_size is {}",
                                problem.page_size));
    }
    if (problem.kv_heads % config.heads != 0) {
      all.push_back(
          fmt::format("heads is {}, of which problem.kv_heads, {}, is no multiple", config.heads, problem.kv_heads));
    }
    if (config.heads > 1 && !config.boxes) {
      all.push_back(fmt::format("heads is {}, which takes boxes", config.heads));
    }
    const std::uint32_t shared = config.shared_bytes(narrow(problem.batch));
    if (shared > static_cast<std::uint32_t>(device.shared_bytes_per_block)) {
      all.push_back(fmt::format("it needs {} bytes of shared memory for {} sequences, a block of {} has {}", shared,
                                problem.batch, device.name, device.shared_bytes_per_block));
    }
    return all;
  }

  static PlannedCall plan(const AttentionProblem& problem, const Config& config, const DeviceSpec& device) {
    PlannedCall call;
    add_stream_k(call, problem, config, device, {});
    call.why = config.is_clustered()
                   ? fmt::format("{} clusters of {} blocks share the keys of {} sequences, {} at a time",
                                 max_clusters(problem, config, device), config.cluster, problem.batch, config.keys())
                   : fmt::format("{} blocks share the keys of {} sequences, {} at a time", device.multiprocessors,
                                 problem.batch, config.keys());
    return call;
  }

  static WorkModel work(const AttentionProblem& problem, const Config& config, const DeviceSpec& device) {
    if (config.is_clustered()) {
      return {{work_of_clusters(problem, config, device)}};
    }
    // The second launch costs 2 us, its first loads and what a launch costs
    // (measurements/decode_clusters_h200_2026-11-29).
    return {{MemoryPass{"attending to a paged KV cache", moved_bytes(problem, config), false},
             MemoryPass{"merging parts", output_elements(problem) * 8, false}}};
  }

  static std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Config&, const DeviceSpec&) {
    return {paged_like(problem, {.batch = 3, .max_kv_heads = 2, .max_group = 4, .queries = 6, .keys = 300})};
  }

  static std::vector<Sample<AttentionProblem>> samples() {
    std::vector<Sample<AttentionProblem>> all;
    for (const std::int64_t page : {16, 1}) {
      for (const bool is_fp8 : {false, true}) {
        all.push_back(
            {with_keys(in_pages({.batch = 3, .heads = 4, .kv_heads = 2, .queries = 6, .keys = 300}, page), is_fp8),
             {{"warps", "8"}}});
      }
    }
    all.push_back({all[1].problem, {{"heads", "2"}}});
    all.push_back({all[1].problem, {{"warps", "4"}, {"aligned", "false"}}});
    all.push_back({all[0].problem, {{"cluster", "4"}}});
    return all;
  }

  /// Decode over pages of 16, of heads of 128, of many sequences and of one.
  static std::vector<Sample<AttentionProblem>> built_in() {
    std::vector<Sample<AttentionProblem>> all;
    for (const Format format : {Format::fp16, Format::bf16}) {
      for (const bool is_fp8 : {false, true}) {
        AttentionProblem problem = with_keys(in_pages({.batch = 32,
                                                       .heads = 32,
                                                       .kv_heads = 8,
                                                       .queries = 32,
                                                       .keys = 4096,
                                                       .head_dim = 128,
                                                       .format = format},
                                                      16),
                                             is_fp8);
        all.push_back({problem, {}});
        problem.batch = problem.queries = 1;
        all.push_back({problem, {{"cluster", "8"}}});
      }
    }
    return all;
  }

 private:
  static AttentionProblem with_keys(AttentionProblem problem, bool is_fp8) {
    problem.kv_format = is_fp8 ? std::optional(Format::fp8_e4m3) : problem.kv_format;
    return problem;
  }
};

}  // namespace

void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const Knobs& knobs, const DeviceSpec& device,
                  const QueryRange& queries) {
  add_stream_k(call, problem, KernelStrategy<StreamK>::config(problem, knobs, device), device, queries);
}

bool takes_single_queries(const AttentionProblem& problem) {
  return problem.page_size > 0 && problem.page_size % 8 == 0 && problem.head_dim != 192 &&
         effective_value_dim(problem) != 192;
}

/// Few blocks share a tile: many sequences need no more, and with one each block still has enough chunks under way.
Knobs single_query_knobs(const AttentionProblem& problem) {
  constexpr int blocks = 4;
  const StreamKConfig config =
      stream_k_choice(dim(problem.head_dim), dim(effective_value_dim(problem)), bits(effective_kv_format(problem)) / 8,
                      problem.heads / problem.kv_heads, true);
  return {{"rows", std::to_string(config.rows)},
          {"warps", std::to_string(config.warps)},
          {"heads", "1"},
          {"cluster", std::to_string(blocks)},
          {"single_tiles", "true"}};
}

std::string stream_k_expression(const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return kernel("stream_k", config, formats, logits);
}

std::string merge_parts_expression(const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return kernel("merge_parts", config, formats, logits);
}

const Strategy<AttentionProblem>& stream_k_strategy() { return strategy_of<StreamK>(); }

}  // namespace thresher::strategies::attention
