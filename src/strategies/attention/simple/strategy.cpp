#include <fmt/format.h>

#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"

namespace thresher::strategies::attention {
namespace {

struct Simple : OneKernel<Simple, NoKnobs> {
  static constexpr Overrides overrides{.role = true, .edges = true, .built_in = true, .samples = true};
  static constexpr std::string_view name = "simple";
  static constexpr std::string_view summary = "one warp for a query: short and obviously right";
  static Role role(const AttentionProblem&) { return Role::fallback; }
  static const KnobTable<Config>& knob_table() { return launch_knobs(); }

  static Abilities abilities() { return all_abilities(); }
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

}  // namespace

std::string simple_expression(const KernelFormats& formats, std::int64_t head_dim, std::int64_t value_dim) {
  return fmt::format("thresher::strategies::attention::simple<{}, {}, {}, {}, {}>", element_argument(formats.output),
                     head_dim, value_dim, element_argument(formats.keys), element_argument(formats.queries));
}

const Strategy<AttentionProblem>& simple_strategy() {
  static const KernelStrategy<Simple> strategy;
  return strategy;
}

}  // namespace thresher::strategies::attention
