#include "strategies/attention/split/strategy.hpp"

#include <fmt/format.h>

#include "core/integers.hpp"
#include "pipeline/attention/config.hpp"
#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tile_work.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::SplitConfig;
using Config = Launched<SplitConfig>;

constexpr std::int64_t keys_per_block = SplitConfig::chunk * SplitConfig::chunks;
constexpr int max_blocks = 8;

/// The fewest blocks of a cluster that hold all keys; 0 when no cluster does.
int smallest_cluster(const AttentionProblem& problem) {
  for (const int cluster : {1, 2, 4, max_blocks}) {
    if (problem.keys <= cluster * keys_per_block) {
      return cluster;
    }
  }
  return 0;
}

std::int64_t all_blocks(const AttentionProblem& problem, int cluster) {
  return problem.batch * problem.heads * ceil_div(problem.queries, SplitConfig::rows) * cluster;
}

/// No row of a tile, and no key of a chunk, is missing or masked in a cluster of so many blocks.
bool is_whole(const AttentionProblem& problem, int cluster) {
  const bool sees_all = !problem.causal && problem.window_left < 0 && problem.window_right < 0;
  return sees_all && !problem.sinks && !problem.variable_length && problem.queries % SplitConfig::rows == 0 &&
         problem.keys == cluster * keys_per_block;
}

bool may_inspect_early(const AttentionProblem& problem, const Config& config) {
  return config.whole && !has_general_logits(problem) && config.parts > 1;
}

const KnobTable<Config>& split_knobs() {
  static const KnobTable<Config> table{
      "thresher::pipeline::attention::SplitConfig",
      {from_problem(number<Config>("head_dim", &SplitConfig::head_dim, {}, "")),
       number<Config>("cluster", &SplitConfig::cluster, {1, 2, 4, max_blocks},
                      "blocks that divide the keys and the output's columns"),
       flag<Config>("whole", &SplitConfig::whole, "no row or key is missing or masked: nothing is checked"),
       number<Config>("parts", &SplitConfig::parts, {1, 2, 4},
                      "of a chunk's weights: each is multiplied while the next one's exponentials run"),
       flag<Config>("inspect_early", &SplitConfig::inspect_early,
                    "the first chunk's largest scores are looked for while the second's product runs"),
       flag<Config>("narrow_exchange", &SplitConfig::narrow_exchange, "partial results are sent in 16 bits"),
       flag<Config>("meet_early", &SplitConfig::meet_early,
                    "the blocks of a cluster meet while their first copies are under way"),
       flag<Config>("alone", &SplitConfig::alone, "no second block fits on a multiprocessor"),
       dependent_launch_knob<Config>()}};
  return table;
}

struct Split : OneKernel<Split, SplitConfig> {
  static constexpr Overrides overrides{.role = true,
                                       .steady_knobs = true,
                                       .own_choice = true,
                                       .completed = true,
                                       .candidates = true,
                                       .work = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};
  static constexpr std::string_view name = "split";
  static constexpr std::string_view summary =
      "for small problems: the blocks of a cluster share the keys of a tile of queries";
  static Role role(const AttentionProblem&) { return Role::leads; }
  /// It is chosen only for few sequences.
  static std::optional<Knobs> steady_knobs(const AttentionProblem&) { return std::nullopt; }
  static const KnobTable<Config>& knob_table() { return split_knobs(); }

  static Config own_choice(const AttentionProblem& problem, const Knobs&, const DeviceSpec&) {
    const int smallest = smallest_cluster(problem);
    return {split_choice(static_cast<int>(problem.head_dim), smallest == 0 ? max_blocks : smallest, false)};
  }
  static Config completed(const Config& config, const AttentionProblem& problem, const Knobs& knobs,
                          const DeviceSpec&) {
    Config completed = config;
    if (knobs.find("whole") == nullptr) {
      completed.whole = is_whole(problem, config.cluster);
    }
    if (knobs.find("inspect_early") == nullptr) {
      completed.inspect_early = may_inspect_early(problem, completed);
    }
    return completed;
  }
  /// Only where all its blocks are resident at once.
  static std::vector<Config> candidates(const AttentionProblem& problem, const Config& own, const Knobs&,
                                        const DeviceSpec& device) {
    const int cluster = problem.variable_length ? 0 : smallest_cluster(problem);
    return cluster > 0 && all_blocks(problem, cluster) <= device.multiprocessors ? std::vector{own}
                                                                                 : std::vector<Config>{};
  }

  static Abilities abilities() { return {.sinks = true}; }
  static std::vector<Knobs> sample_knobs() { return {{{"cluster", "4"}}}; }
  static std::vector<std::string> limits(const AttentionProblem& problem, const Config& config) {
    if (smallest_cluster(problem) == 0) {
      return {fmt::format("it takes at most {} keys, problem.keys is {}", max_blocks * keys_per_block, problem.keys)};
    }
    std::vector<std::string> all;
    if (config.cluster * keys_per_block < problem.keys) {
      all.push_back(fmt::format("cluster is {}, which holds {} keys, problem.keys is {}", config.cluster,
                                config.cluster * keys_per_block, problem.keys));
    }
    if (config.whole && !is_whole(problem, config.cluster)) {
      all.push_back(fmt::format(
          "whole is true, which takes {} keys without a mask or sinks, a multiple of {} queries and one length",
          config.cluster * keys_per_block, SplitConfig::rows));
    }
    if (config.inspect_early && !may_inspect_early(problem, config)) {
      all.emplace_back(
          "inspect_early is true, which takes whole tiles, several parts, a positive scale and no softcap");
    }
    if (config.merged_columns() % (8 * config.groups_per_message()) != 0) {
      all.push_back(fmt::format("narrow_exchange is true, which takes 16 columns a block, cluster {} leaves {}",
                                config.cluster, config.merged_columns()));
    }
    return all;
  }

  static AttentionKernel kernel(const AttentionProblem& problem, const Config& config) {
    const int panels = config.head_dim / pipeline::attention::panel_columns;
    const pipeline::attention::CopiedShare chunk{panels, SplitConfig::chunk};
    return {.geometry = {.tile_rows = SplitConfig::rows,
                         .query_box_rows = SplitConfig::rows,
                         .query_box_panels = panels,
                         .key_share = chunk,
                         .value_share = chunk,
                         .threads = SplitConfig::threads,
                         .cluster = static_cast<std::uint32_t>(config.cluster),
                         .shared_bytes = config.shared_bytes(),
                         .grid_of_heads = true},
            .header = "split/device/kernel.hpp",
            .expression = split_expression(config, problem.format, logits_of(problem)),
            // The products of one chunk, as in `pipelined`.
            .expected = {.matrix_kind = "HGMMA",
                         .min_matrix_instructions = (config.head_dim + SplitConfig::chunk) / 16,
                         .min_tma_loads = 3},
            .why = fmt::format("{} blocks of {} queries and up to {} keys are resident at once",
                               all_blocks(problem, config.cluster), SplitConfig::rows, keys_per_block)};
  }

  static WorkModel work(const AttentionProblem& problem, const Config& config, const DeviceSpec&) {
    return {{tiled_kernel(problem, {.query_rows = SplitConfig::rows,
                                    .key_step = SplitConfig::chunk,
                                    .stages = SplitConfig::chunks,
                                    .split_keys = config.cluster,
                                    .dependent_launch = config.dependent_launch})}};
  }

  static std::vector<Sample<AttentionProblem>> built_in() {
    return {{{.heads = 8, .kv_heads = 8, .queries = 512, .keys = 512}, {}}};
  }
  /// Whole tiles stay whole. One block takes no sequences of several lengths here: they hold more keys than it.
  static std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Config& config, const DeviceSpec&) {
    if (config.whole) {
      AttentionProblem whole =
          dense_like(problem, std::int64_t{2} * SplitConfig::rows, config.cluster * keys_per_block);
      whole.batch = 2;
      return {whole};
    }
    std::vector<AttentionProblem> all = ragged_like(problem, SplitConfig::rows, config.cluster * keys_per_block - 53);
    if (config.cluster == 1) {
      all.pop_back();
    }
    return all;
  }
};

}  // namespace

std::string split_expression(const SplitConfig& config, Format format, Logits logits) {
  return fmt::format("thresher::strategies::attention::split<{}, {}, {}>", split_knobs().spelling({config}),
                     element_argument(format), logits_argument(logits));
}

const Strategy<AttentionProblem>& split_strategy() { return strategy_of<Split>(); }

}  // namespace thresher::strategies::attention
