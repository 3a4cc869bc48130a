#include <fmt/format.h>

#include <algorithm>

#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/stream_k/strategy.hpp"
#include "strategies/attention/tile_work.hpp"

namespace thresher::strategies::attention {
namespace {

struct Share {
  int few_queries = 16;
  bool single_tiles = false;
};
using Config = Launched<Share>;

/// Some sequence may have more queries than decoding takes, and not all need have equally few. The host knows only
/// their total.
bool may_be_of_both_kinds(const AttentionProblem& problem, int few) {
  if (problem.batch < 2 || problem.queries - (problem.batch - 1) <= few) {
    return false;
  }
  return problem.queries % problem.batch != 0 || problem.queries / problem.batch > few;
}

struct Mixed : FamilyDefaults<AttentionProblem, Config> {
  static constexpr Overrides overrides{.supersedes = true,
                                       .steady_knobs = true,
                                       .own_choice = true,
                                       .candidates = true,
                                       .work = true,
                                       .edges = true,
                                       .samples = true};
  static constexpr std::string_view name = "mixed";
  static constexpr std::string_view summary =
      "for a paged KV cache: stream_k for sequences of few queries, pipelined for the others";
  static constexpr std::string_view supersedes = "pipelined";

  static const KnobTable<Config>& knob_table() {
    static const KnobTable<Config> table{
        "",
        {number<Config>("few_queries", &Share::few_queries, {1, 8, 16, 32},
                        "sequences of no more are taken by stream_k, the others by pipelined"),
         flag<Config>("single_tiles", &Share::single_tiles, "the knob of stream_k, with others as it needs them"),
         dependent_launch_knob<Config>()}};
    return table;
  }

  /// Alone, sequences of one query go to `stream_k` and of more to `pipelined`, as they do here.
  static std::optional<Knobs> steady_knobs(const AttentionProblem& problem) {
    return takes_single_queries(problem) ? std::optional(Knobs{{"few_queries", "1"}, {"single_tiles", "true"}})
                                         : std::nullopt;
  }

  static std::optional<std::string> unsupported_reason(const AttentionProblem& problem, const DeviceSpec& device) {
    return unless_pages_on_hopper(name, problem, device);
  }
  static std::vector<std::string> infeasible_reasons(const AttentionProblem& problem, const Config&,
                                                     const DeviceSpec& device) {
    std::vector<std::string> all = stream_k_strategy().infeasible_reasons(problem, {}, device);
    return all.empty() ? pipelined_strategy().infeasible_reasons(problem, {}, device) : all;
  }

  /// A tile of `stream_k` has as many rows, so it reads the keys of a head with no more queries only once.
  static Config own_choice(const AttentionProblem& problem, const Knobs&, const DeviceSpec&) {
    const std::int64_t widest = std::max(problem.head_dim, effective_value_dim(problem));
    return {{.few_queries = widest > 128 ? 8 : widest > 64 ? 16 : 32}};
  }
  static std::vector<Config> candidates(const AttentionProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec&) {
    const Config asked = knob_table().with(own, knobs, name);
    return may_be_of_both_kinds(problem, asked.few_queries) ? std::vector{asked} : std::vector<Config>{};
  }

  static PlannedCall plan(const AttentionProblem& problem, const Config& config, const DeviceSpec& device) {
    PlannedCall call;
    Knobs knobs = config.single_tiles ? single_query_knobs(problem) : Knobs{};
    knobs.set("dependent_launch", config.dependent_launch ? "true" : "false");
    add_stream_k(call, problem, knobs, device, {.max = config.few_queries});
    add_pipelined(call, problem, {{"dependent_launch", "true"}}, device, {.min = config.few_queries + 1});
    call.why = fmt::format("some sequence may have more than {} queries", config.few_queries);
    return call;
  }

  /// A sequence takes the strategy that its assumed number of queries selects.
  static WorkModel work(const AttentionProblem& problem, const Config& config, const DeviceSpec& device) {
    WorkModel all;
    for (const AttentionProblem& alike : assumed_sequences(problem)) {
      const auto& strategy = alike.queries <= config.few_queries ? stream_k_strategy() : pipelined_strategy();
      AttentionProblem own = alike;
      own.queries *= own.batch;
      const WorkModel work = strategy.work(own, {}, device);
      all.parts.insert(all.parts.end(), work.parts.begin(), work.parts.end());
    }
    return all;
  }

  static std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Config& config, const DeviceSpec&) {
    constexpr std::int64_t batch = 4;
    return {paged_like(
        problem,
        {.batch = batch, .max_kv_heads = 1, .max_group = 2, .queries = 2 * config.few_queries * batch, .keys = 300})};
  }
  static std::vector<Sample<AttentionProblem>> samples() {
    const AttentionProblem problem = in_pages({.batch = 3, .heads = 2, .kv_heads = 1, .queries = 100, .keys = 300}, 16);
    AttentionProblem codes = problem;
    codes.kv_format = Format::fp8_e4m3;
    return {{problem, {}}, {codes, {}}};
  }
};

}  // namespace

const Strategy<AttentionProblem>& mixed_strategy() { return strategy_of<Mixed>(); }

}  // namespace thresher::strategies::attention
