#include "strategies/grouped_gemm/columns/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/grouped_gemm/columns/candidates.hpp"
#include "strategies/grouped_gemm/columns/host/work.hpp"
#include "strategies/grouped_gemm/columns/launch.hpp"
#include "strategies/grouped_gemm/columns/obstacles.hpp"
#include "strategies/grouped_gemm/columns/program.hpp"
#include "strategies/grouped_gemm/host/samples.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::grouped_gemm {
namespace columns {
namespace {

/// What a problem decides.
Config for_problem(Config config, const GroupedProblem& problem) {
  config.operand = dual_gemm::number_of(problem.a);
  config.output = dual_gemm::number_of(problem.out);
  config.matrices = problem.activation ? 2 : 1;
  config.activation = problem.activation ? dual_gemm::code_of(problem.activation->kind) : ActivationCode::silu;
  config.bias = problem.bias;
  config.row_weights = problem.row_weights;
  config.gathered = problem.layout == RowLayout::gathered;
  return config;
}

GroupedProblem problem_of(const Config& config) {
  GroupedProblem problem{.a = dual_gemm::format_of(config.operand),
                         .b = dual_gemm::format_of(config.operand),
                         .out = dual_gemm::format_of(config.output),
                         .bias = config.bias,
                         .row_weights = config.row_weights};
  if (config.matrices == 2) {
    problem.activation = Activation{.kind = dual_gemm::kind_of(config.activation)};
  }
  if (config.gathered) {
    problem.layout = RowLayout::gathered;
  }
  return problem;
}

/// Several tiles of every rung, outputs beyond a tile and K beyond the ring.
GroupedProblem beyond_a_tile(const GroupedProblem& problem, const Config& config) {
  return with_extents(problem, {.experts = 5,
                                .rows = 2 * config.block_tokens + 21,
                                .n = tile_outputs(config) + 8,
                                .k = config.block_k * (config.stages + 1) + 8});
}

Sample<GroupedProblem> sample_of(const Config& config) {
  return {beyond_a_tile(problem_of(config), config), knob_table().knobs(config)};
}

template <class Configs>
std::vector<Sample<GroupedProblem>> samples_of(const Configs& configs) {
  std::vector<Sample<GroupedProblem>> found;
  std::transform(configs.begin(), configs.end(), std::back_inserter(found), sample_of);
  return found;
}

class ColumnsStrategy final : public Strategy<GroupedProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "columns"; }
  [[nodiscard]] std::string_view summary() const override {
    return "16-bit weights as rows of the matrix unit, tokens as its columns, as many as a group has left";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role() const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return knob_table().help(); }

  [[nodiscard]] std::optional<std::string> not_made_for(const GroupedProblem& problem,
                                                        const DeviceSpec& device) const override {
    if (device.matrix_unit != MatrixUnit::wgmma || problem.a != problem.b || !dual_gemm::is_16_bit(problem.a)) {
      return fmt::format("strategy columns takes fp16 with fp16 or bf16 with bf16 on a Hopper GPU, not {} with {} on {}",
                         thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<std::string> obstacles(const GroupedProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec& device) const override {
    const Config wanted = config(problem, knobs);
    if (auto sentence = not_made_for(problem, device)) {
      return {*sentence};
    }
    return columns::obstacles(problem, wanted, device);
  }

  [[nodiscard]] std::vector<Knobs> candidates(const GroupedProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    (void)config(problem, knobs);
    std::vector<Knobs> found;
    if (not_made_for(problem, device)) {
      return found;
    }
    for (const TileShape& tile : tile_shapes_for(problem.rows)) {
      const Config candidate = knob_table().with(with_tile(for_problem({}, problem), tile), knobs, name());
      const Knobs all = knob_table().knobs(candidate);
      if (columns::obstacles(problem, candidate, device).empty() &&
          std::find(found.begin(), found.end(), all) == found.end()) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const GroupedProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_obstacles(name(), knobs, obstacles(problem, knobs, device));
    return planned_call(problem, config(problem, knobs), device.multiprocessors);
  }

  [[nodiscard]] WorkModel work(const GroupedProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    return columns::work(problem, config(problem, knobs));
  }

  [[nodiscard]] std::vector<GroupedProblem> edges(const GroupedProblem& problem, const Knobs& knobs,
                                                  const DeviceSpec&) const override {
    return {beyond_a_tile(problem, config(problem, knobs)),
            with_extents(problem, {.experts = 3, .rows = 2, .n = 8, .k = 8})};
  }

  [[nodiscard]] std::vector<Sample<GroupedProblem>> built_in() const override {
    return samples_of(default_config_list);
  }
  [[nodiscard]] std::vector<Sample<GroupedProblem>> samples() const override { return samples_of(small_config_list); }

 private:
  [[nodiscard]] Config config(const GroupedProblem& problem, const Knobs& knobs) const {
    return for_problem(knob_table().with({}, knobs, name()), problem);
  }
};

}  // namespace
}  // namespace columns

const Strategy<GroupedProblem>& columns_strategy() {
  static const columns::ColumnsStrategy strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
