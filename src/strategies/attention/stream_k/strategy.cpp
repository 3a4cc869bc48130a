#include "strategies/attention/stream_k/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/integers.hpp"
#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tile_work.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamKConfig;
using Config = Launched<StreamKConfig>;

const KnobTable<Config>& stream_k_knobs() {
  static const KnobTable<Config> table{
      "thresher::pipeline::attention::StreamKConfig",
      {from_problem(number<Config>("head_dim", &StreamKConfig::head_dim, {}, "")),
       from_problem(number<Config>("value_dim", &StreamKConfig::value_dim, {}, "")),
       number<Config>("rows", &StreamKConfig::rows, {8, 16, 32}, "query rows of a tile, of all heads of a group"),
       number<Config>("warps", &StreamKConfig::warps, {4, 8}, "warps that multiply, 16 keys of a chunk each"),
       number<Config>("stages", &StreamKConfig::stages, {2, 3, 4, 5, 6, 7, 8}, "chunks that are under way"),
       from_problem(number<Config>("key_bytes", &StreamKConfig::key_bytes, {}, "")),
       flag<Config>("boxes", &StreamKConfig::boxes, "pages come by the copy engine, which takes pages of 8 rows"),
       number<Config>("least_chunks", &StreamKConfig::least_chunks, {1, 2, 4, 8},
                      "of keys that a block takes where it takes any"),
       flag<Config>("aligned", &StreamKConfig::aligned,
                    "of tiles with as many chunks each blocks take whole ones, or have one of their own to share"),
       number<Config>("heads", &StreamKConfig::heads, {1, 2},
                      "heads of keys that a chunk has: narrow rows come with those of the head beside them"),
       number<Config>("cluster", &StreamKConfig::cluster, {1, 2, 4, 8, 16},
                      "blocks that share a tile's chunks and merge it in one launch; 1: two launches"),
       dependent_launch_knob<Config>()}};
  return table;
}

int dim(std::int64_t columns) { return static_cast<int>(columns); }

std::string kernel(const char* name, const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return fmt::format("thresher::strategies::attention::{}<{}, {}, {}, {}{}>", name, stream_k_knobs().spelling({config}),
                     element_argument(formats.output), element_argument(formats.keys), logits_argument(logits),
                     formats.queries == formats.output ? "" : ", " + element_argument(formats.queries));
}

/// A cluster has a tile whatever the length of its sequence, which the host does not know. Only with one sequence are
/// all tiles equally long. All clusters are resident at once, and each block has a chunk.
bool is_for_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device) {
  const std::int64_t blocks = max_tiles(problem, config) * config.cluster;
  return problem.batch == 1 && config.cluster <= device.max_cluster &&
         blocks <= device.resident_blocks(config.cluster, 1) &&
         config.cluster <= std::max<std::int64_t>(2, max_chunks(problem, config));
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

TiledKernel work_of_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device) {
  // Few blocks are assumed to reach at most this multiple of their share of the memory's rate.
  constexpr double max_shares = 1.75;
  // The rate of partial results between blocks, as measured for `split`.
  constexpr double exchange_bytes_per_clock = 32;
  TiledKernel kernel;
  kernel.blocks = max_tiles(problem, config) * config.cluster;
  kernel.cluster = config.cluster;
  kernel.steps = static_cast<double>(ceil_div(max_chunks(problem, config), config.cluster));
  kernel.step.l2_bytes = config.slot_bytes();
  kernel.stages = config.stages;
  kernel.loads_in_flight = kernel.steps <= config.stages ? 0 : std::max(1.0, config.stages - 0.5);
  kernel.exchange_clocks = config.tile_rows() * config.value_dim * 4 / exchange_bytes_per_clock;
  const double shares = max_shares * static_cast<double>(kernel.blocks) / device.multiprocessors;
  kernel.dram_bytes = moved_bytes(problem, config) / std::min(1.0, shares);
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
  static constexpr Overrides overrides{.own_choice = true,
                                       .completed = true,
                                       .candidates = true,
                                       .work = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};
  static constexpr std::string_view name = "stream_k";
  static constexpr std::string_view summary =
      "for keys in pages and few queries: all blocks, or a cluster a tile, share the keys evenly";
  static const KnobTable<Config>& knob_table() { return stream_k_knobs(); }

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
    if (knobs.find("stages") == nullptr) {
      static_cast<StreamKConfig&>(completed) =
          with_stages(completed, narrow(problem.batch), static_cast<std::uint32_t>(device.shared_bytes_per_block));
    }
    return completed;
  }
  /// With one sequence clusters too, the larger before smaller ones with the same prediction.
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
    add_stream_k(call, problem, config, config.dependent_launch, device.multiprocessors, {});
    call.why = config.is_clustered() ? fmt::format("{} blocks share the keys of each of {} tiles, {} at a time",
                                                   config.cluster, max_tiles(problem, config), config.keys())
                                     : fmt::format("{} blocks share the keys of {} sequences, {} at a time",
                                                   device.multiprocessors, problem.batch, config.keys());
    return call;
  }

  static WorkModel work(const AttentionProblem& problem, const Config& config, const DeviceSpec& device) {
    if (config.is_clustered()) {
      return {{work_of_clusters(problem, config, device)}};
    }
    return {{MemoryPass{"attending to keys in pages", moved_bytes(problem, config), false},
             MemoryPass{"merging parts", output_elements(problem) * 8, true}}};
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
  const Config config = KernelStrategy<StreamK>::config(problem, knobs, device);
  add_stream_k(call, problem, config, config.dependent_launch, device.multiprocessors, queries);
}

std::string stream_k_expression(const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return kernel("stream_k", config, formats, logits);
}

std::string merge_parts_expression(const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return kernel("merge_parts", config, formats, logits);
}

const Strategy<AttentionProblem>& stream_k_strategy() { return strategy_of<StreamK>(); }

}  // namespace thresher::strategies::attention
