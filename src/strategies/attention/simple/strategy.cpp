#include "strategies/attention/simple/strategy.hpp"

#include "strategies/attention/gpu_strategy.hpp"

namespace thresher::strategies::attention {
namespace {

using Config = Launched<NoKnobs>;

class Simple final : public GpuStrategy<NoKnobs> {
 public:
  Simple()
      : GpuStrategy("simple", "one warp for a query: short and obviously right", Role::fallback,
                    {"", {dependent_launch_knob<Config>()}}) {}

  [[nodiscard]] std::vector<Sample<AttentionProblem>> built_in() const override { return long_sequences(); }

 protected:
  [[nodiscard]] Abilities abilities() const override {
    Abilities all = of_any_width();
    all.fp8_keys = true;
    all.fp8_queries = true;
    return all;
  }
  [[nodiscard]] Geometry geometry_of(const Config&) const override {
    return {.tile_rows = simple_warps, .threads = simple_warps * 32};
  }
  [[nodiscard]] std::string header() const override { return "simple/device/kernel.hpp"; }
  [[nodiscard]] std::string expression(const AttentionProblem& problem, const Config&) const override {
    return simple_expression(formats_of(problem), problem.head_dim, effective_value_dim(problem));
  }
  [[nodiscard]] Expectations expectations(const Config&, const AttentionProblem&) const override {
    Expectations expected;
    expected.uses_shared_memory = false;
    return expected;
  }
  /// It takes keys one by one, so that few of them show all that it does.
  [[nodiscard]] std::vector<AttentionProblem> edges_of(const AttentionProblem& problem, const Config&) const override {
    return ragged(problem, simple_warps, 41);
  }
};

}  // namespace

std::string simple_expression(const KernelFormats& formats, std::int64_t head_dim, std::int64_t value_dim) {
  return fmt::format("thresher::strategies::attention::simple<{}, {}, {}, {}, {}>", element_argument(formats.output),
                     head_dim, value_dim, element_argument(formats.keys), element_argument(formats.queries));
}

const Strategy<AttentionProblem>& simple_strategy() {
  static const Simple strategy;
  return strategy;
}

}  // namespace thresher::strategies::attention
