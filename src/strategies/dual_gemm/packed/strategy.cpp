#include "strategies/dual_gemm/packed/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/packed/candidates.hpp"
#include "strategies/dual_gemm/packed/host/work.hpp"
#include "strategies/dual_gemm/packed/launch.hpp"
#include "strategies/dual_gemm/packed/obstacles.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace packed {
namespace {

/// Operand, output and activation: what a problem decides.
Config for_problem(Config config, const DualGemmProblem& problem) {
  const bool is_bf16 = config.numerics == Numerics::exact && problem.a == Format::bf16;
  config.operand = is_bf16 ? Number::bf16 : Number::fp16;
  config.output = number_of(problem.out);
  config.activation = code_of(problem.activation.kind);
  return config;
}

Numerics asked_numerics(const Knobs& knobs) {
  const std::string* numerics = knobs.find("numerics");
  return numerics != nullptr && *numerics == "fast" ? Numerics::fast : Numerics::exact;
}

DualGemmProblem with_extents(DualGemmProblem problem, std::int64_t m, std::int64_t n, std::int64_t k) {
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

/// The ring's slots and one more for each half of a split, and `rest` along K: few enough to be quick.
DualGemmProblem beyond_a_tile(const DualGemmProblem& problem, const Config& config, std::int64_t rest) {
  const auto slot_k = config.blocks_per_slot * static_cast<std::int64_t>(weight_block_k(config));
  return with_extents(problem, config.block_tokens + 1, tile_outputs(config) + 5,
                      slot_k * (config.split_k * config.stages + 1) + rest);
}

constexpr std::int64_t ragged = 16;

Sample<DualGemmProblem> sample_of(const Config& config) {
  const DualGemmProblem problem{.a = config.operand == Number::bf16 ? Format::bf16 : Format::nvfp4,
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

class PackedStrategy final : public Strategy<DualGemmProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "packed"; }
  [[nodiscard]] std::string_view summary() const override {
    return "NVFP4 weights, packed once, made into the matrix unit's operand in registers";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role() const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return knob_table().help(); }

  [[nodiscard]] std::optional<std::string> not_made_for(const DualGemmProblem& problem,
                                                        const DeviceSpec& device) const override {
    if (problem.b != Format::nvfp4 || device.matrix_unit != MatrixUnit::wgmma) {
      return fmt::format("strategy packed needs nvfp4 weights and a Hopper GPU, not {} with {} on {}",
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
    return packed::obstacles(wanted, device);
  }

  [[nodiscard]] std::vector<Knobs> candidates(const DualGemmProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    (void)config(problem, knobs);
    if (not_made_for(problem, device)) {
      return {};
    }
    std::vector<Knobs> found;
    for (const Config& tile : packed::candidates(asked_numerics(knobs), problem.m)) {
      const Config candidate = knob_table().with(for_problem(tile, problem), knobs, name());
      const Knobs all = knob_table().knobs(candidate);
      if (packed::obstacles(candidate, device).empty() && std::find(found.begin(), found.end(), all) == found.end()) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const DualGemmProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    return planned_call(problem, feasible_config(problem, knobs, device));
  }

  [[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    return packed::work(problem, config(problem, knobs));
  }

  [[nodiscard]] std::optional<ProfiledCall> profiled(const DualGemmProblem& problem, const Knobs& knobs,
                                                     const DeviceSpec& device,
                                                     const ProfileRequest& request) const override {
    Config wanted = feasible_config(problem, knobs, device);
    wanted.profiled = request.timestamps;
    wanted.ablation = request.ablation;
    PlannedCall call = planned_call(problem, wanted);
    const std::size_t step = call.preparation_steps;
    return ProfiledCall{std::move(call), step, shape_of(wanted)};
  }

  /// With whole blocks along K tokens of 16 bits are read where they lie; else they are padded first.
  [[nodiscard]] std::vector<DualGemmProblem> edges(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec&) const override {
    const Config wanted = config(problem, knobs);
    return {beyond_a_tile(problem, wanted, ragged), beyond_a_tile(problem, wanted, 0),
            with_extents(problem, 1, 1, ragged)};
  }

  [[nodiscard]] std::vector<Sample<DualGemmProblem>> built_in() const override {
    return samples_of(default_config_list);
  }
  [[nodiscard]] std::vector<Sample<DualGemmProblem>> samples() const override { return samples_of(small_config_list); }

 private:
  [[nodiscard]] Config config(const DualGemmProblem& problem, const Knobs& knobs) const {
    return for_problem(knob_table().with({}, knobs, name()), problem);
  }
  [[nodiscard]] Config feasible_config(const DualGemmProblem& problem, const Knobs& knobs,
                                       const DeviceSpec& device) const {
    refuse_obstacles(name(), knobs, obstacles(problem, knobs, device));
    return config(problem, knobs);
  }
};

}  // namespace
}  // namespace packed

const Strategy<DualGemmProblem>& packed_strategy() {
  static const packed::PackedStrategy strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
