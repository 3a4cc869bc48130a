#pragma once
/// The strategy object of a dual GEMM that one kernel computes behind what prepares its operands. What such kernels
/// differ in, `Kernels` says, a class of static members:
///
///   name, summary, Config, knob_table()
///   role(problem)                    as Strategy has it
///   unsupported_reason(problem, device)    as Strategy has it
///   operand(config, problem)         number that is multiplied, where Config has a choice of it
///   formats(config)                  of a problem that a sample of these knobs is
///   candidates(problem, knobs)       configurations worth predicting; what the problem decides need not be set
///   quantizes_in_second_pass                   where it is there and true, outputs are requantised in a pass of their
///   own;
///                                    without it the kernels take no such outputs
///   completed(config, knobs)         the same with what follows from other knobs and was not asked for; empty when
///                                    nothing fits
///   obstacles(problem, config, device)
///   work(problem, config)
///   plan(problem, config)
///   profile_shape(config)            of the kernel that is looked into, the first step behind the preparation
///   multi_tile_sample(problem, config, rest), min_k(config)
///                                    samples: beyond a tile and the ring with `rest` along K behind whole slots; and
///                                    as short as there are
///   ragged                           such a rest
///   default_configs(), small_configs()  compiled ahead, and for the emulator
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/refusal.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

template <class Kernels>
class KernelStrategy final : public Strategy<ProductProblem> {
 public:
  using Config = typename Kernels::Config;

  [[nodiscard]] std::string_view name() const override { return Kernels::name; }
  [[nodiscard]] std::string_view summary() const override { return Kernels::summary; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const ProductProblem& problem) const override { return Kernels::role(problem); }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return Kernels::knob_table().help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem& problem,
                                                              const DeviceSpec& device) const override {
    auto sentence = Kernels::unsupported_reason(problem, device);
    return sentence || quantizes_output ? sentence : cannot_quantize_output(name(), problem.out);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    const ProductProblem product = product_of(problem);
    const Config wanted = config(product, knobs);
    if (auto sentence = unsupported_reason(problem, device)) {
      return {*sentence};
    }
    return Kernels::infeasible_reasons(product, wanted, device);
  }

  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    const ProductProblem product = product_of(problem);
    (void)config(product, knobs);
    if (unsupported_reason(problem, device)) {
      return {};
    }
    std::vector<Knobs> found;
    for (const Config& tile : Kernels::candidates(product, knobs)) {
      const std::optional<Config> candidate =
          Kernels::completed(Kernels::knob_table().with(for_problem(tile, product), knobs, name()), knobs);
      if (!candidate || !Kernels::infeasible_reasons(product, *candidate, device).empty()) {
        continue;
      }
      const Knobs all = Kernels::knob_table().knobs(*candidate);
      if (std::find(found.begin(), found.end(), all) == found.end()) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    return planned(problem, feasible_config(problem, knobs, device));
  }

  [[nodiscard]] WorkModel work(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    const ProductProblem product = product_of(problem);
    WorkModel work = Kernels::work(product, config(product, knobs));
    return product == problem ? work : grouped_gemm::with_output_quantization(std::move(work), problem);
  }

  [[nodiscard]] std::optional<ProfiledCall> profiled(const ProductProblem& problem, const Knobs& knobs,
                                                     const DeviceSpec& device,
                                                     const ProfileRequest& request) const override {
    Config wanted = feasible_config(problem, knobs, device);
    wanted.profiled = request.timestamps;
    wanted.ablation = request.ablation;
    PlannedCall call = planned(problem, wanted);
    const std::size_t step = call.preparation_steps;
    return ProfiledCall{std::move(call), step, Kernels::profile_shape(wanted)};
  }

  /// Along K with and without a rest in the last slot; one token and one output.
  [[nodiscard]] std::vector<ProductProblem> edges(const ProductProblem& problem, const Knobs& knobs,
                                                  const DeviceSpec&) const override {
    const Config wanted = config(product_of(problem), knobs);
    std::vector<ProductProblem> found{Kernels::multi_tile_sample(problem, wanted, Kernels::ragged),
                                      Kernels::multi_tile_sample(problem, wanted, 0),
                                      with_extents(problem, 1, 1, Kernels::min_k(wanted))};
    std::transform(found.begin(), found.end(), found.begin(), with_whole_scales);
    return found;
  }

  [[nodiscard]] std::vector<Sample<ProductProblem>> built_in() const override {
    return samples_of(Kernels::default_configs());
  }
  [[nodiscard]] std::vector<Sample<ProductProblem>> samples() const override {
    return samples_of(Kernels::small_configs());
  }

 private:
  static constexpr bool quantizes_output = [] {
    if constexpr (requires { Kernels::quantizes_in_second_pass; }) {
      return Kernels::quantizes_in_second_pass;
    } else {
      return false;
    }
  }();

  /// What the kernel computes: the problem, but with outputs in float32 where these are requantised behind it.
  static ProductProblem product_of(const ProductProblem& problem) {
    return quantizes_output && format_traits(problem.out).is_requantised() ? grouped_gemm::unrounded(problem) : problem;
  }
  static PlannedCall planned(const ProductProblem& problem, const Config& wanted) {
    const ProductProblem product = product_of(problem);
    PlannedCall call = Kernels::plan(product, wanted);
    return product == problem ? call : grouped_gemm::with_output_quantization(std::move(call), problem);
  }

  /// What a problem decides.
  static Config for_problem(Config config, const ProductProblem& problem) {
    if constexpr (requires { config.operand; }) {
      config.operand = Kernels::operand(config, problem);
    }
    if constexpr (requires { config.token_scaling; }) {
      config.token_scaling = scaling_of(problem.a);
      config.weight_scaling = scaling_of(problem.b);
    }
    config.output = number_of(problem.out);
    config.activation = code_of(problem.activation->kind);
    return config;
  }

  static Sample<ProductProblem> sample_of(const Config& config) {
    const OperandFormats formats = Kernels::formats(config);
    const DualGemmProblem problem{.a = formats.tokens,
                                  .b = formats.weights,
                                  .out = format_of(config.output),
                                  .activation = {.kind = kind_of(config.activation)}};
    return {Kernels::multi_tile_sample(problem, config, Kernels::ragged), Kernels::knob_table().knobs(config)};
  }

  template <class Configs>
  static std::vector<Sample<ProductProblem>> samples_of(const Configs& configs) {
    std::vector<Sample<ProductProblem>> found;
    std::transform(configs.begin(), configs.end(), std::back_inserter(found), sample_of);
    return found;
  }

  [[nodiscard]] Config config(const ProductProblem& problem, const Knobs& knobs) const {
    return for_problem(Kernels::knob_table().with({}, knobs, name()), problem);
  }
  [[nodiscard]] Config feasible_config(const ProductProblem& problem, const Knobs& knobs,
                                       const DeviceSpec& device) const {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    return config(product_of(problem), knobs);
  }
};

}  // namespace thresher::strategies::dual_gemm
