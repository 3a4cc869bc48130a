#include "strategies/attention/stream_k/strategy.hpp"

#include <algorithm>

#include "core/integers.hpp"
#include "strategies/attention/abilities.hpp"
#include "strategies/attention/gpu_strategy.hpp"
#include "strategies/attention/stream_k/launch.hpp"
#include "strategies/attention/tile_work.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamKConfig;
using Config = Launched<StreamKConfig>;

const Abilities abilities{.pages = true,
                          .sinks = true,
                          .fp8_keys = true,
                          .fp8_queries = true,
                          .head_dims = {64, 128, 256},
                          .value_dims = {64, 128, 256}};

KnobTable<Config> knob_table() {
  return {"thresher::pipeline::attention::StreamKConfig",
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
}

int dim(std::int64_t columns) { return static_cast<int>(columns); }

std::string kernel(const char* name, const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return fmt::format("thresher::strategies::attention::{}<{}, {}, {}, {}{}>", name, knob_table().spelling({config}),
                     element_argument(formats.output), element_argument(formats.keys), logits_argument(logits),
                     formats.queries == formats.output ? "" : ", " + element_argument(formats.queries));
}

class StreamK final : public Strategy<AttentionProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "stream_k"; }
  [[nodiscard]] std::string_view summary() const override {
    return "for keys in pages and few queries: all blocks, or a cluster a tile, share the keys evenly";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const AttentionProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return table_.help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const AttentionProblem& problem,
                                                              const DeviceSpec& device) const override {
    return why_not_pages_on_hopper(name(), problem, device);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const AttentionProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    const Config config = with(problem, knobs, device);
    if (std::optional<std::string> reason = unsupported_reason(problem, device)) {
      return {*std::move(reason)};
    }
    std::vector<std::string> all = beyond(abilities, problem);
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

  /// For one sequence clusters too, the larger ahead of others that are predicted to be as fast.
  [[nodiscard]] std::vector<Knobs> candidates(const AttentionProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    std::vector<Knobs> all;
    const auto offer = [&](const Knobs& asked) {
      if (infeasible_reasons(problem, asked, device).empty()) {
        all.push_back(table_.knobs(with(problem, asked, device)));
      }
    };
    if (knobs.find("cluster") == nullptr) {
      for (const int cluster : {8, 4, 2}) {
        Knobs asked = knobs;
        asked.set("cluster", std::to_string(cluster));
        if (is_for_clusters(problem, with(problem, asked, device), device)) {
          offer(asked);
        }
      }
    }
    offer(knobs);
    return all;
  }

  [[nodiscard]] PlannedCall plan(const AttentionProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    const Config config = with(problem, knobs, device);
    const Logits logits = logits_of(problem);
    PlannedCall call;
    call.strategy = name();
    call.knobs = table_.knobs(config);
    add_stream_k(call, problem, config,
                 {stream_k_expression(config, formats_of(problem), logits),
                  merge_parts_expression(config, formats_of(problem), logits), config.dependent_launch},
                 device.multiprocessors);
    std::get<KernelLaunch>(call.steps[0]).expected = expectations(config);
    if (call.steps.size() > 1) {
      std::get<KernelLaunch>(call.steps[1]).expected.uses_shared_memory = false;
    }
    call.work = work(problem, knobs, device);
    call.why = config.is_clustered() ? fmt::format("{} blocks share the keys of each of {} tiles, {} at a time",
                                                   config.cluster, max_tiles(problem, config), config.keys())
                                     : fmt::format("{} blocks share the keys of {} sequences, {} at a time",
                                                   device.multiprocessors, problem.batch, config.keys());
    return call;
  }

  [[nodiscard]] WorkModel work(const AttentionProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override {
    const Config config = with(problem, knobs, device);
    if (config.is_clustered()) {
      return {{work_of_clusters(problem, config, device)}};
    }
    return {{MemoryPass{"attending to keys in pages", moved_bytes(problem, config), false},
             MemoryPass{"merging parts", output_elements(problem) * 8, true}}};
  }

  [[nodiscard]] std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Knobs&,
                                                    const DeviceSpec&) const override {
    AttentionProblem small = problem;
    const std::int64_t group = std::min<std::int64_t>(problem.heads / problem.kv_heads, 4);
    small.batch = 3;
    small.kv_heads = std::min<std::int64_t>(problem.kv_heads, 2);
    small.heads = group * small.kv_heads;
    small.queries = 6;
    small.keys = 300;
    small.pages = 3 * ceil_div(small.keys, problem.page_size);
    return {small};
  }

  [[nodiscard]] std::vector<Sample<AttentionProblem>> samples() const override {
    std::vector<Sample<AttentionProblem>> all;
    for (const std::int64_t page : {16, 1}) {
      for (const bool is_fp8 : {false, true}) {
        AttentionProblem problem{.batch = 3, .heads = 4, .kv_heads = 2, .queries = 6, .keys = 300};
        problem.variable_length = true;
        problem.causal = true;
        problem.page_size = page;
        problem.pages = 3 * ceil_div(problem.keys, page);
        if (is_fp8) {
          problem.kv_format = Format::fp8_e4m3;
        }
        all.push_back({problem, {{"warps", "8"}}});
      }
    }
    all.push_back({all[1].problem, {{"heads", "2"}}});
    all.push_back({all[1].problem, {{"warps", "4"}, {"aligned", "false"}}});
    all.push_back({all[0].problem, {{"cluster", "4"}}});
    return all;
  }

  /// Decode over pages of 16, of heads of 128, of many sequences and of one.
  [[nodiscard]] std::vector<Sample<AttentionProblem>> built_in() const override {
    std::vector<Sample<AttentionProblem>> all;
    for (const Format format : {Format::fp16, Format::bf16}) {
      for (const bool is_fp8 : {false, true}) {
        AttentionProblem problem{
            .batch = 32, .heads = 32, .kv_heads = 8, .queries = 32, .keys = 4096, .head_dim = 128, .format = format};
        problem.variable_length = true;
        problem.causal = true;
        problem.page_size = 16;
        problem.pages = 32 * 256;
        if (is_fp8) {
          problem.kv_format = Format::fp8_e4m3;
        }
        all.push_back({problem, {}});
        problem.batch = problem.queries = 1;
        all.push_back({problem, {{"cluster", "8"}}});
      }
    }
    return all;
  }

 private:
  /// A cluster has a tile whatever its sequence's length is, which the host does not know: only of one sequence is
  /// every tile as long. All clusters are resident at once, and each block has a chunk.
  static bool is_for_clusters(const AttentionProblem& problem, const StreamKConfig& config, const DeviceSpec& device) {
    const std::int64_t blocks = max_tiles(problem, config) * config.cluster;
    return problem.batch == 1 && config.cluster <= device.max_cluster &&
           blocks <= device.resident_blocks(config.cluster, 1) &&
           config.cluster <= std::max<std::int64_t>(2, max_chunks(problem, config));
  }

  static double output_elements(const AttentionProblem& problem) {
    return static_cast<double>(problem.queries * problem.heads) * static_cast<double>(effective_value_dim(problem));
  }

  /// Each tile of query rows reads the keys again.
  static double moved_bytes(const AttentionProblem& problem, const StreamKConfig& config) {
    std::int64_t readings = 0;
    for (const AttentionProblem& alike : assumed_sequences(problem)) {
      readings += alike.batch * ceil_div(alike.queries * (problem.heads / problem.kv_heads), config.rows);
    }
    const auto columns = static_cast<double>(problem.head_dim + effective_value_dim(problem));
    const auto keys = static_cast<double>(readings * problem.keys * problem.kv_heads);
    const auto rows = static_cast<double>(problem.queries * problem.heads);
    return keys * columns * config.key_bytes + rows * columns * 2;
  }

  static TiledKernel work_of_clusters(const AttentionProblem& problem, const StreamKConfig& config,
                                      const DeviceSpec& device) {
    // Of the memory's rate few blocks are assumed to reach no more than so many times what is theirs among all.
    constexpr double max_shares = 1.75;
    // Partial results that a block sends to others, as `split` was measured to.
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

  /// Two heads in a chunk while there are chunks for all multiprocessors. A call so small that there are not, even with
  /// half as many keys in each, has half as many: its chunks are there earlier.
  static void follow_extents(const AttentionProblem& problem, const Knobs& knobs, int multiprocessors,
                             StreamKConfig& config) {
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

  static void add_limits(std::vector<std::string>& all, const AttentionProblem& problem, const Config& config) {
    for (const auto& [argument, rows] : {std::pair{"queries", problem.queries * (problem.heads / problem.kv_heads)},
                                         std::pair{"keys", problem.keys}}) {
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

  /// One chunk of keys by one warp: two products of 16 keys, and the copies of keys and values.
  [[nodiscard]] static Expectations expectations(const StreamKConfig& config) {
    Expectations expected;
    expected.matrix_kind = "HMMA";
    expected.min_matrix_instructions = (config.head_dim + config.value_dim) / 16 * (config.rows / 8);
    expected.min_tma_loads = config.boxes ? 2 : 0;
    return expected;
  }

  [[nodiscard]] Config with(const AttentionProblem& problem, const Knobs& knobs, const DeviceSpec& device) const {
    const std::int64_t queries = problem.batch > 0 ? ceil_div(problem.queries, problem.batch) : 1;
    const Config own{stream_k_choice(dim(problem.head_dim), dim(effective_value_dim(problem)),
                                     bits(effective_kv_format(problem)) / 8,
                                     queries * (problem.heads / problem.kv_heads), problem.page_size % 8 == 0)};
    Config config = table_.with(own, knobs, name());
    follow_extents(problem, knobs, device.multiprocessors, config);
    if (knobs.find("stages") == nullptr) {
      static_cast<StreamKConfig&>(config) =
          with_stages(config, narrow(problem.batch), static_cast<std::uint32_t>(device.shared_bytes_per_block));
    }
    return config;
  }

  KnobTable<Config> table_ = knob_table();
};

}  // namespace

std::optional<std::string> why_not_pages_on_hopper(std::string_view strategy, const AttentionProblem& problem,
                                                   const DeviceSpec& device) {
  if (device.matrix_unit != MatrixUnit::wgmma) {
    return fmt::format("attention's {} runs on GPUs of compute capability 9.0 (Hopper), not on {}", strategy,
                       device.name);
  }
  if (problem.page_size == 0) {
    return fmt::format("attention's {} takes keys in pages, problem.page_size is 0", strategy);
  }
  return std::nullopt;
}

std::string stream_k_expression(const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return kernel("stream_k", config, formats, logits);
}

std::string merge_parts_expression(const StreamKConfig& config, const KernelFormats& formats, Logits logits) {
  return kernel("merge_parts", config, formats, logits);
}

const Strategy<AttentionProblem>& stream_k_strategy() {
  static const StreamK strategy;
  return strategy;
}

}  // namespace thresher::strategies::attention
