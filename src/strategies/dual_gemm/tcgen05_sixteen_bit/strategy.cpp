#include "strategies/dual_gemm/tcgen05_sixteen_bit/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/candidates.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/host/work.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/launch.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/obstacles.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/program.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace tcgen05_sixteen_bit {
namespace {

/// Operand, output and activation: what a problem decides.
Config for_problem(Config config, const DualGemmProblem& problem) {
  config.operand = problem.a == Format::fp16 ? Number::fp16 : Number::bf16;
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

/// The ring's slots and one more, and `rest` along K: few enough to be quick. A persistent block has more than one
/// tile.
DualGemmProblem beyond_a_tile(const DualGemmProblem& problem, const Config& config, std::int64_t rest) {
  const std::int64_t outputs = tile_outputs(config);
  return with_extents(problem, config.block_tokens + 1, config.persistent ? 2 * outputs + 5 : outputs + 5,
                      std::int64_t{slot_k} * (config.stages + 1) + rest);
}

constexpr std::int64_t ragged = 8;

Sample<DualGemmProblem> sample_of(const Config& config) {
  const DualGemmProblem problem{.a = format_of(config.operand),
                                .b = format_of(config.operand),
                                .out = format_of(config.output),
                                .activation = {.kind = kind_of(config.activation)}};
  return {beyond_a_tile(problem, config, ragged), knob_table().knobs(config)};
}

class SixteenBitStrategy final : public Strategy<DualGemmProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "tcgen05_sixteen_bit"; }
  [[nodiscard]] std::string_view summary() const override {
    return "16-bit tokens and weights where they lie on Blackwell's tensor cores, sums in tensor memory";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  /// The library's products are known to be right on such cards; this has run on none.
  [[nodiscard]] Role role() const override { return Role::by_name; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return knob_table().help(); }

  [[nodiscard]] std::optional<std::string> not_made_for(const DualGemmProblem& problem,
                                                        const DeviceSpec& device) const override {
    const bool is_16_bit = problem.a == Format::fp16 || problem.a == Format::bf16;
    if (!is_16_bit || problem.a != problem.b || device.matrix_unit != MatrixUnit::tcgen05) {
      return fmt::format(
          "strategy tcgen05_sixteen_bit needs fp16 with fp16 or bf16 with bf16 and a Blackwell GPU, not {} with {} on "
          "{}",
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
    return tcgen05_sixteen_bit::obstacles(wanted, device);
  }

  [[nodiscard]] std::vector<Knobs> candidates(const DualGemmProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    (void)config(problem, knobs);
    if (not_made_for(problem, device)) {
      return {};
    }
    std::vector<Knobs> found;
    for (const Config& tile : tcgen05_sixteen_bit::candidates(problem.m)) {
      Config candidate = knob_table().with(for_problem(tile, problem), knobs, name());
      candidate.stages = knobs.find("stages") == nullptr ? most_stages_of(candidate) : candidate.stages;
      const Knobs all = knob_table().knobs(candidate);
      if (candidate.stages > 0 && tcgen05_sixteen_bit::obstacles(candidate, device).empty() &&
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
    return tcgen05_sixteen_bit::work(problem, config(problem, knobs));
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
            with_extents(problem, 1, 1, ragged)};
  }

  [[nodiscard]] std::vector<Sample<DualGemmProblem>> samples() const override {
    std::vector<Sample<DualGemmProblem>> found;
    std::transform(small_config_list.begin(), small_config_list.end(), std::back_inserter(found), sample_of);
    return found;
  }

 private:
  [[nodiscard]] Config config(const DualGemmProblem& problem, const Knobs& knobs) const {
    return for_problem(knob_table().with({}, knobs, name()), problem);
  }
};

}  // namespace
}  // namespace tcgen05_sixteen_bit

const Strategy<DualGemmProblem>& tcgen05_sixteen_bit_strategy() {
  static const tcgen05_sixteen_bit::SixteenBitStrategy strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
