#include "strategies/attention/pipelined/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/stream_k/strategy.hpp"
#include "strategies/attention/tile_work.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamConfig;
using Config = Launched<StreamConfig>;

bool multiplies_codes(const Config& config) { return config.multiplies_codes; }

const KnobTable<Config>& stream_knobs() {
  static const KnobTable<Config> table{
      "thresher::pipeline::attention::StreamConfig",
      {from_problem(number<Config>("head_dim", &StreamConfig::head_dim, {}, "")),
       from_problem(number<Config>("value_dim", &StreamConfig::value_dim, {}, "")),
       range<Config>("keys", &StreamConfig::keys, 64, 192, 16, "keys of a block"),
       number<Config>("stages", &StreamConfig::stages, {2, 3, 4}, "stages of the pipelines of keys and of values"),
       number<Config>("math_warpgroups", &StreamConfig::math_warpgroups, {1, 2, 3},
                      "warpgroups that multiply, of 64 queries each"),
       number<Config>("multicast", &StreamConfig::multicast, {1, 2}, "blocks of a cluster that share keys and values"),
       flag<Config>("queries_in_registers", &StreamConfig::queries_in_registers,
                    "queries are operands in registers, else in shared memory"),
       flag<Config>("take_turns", &StreamConfig::take_turns, "one warpgroup's softmax runs beside another's products"),
       flag<Config>("hold_softmax", &StreamConfig::hold_softmax,
                    "the softmax of a block is done before the wait for the last block's product"),
       flag<Config>("base_descriptors", &StreamConfig::base_descriptors,
                    "operands are addressed by a constant added to the first one's descriptor"),
       from_problem(flag<Config>("paged", &StreamConfig::paged, "")),
       from_problem(number<Config>("code_tiles", &StreamConfig::code_tiles, {}, "")),
       from_problem(flag<Config>("multiplies_codes", &StreamConfig::multiplies_codes, "")),
       only_where(multiplies_codes,
                  flag<Config>("scores_ahead", &StreamConfig::scores_ahead,
                               "FP8 queries: the next block's softmax runs beside a block's product with its values")),
       dependent_launch_knob<Config>()}};
  return table;
}

Codes codes_of(const AttentionProblem& problem) {
  return has_fp8_queries(problem) ? Codes::queries_and_keys : has_fp8_keys(problem) ? Codes::keys : Codes::none;
}

struct Pipelined : OneKernel<Pipelined, StreamConfig> {
  static constexpr Overrides overrides{.steady_knobs = true,
                                       .own_choice = true,
                                       .completed = true,
                                       .work = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};
  static constexpr std::string_view name = "pipelined";
  static constexpr std::string_view summary =
      "for long sequences: producer and consumer warpgroups, pipelines of keys and values";
  static const KnobTable<Config>& knob_table() { return stream_knobs(); }
  /// Sequences of one query go to `stream_k`, also among others (strategies/attention/mixed).
  static std::optional<Knobs> steady_knobs(const AttentionProblem& problem) {
    const bool has_single_queries = problem.batch > 1 || problem.queries == 1;
    return takes_single_queries(problem) && has_single_queries ? std::nullopt : std::optional(Knobs{});
  }

  static Config own_choice(const AttentionProblem& problem, const Knobs&, const DeviceSpec&) {
    const bool few_queries = !problem.variable_length && problem.queries <= StreamConfig::rows_per_warpgroup;
    const auto head_dim = static_cast<int>(problem.head_dim);
    const auto value_dim = static_cast<int>(effective_value_dim(problem));
    const bool direct = !has_general_logits(problem);
    return {stream_choice(head_dim, value_dim, few_queries, direct, codes_of(problem), problem.page_size > 0)};
  }
  static Config completed(const Config& config, const AttentionProblem&, const Knobs&, const DeviceSpec&) {
    return config.has_codes() ? Config{with_code_tiles(config), config.dependent_launch} : config;
  }

  static Abilities abilities() { return all_abilities({64, 128, 192, 256}); }
  static std::vector<Knobs> sample_knobs() { return {{{"multicast", "2"}}}; }
  static std::vector<std::string> limits(const AttentionProblem& problem, const Config& config) {
    std::vector<std::string> all;
    if (problem.page_size % 8 != 0) {
      all.push_back(fmt::format("it takes pages of a multiple of 8 rows, problem.page_size is {}", problem.page_size));
    }
    if (config.paged && config.multicast == 2) {
      all.emplace_back("multicast is 2, whose blocks share no keys that are in pages");
    }
    if (config.has_codes() && config.multicast == 2) {
      all.emplace_back("multicast is 2, whose blocks share no keys in fp8_e4m3");
    }
    if (config.multiplies_codes && config.keys % 32 != 0) {
      all.push_back(fmt::format("keys is {}, with queries in fp8_e4m3 it takes a multiple of 32", config.keys));
    }
    if (config.multiplies_codes && config.hold_softmax && !config.scores_ahead) {
      all.emplace_back(
          "hold_softmax is true, but with queries in fp8_e4m3 no product waits for a softmax without scores_ahead");
    }
    for (const auto& [argument, columns] : {std::pair{"head_dim", config.head_dim}, {"value_dim", config.value_dim}}) {
      if (has_fp8_keys(problem) && columns == 192) {
        all.push_back(fmt::format("it takes keys in fp8_e4m3 with a {} of 64 or 128 or 256, problem.{} is 192",
                                  argument, argument));
      }
      if (config.multicast == 2 && columns == 192) {
        all.push_back(
            fmt::format("multicast is 2, whose blocks cannot share the three panels of a {} of 192", argument));
      }
    }
    if (config.queries_in_registers && std::max(config.head_dim, config.value_dim) > 128) {
      all.push_back(
          fmt::format("queries_in_registers is true, for which a head_dim of {} and a value_dim of {} leave "
                      "too few registers",
                      config.head_dim, config.value_dim));
    }
    return all;
  }

  static Geometry geometry(const Config& config) {
    return {.tile_rows = config.rows() * config.multicast,
            .query_box_rows = config.rows(),
            .query_box_panels = pipeline::attention::panels_of(config.head_dim * config.element_bytes()),
            .key_share = config.copied(config.head_dim),
            .value_share = config.copied(config.value_dim),
            .threads = static_cast<std::uint32_t>(config.threads()),
            .cluster = static_cast<std::uint32_t>(config.multicast),
            .shared_bytes = config.shared_bytes(),
            .registers = registers_at_launch(config.threads(), config.loader_registers(), config.math_registers()),
            .persistent = true,
            .whole_rows = config.copies_whole_rows()};
  }
  /// A warpgroup multiplies a block of keys: queries by keys along the head, weights by values along the keys. One
  /// instruction covers 16 of either, or 32 in FP8, and all columns. TMA loads queries, keys and values.
  static AttentionKernel kernel(const AttentionProblem& problem, const Config& config) {
    return {.geometry = geometry(config),
            .header = "pipelined/device/kernel.hpp",
            .expression = pipelined_expression(config, problem.format, logits_of(problem)),
            .expected = {.matrix_kind = config.multiplies_codes ? "QGMMA" : "HGMMA",
                         .min_matrix_instructions = config.steps(config.head_dim) + config.steps(config.keys),
                         .min_tma_loads = 3},
            .why = "enough query tiles to fill the machine, or more keys than a cluster holds"};
  }

  static WorkModel work(const AttentionProblem& problem, const Config& config, const DeviceSpec&) {
    const TileWork tile{.query_rows = config.rows(),
                        .key_step = config.keys,
                        .stages = config.stages,
                        .multicast = config.multicast,
                        .pairs_tiles = true,
                        .dependent_launch = config.dependent_launch};
    if (problem.page_size == 0) {
      return {{tiled_kernel(problem, tile)}};
    }
    WorkModel all;
    for (const AttentionProblem& alike : assumed_sequences(problem)) {
      TiledKernel kernel = tiled_kernel(alike, tile);
      kernel.shares_launch = !all.parts.empty();
      all.parts.emplace_back(kernel);
    }
    return all;
  }

  static std::vector<Sample<AttentionProblem>> built_in() { return long_sequences(); }
  static std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Config& config, const DeviceSpec&) {
    const std::int64_t tile_rows = geometry(config).tile_rows;
    const std::int64_t keys = std::int64_t{config.keys} * config.stages + 75;
    if (problem.page_size == 0) {
      return ragged_like(problem, tile_rows, keys);
    }
    return {
        paged_like(problem, {.batch = 3, .max_kv_heads = 1, .max_group = 2, .queries = tile_rows + 70, .keys = keys})};
  }
};

}  // namespace

void add_pipelined(PlannedCall& call, const AttentionProblem& problem, const Knobs& knobs, const DeviceSpec& device,
                   const QueryRange& queries) {
  const Config config = KernelStrategy<Pipelined>::config(problem, knobs, device);
  add_launch(call, Pipelined::name, problem, Pipelined::kernel(problem, config), config.dependent_launch, device,
             queries);
}

std::string pipelined_expression(const StreamConfig& config, Format format, Logits logits) {
  return fmt::format("thresher::strategies::attention::pipelined<{}, {}, {}>", stream_knobs().spelling({config}),
                     element_argument(format), logits_argument(logits));
}

const Strategy<AttentionProblem>& pipelined_strategy() { return strategy_of<Pipelined>(); }

}  // namespace thresher::strategies::attention
