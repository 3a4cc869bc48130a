#include "strategies/attention/rows/strategy.hpp"

#include "strategies/attention/gpu_strategy.hpp"

namespace thresher::strategies::attention {
namespace {

using Config = Launched<NoKnobs>;

class Rows final : public GpuStrategy<NoKnobs> {
 public:
  Rows(std::string_view name, std::string_view summary, Staging staging)
      : GpuStrategy(name, summary, Role::by_name, {"", {dependent_launch_knob<Config>()}}), staging_(staging) {}

 protected:
  /// A thread keeps a row in registers.
  [[nodiscard]] Abilities abilities() const override { return {.head_dims = {row_head_dim}}; }
  [[nodiscard]] Geometry geometry_of(const Config&) const override {
    return {
        .tile_rows = row_threads, .threads = row_threads, .shared_bytes = staging_ == Staging::none ? 0 : staged_bytes};
  }
  [[nodiscard]] std::string header() const override { return "rows/device/kernel.hpp"; }
  [[nodiscard]] std::string expression(const AttentionProblem& problem, const Config&) const override {
    return rows_expression(problem.format, staging_);
  }
  [[nodiscard]] Expectations expectations(const Config&, const AttentionProblem&) const override {
    Expectations expected;
    expected.uses_shared_memory = staging_ != Staging::none;
    return expected;
  }

 private:
  Staging staging_;
};

}  // namespace

std::string rows_expression(Format format, Staging staging) {
  const char* const how = staging == Staging::none ? "none" : staging == Staging::by_row ? "by_row" : "coalesced";
  return fmt::format("thresher::strategies::attention::rows<{}, {}, thresher::strategies::attention::Staging::{}>",
                     element_argument(format), row_head_dim, how);
}

const Strategy<AttentionProblem>& rows_strategy() {
  static const Rows strategy("rows", "one thread for a query, keys and values straight from global memory",
                             Staging::none);
  return strategy;
}

const Strategy<AttentionProblem>& rows_shared_strategy() {
  static const Rows strategy("rows_shared", "the same with keys and values staged in shared memory, a row a thread",
                             Staging::by_row);
  return strategy;
}

const Strategy<AttentionProblem>& rows_coalesced_strategy() {
  static const Rows strategy("rows_coalesced", "the same with keys and values staged in the order in which they lie",
                             Staging::coalesced);
  return strategy;
}

}  // namespace thresher::strategies::attention
