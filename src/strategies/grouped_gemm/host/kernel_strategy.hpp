#pragma once
/// The strategy object of a grouped GEMM. What its kernels differ in, `Kernels` says, a class of static members:
///
///   name, summary, Config, knob_table()
///   unsupported_reason(problem, device)       as Strategy has it
///   quantizes_in_second_pass(problem)             whether its outputs are requantised in a pass of their own; without
///   it the
///                                       kernels take no such outputs
///   operand(config, problem)            number that is multiplied, where Config has a choice of it
///   formats(config)                     of a problem that a sample of these knobs is
///   usual(problem, knobs)               what knobs are that nobody names, where Config{} does not say it
///   candidates(problem, knobs)          configurations worth predicting; what the problem decides need not be set
///   obstacles(problem, config, device)
///   work(problem, config)
///   plan(problem, config, device)
///   multi_tile_sample(config), least(config)
///                                       extents of samples: several tiles of every rung, outputs beyond a tile and K
///                                       beyond the ring; and as small as there are
///   default_configs(), small_configs()  compiled ahead, and for the emulator
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/integers.hpp"
#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/dense.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/refusal.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

using dual_gemm::OperandFormats;

template <class Kernels>
class KernelStrategy final : public Strategy<ProductProblem> {
 public:
  using Config = typename Kernels::Config;

  [[nodiscard]] std::string_view name() const override { return Kernels::name; }
  [[nodiscard]] std::string_view summary() const override { return Kernels::summary; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const ProductProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return Kernels::knob_table().help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem& problem,
                                                              const DeviceSpec& device) const override {
    auto sentence = Kernels::unsupported_reason(problem, device);
    if constexpr (requires { Kernels::quantizes_in_second_pass(problem); }) {
      return sentence;
    } else {
      return sentence ? sentence : cannot_quantize_output(name(), problem.out);
    }
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
    std::vector<Knobs> found;
    if (unsupported_reason(problem, device)) {
      return found;
    }
    for (const Config& usual : Kernels::candidates(product, knobs)) {
      const Config candidate = Kernels::knob_table().with(for_problem(usual, product), knobs, name());
      const Knobs all = Kernels::knob_table().knobs(candidate);
      if (Kernels::infeasible_reasons(product, candidate, device).empty() &&
          std::find(found.begin(), found.end(), all) == found.end()) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    const ProductProblem product = product_of(problem);
    PlannedCall call = Kernels::plan(product, config(product, knobs), device);
    if (product != problem) {
      call = with_output_quantization(std::move(call), problem);
    }
    return call;
  }

  [[nodiscard]] WorkModel work(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    const ProductProblem product = product_of(problem);
    WorkModel work = Kernels::work(product, config(product, knobs));
    return product == problem ? work : with_output_quantization(std::move(work), problem);
  }

  [[nodiscard]] std::vector<ProductProblem> edges(const ProductProblem& problem, const Knobs& knobs,
                                                  const DeviceSpec&) const override {
    const Config of_product = config(product_of(problem), knobs);
    std::vector<ProductProblem> found{with_extents(problem, Kernels::multi_tile_sample(of_product)),
                                      with_extents(problem, Kernels::least(of_product))};
    for (ProductProblem& edge : found) {
      edge.n = round_up(edge.n, std::int64_t{format_traits(edge.out).n_multiple});
    }
    return found;
  }

  [[nodiscard]] std::vector<Sample<ProductProblem>> built_in() const override {
    return samples_of(Kernels::default_configs());
  }
  [[nodiscard]] std::vector<Sample<ProductProblem>> samples() const override {
    return samples_of(Kernels::small_configs());
  }

 private:
  /// What the kernel computes: the problem, but with outputs in float32 where these are requantised behind it.
  static ProductProblem product_of(const ProductProblem& problem) {
    if constexpr (requires { Kernels::quantizes_in_second_pass(problem); }) {
      if (format_traits(problem.out).is_requantised() && Kernels::quantizes_in_second_pass(problem)) {
        return unrounded(problem);
      }
    }
    return problem;
  }

  /// What a problem decides.
  static Config for_problem(Config config, const ProductProblem& problem) {
    if constexpr (requires { config.operand; }) {
      config.operand = Kernels::operand(config, problem);
    }
    if constexpr (requires { config.token_scaling; }) {
      config.token_scaling = dual_gemm::scaling_of(problem.a);
      config.weight_scaling = dual_gemm::scaling_of(problem.b);
    }
    config.output = dual_gemm::number_of(problem.out);
    if constexpr (requires { config.output_scaling; }) {
      config.output_scaling = dual_gemm::scaling_of(problem.out);
    }
    config.matrices = problem.activation ? 2 : 1;
    config.activation =
        problem.activation ? dual_gemm::code_of(problem.activation->kind) : dual_gemm::ActivationCode::silu;
    config.bias = problem.bias;
    config.row_weights = problem.row_weights;
    config.gathered = problem.layout == ProductRows::gathered;
    return config;
  }

  static ProductProblem problem_of(const Config& config) {
    const OperandFormats formats = Kernels::formats(config);
    ProductProblem problem;
    problem.layout = config.gathered ? ProductRows::gathered : ProductRows::contiguous;
    problem.a = formats.tokens;
    problem.b = formats.weights;
    problem.out = out_of(config);
    problem.bias = config.bias;
    problem.row_weights = config.row_weights;
    if (config.matrices == 2) {
      problem.activation = Activation{.kind = dual_gemm::kind_of(config.activation)};
    }
    return problem;
  }

  static Format out_of(const Config& config) {
    if constexpr (requires { config.output_scaling; }) {
      return dual_gemm::format_of(config.output, config.output_scaling);
    } else {
      return dual_gemm::format_of(config.output);
    }
  }

  template <class Configs>
  static std::vector<Sample<ProductProblem>> samples_of(const Configs& configs) {
    std::vector<Sample<ProductProblem>> found;
    std::transform(configs.begin(), configs.end(), std::back_inserter(found), [](const Config& config) {
      return Sample<ProductProblem>{with_extents(problem_of(config), Kernels::multi_tile_sample(config)),
                                    Kernels::knob_table().knobs(config)};
    });
    return found;
  }

  [[nodiscard]] Config config(const ProductProblem& problem, const Knobs& knobs) const {
    return for_problem(Kernels::knob_table().with(usual(problem, knobs), knobs, name()), problem);
  }
  static Config usual(const ProductProblem& problem, const Knobs& knobs) {
    if constexpr (requires { Kernels::usual(problem, knobs); }) {
      return Kernels::usual(problem, knobs);
    } else {
      return {};
    }
  }
};

}  // namespace thresher::strategies::grouped_gemm
