#include "strategies/dual_gemm/tcgen05/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/tcgen05/candidates.hpp"
#include "strategies/dual_gemm/tcgen05/host/work.hpp"
#include "strategies/dual_gemm/tcgen05/launch.hpp"
#include "strategies/dual_gemm/tcgen05/obstacles.hpp"
#include "strategies/dual_gemm/tcgen05/program.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace tcgen05 {
namespace {

/// Output and activation: what a problem decides.
Config for_problem(Config config, const DualGemmProblem& problem) {
  config.output = number_of(problem.out);
  config.activation = code_of(problem.activation.kind);
  return config;
}

DualGemmProblem with_extents(DualGemmProblem problem, std::int64_t m, std::int64_t n, std::int64_t k) {
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

/// The ring's slots and one more for each part of a split, and `rest` along K: few enough to be quick. A persistent
/// block has more than one tile.
DualGemmProblem beyond_a_tile(const DualGemmProblem& problem, const Config& config, std::int64_t rest) {
  const std::int64_t outputs = tile_outputs(config);
  return with_extents(problem, config.block_tokens + 1, config.persistent ? 2 * outputs + 5 : outputs + 5,
                      std::int64_t{slot_k} * (config.split_k * config.stages + 1) + rest);
}

constexpr std::int64_t ragged = 16;

Sample<DualGemmProblem> sample_of(const Config& config) {
  const DualGemmProblem problem{.a = Format::nvfp4,
                                .b = Format::nvfp4,
                                .out = format_of(config.output),
                                .activation = {.kind = kind_of(config.activation)}};
  return {beyond_a_tile(problem, config, ragged), knob_table().knobs(config)};
}

template <class Configs>
std::vector<Sample<DualGemmProblem>> samples_of(const Configs& configs) {
  std::vector<Sample<DualGemmProblem>> found;
  std::transform(configs.begin(), configs.end(), std::back_inserter(found), sample_of);
  return found;
}

class Tcgen05Strategy final : public Strategy<DualGemmProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "tcgen05"; }
  [[nodiscard]] std::string_view summary() const override {
    return "NVFP4 tokens and weights as they are on Blackwell's tensor cores, sums in tensor memory";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role() const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return knob_table().help(); }

  [[nodiscard]] std::optional<std::string> not_made_for(const DualGemmProblem& problem,
                                                        const DeviceSpec& device) const override {
    if (problem.a != Format::nvfp4 || problem.b != Format::nvfp4 || device.matrix_unit != MatrixUnit::tcgen05) {
      return fmt::format("strategy tcgen05 needs nvfp4 tokens, nvfp4 weights and a Blackwell GPU, not {} with {} on {}",
                         thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<std::string> obstacles(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec& device) const override {
    const Config wanted = config(problem, knobs);
    if (auto sentence = not_made_for(problem, device)) {
      return {*sentence};
    }
    return tcgen05::obstacles(problem, wanted, device);
  }

  [[nodiscard]] std::vector<Knobs> candidates(const DualGemmProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    (void)config(problem, knobs);
    if (not_made_for(problem, device)) {
      return {};
    }
    std::vector<Knobs> found;
    for (const Config& tile : tcgen05::candidates(problem.m)) {
      Config candidate = knob_table().with(for_problem(tile, problem), knobs, name());
      candidate.stages = knobs.find("stages") == nullptr ? most_stages_of(candidate) : candidate.stages;
      const Knobs all = knob_table().knobs(candidate);
      if (candidate.stages > 0 && tcgen05::obstacles(problem, candidate, device).empty() &&
          std::find(found.begin(), found.end(), all) == found.end()) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const DualGemmProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_obstacles(name(), knobs, obstacles(problem, knobs, device));
    return planned_call(problem, config(problem, knobs));
  }

  [[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    return tcgen05::work(problem, config(problem, knobs));
  }

  [[nodiscard]] std::optional<ProfiledCall> profiled(const DualGemmProblem& problem, const Knobs& knobs,
                                                     const DeviceSpec& device,
                                                     const ProfileRequest& request) const override {
    refuse_obstacles(name(), knobs, obstacles(problem, knobs, device));
    Config wanted = config(problem, knobs);
    wanted.profiled = request.timestamps;
    wanted.ablation = request.ablation;
    PlannedCall call = planned_call(problem, wanted);
    const std::size_t step = call.preparation_steps;
    return ProfiledCall{std::move(call), step, pipeline::profile_shape(shape_of(wanted))};
  }

  /// Along K with and without a rest in the last slot; one token and one output.
  [[nodiscard]] std::vector<DualGemmProblem> edges(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec&) const override {
    const Config wanted = config(problem, knobs);
    return {beyond_a_tile(problem, wanted, ragged), beyond_a_tile(problem, wanted, 0),
            with_extents(problem, 1, 1, wanted.split_k == 1 ? ragged : std::int64_t{slot_k} + ragged)};
  }

  [[nodiscard]] std::vector<Sample<DualGemmProblem>> built_in() const override { return samples_of(default_configs()); }
  [[nodiscard]] std::vector<Sample<DualGemmProblem>> samples() const override { return samples_of(small_config_list); }

 private:
  [[nodiscard]] Config config(const DualGemmProblem& problem, const Knobs& knobs) const {
    return for_problem(knob_table().with({}, knobs, name()), problem);
  }
};

}  // namespace
}  // namespace tcgen05

const Strategy<DualGemmProblem>& tcgen05_strategy() {
  static const tcgen05::Tcgen05Strategy strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
