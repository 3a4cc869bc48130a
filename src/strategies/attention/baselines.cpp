/// The strategies with which others are compared: `simple`, the three `rows`, and the CPU's `blockwise`.
#include <fmt/format.h>

#include "cpu/attention.hpp"
#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/cpu_family.hpp"

namespace thresher::strategies::attention {
namespace {

struct Simple : OneKernel<Simple, NoKnobs> {
  static constexpr Overrides overrides{.role = true, .edges = true, .built_in = true, .samples = true};
  static constexpr std::string_view name = "simple";
  static constexpr std::string_view summary = "one warp for a query: short and obviously right";
  static Role role(const AttentionProblem&) { return Role::fallback; }
  static const KnobTable<Config>& knob_table() { return launch_knobs(); }

  static Abilities abilities() { return all_abilities({64, 128, 192, 256}); }
  static std::vector<std::string> limits(const AttentionProblem&, const Config&) { return {}; }
  static std::vector<Knobs> sample_knobs() { return {}; }
  static AttentionKernel kernel(const AttentionProblem& problem, const Config&) {
    return {.geometry = {.tile_rows = simple_warps, .threads = simple_warps * 32},
            .header = "simple/device/kernel.hpp",
            .expression = simple_expression(formats_of(problem), problem.head_dim, effective_value_dim(problem)),
            .expected = {.uses_shared_memory = false}};
  }

  static std::vector<Sample<AttentionProblem>> built_in() { return long_sequences(); }
  /// It takes keys one by one, so that few of them show all that it does.
  static std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Config&, const DeviceSpec&) {
    return ragged_like(problem, simple_warps, 41);
  }
};

/// A way to stage keys and values, the strategy that has it, and its name in C++.
struct RowsVariant {
  Staging staging;
  std::string_view name;
  std::string_view summary;
  std::string_view enumerator;
};
constexpr RowsVariant rows_variants[] = {
    {Staging::none, "rows", "one thread for a query, keys and values straight from global memory", "none"},
    {Staging::by_row, "rows_shared", "the same with keys and values staged in shared memory, a row a thread", "by_row"},
    {Staging::coalesced, "rows_coalesced", "the same with keys and values staged in the order in which they lie",
     "coalesced"}};

constexpr const RowsVariant& variant(Staging staging) { return rows_variants[static_cast<std::size_t>(staging)]; }

template <Staging staging>
struct Rows : OneKernel<Rows<staging>, NoKnobs> {
  using Config = Launched<NoKnobs>;
  static constexpr Overrides overrides{.role = true, .edges = true, .samples = true};
  static constexpr std::string_view name = variant(staging).name;
  static constexpr std::string_view summary = variant(staging).summary;
  static Role role(const AttentionProblem&) { return Role::by_name; }
  static const KnobTable<Config>& knob_table() { return launch_knobs(); }

  /// A thread keeps a row in registers.
  static Abilities abilities() { return {.head_dims = {row_head_dim}}; }
  static std::vector<std::string> limits(const AttentionProblem&, const Config&) { return {}; }
  static std::vector<Knobs> sample_knobs() { return {}; }
  static AttentionKernel kernel(const AttentionProblem& problem, const Config&) {
    constexpr bool stages = staging != Staging::none;
    return {.geometry = {.tile_rows = row_threads, .threads = row_threads, .shared_bytes = stages ? staged_bytes : 0},
            .header = "rows/device/kernel.hpp",
            .expression = rows_expression(problem.format, staging),
            .expected = {.uses_shared_memory = stages}};
  }
};

struct Blockwise : CpuFamily<AttentionProblem> {
  static constexpr std::string_view name = "blockwise";
  static constexpr std::string_view summary =
      "blocks of queries and keys; the matrix of logits never exists as a whole";

  static PlannedCall plan(const AttentionProblem& problem, const CpuConfig& config, const DeviceSpec&) {
    PlannedCall call;
    call.steps.emplace_back(HostCall{"attend", [problem, threads = config.threads](const CallTensors& tensors) {
                                       cpu::attention(problem, named(tensors), threads);
                                     }});
    return call;
  }
};

}  // namespace

std::string simple_expression(const KernelFormats& formats, std::int64_t head_dim, std::int64_t value_dim) {
  return fmt::format("thresher::strategies::attention::simple<{}, {}, {}, {}, {}>", element_argument(formats.output),
                     head_dim, value_dim, element_argument(formats.keys), element_argument(formats.queries));
}

const Strategy<AttentionProblem>& simple_strategy() { return strategy_of<Simple>(); }

std::string rows_expression(Format format, Staging staging) {
  return fmt::format("thresher::strategies::attention::rows<{}, {}, thresher::strategies::attention::Staging::{}>",
                     element_argument(format), row_head_dim, variant(staging).enumerator);
}

const Strategy<AttentionProblem>& rows_strategy() { return strategy_of<Rows<Staging::none>>(); }
const Strategy<AttentionProblem>& rows_shared_strategy() { return strategy_of<Rows<Staging::by_row>>(); }
const Strategy<AttentionProblem>& rows_coalesced_strategy() { return strategy_of<Rows<Staging::coalesced>>(); }

const Strategy<AttentionProblem>& blockwise_strategy() { return strategy_of<Blockwise>(); }

}  // namespace thresher::strategies::attention
