#include <fmt/format.h>

#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"

namespace thresher::strategies::attention {
namespace {

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

template <Staging staging>
const Strategy<AttentionProblem>& strategy_with() {
  static const KernelStrategy<Rows<staging>> strategy;
  return strategy;
}

}  // namespace

std::string rows_expression(Format format, Staging staging) {
  return fmt::format("thresher::strategies::attention::rows<{}, {}, thresher::strategies::attention::Staging::{}>",
                     element_argument(format), row_head_dim, variant(staging).enumerator);
}

const Strategy<AttentionProblem>& rows_strategy() { return strategy_with<Staging::none>(); }
const Strategy<AttentionProblem>& rows_shared_strategy() { return strategy_with<Staging::by_row>(); }
const Strategy<AttentionProblem>& rows_coalesced_strategy() { return strategy_with<Staging::coalesced>(); }

}  // namespace thresher::strategies::attention
