#pragma once
/// The launch that quantizes rows: tokens of 16 bits, and outputs that a product left in float32 in the workspace.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/kernel_strategy.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm {

struct QuantizeRowsParams;

/// From fp32 to any quantized format, or from fp16 or bf16 to fp8_row or fp8_block.
std::string quantize_rows_kernel_name(Format values, Format out);
/// All of them that read `values`.
DeviceProgram quantize_rows_program(Format values);

/// The launch without what it reads, writes and binds.
[[nodiscard]] KernelLaunch quantize_launch(Format values, Format out);
/// The codes and the scales of all rows of `c`.
[[nodiscard]] QuantizeRowsParams quantize_params(const Tensor& c);
/// Sets the parameter, and the blocks of its rows.
void bind_quantize(const QuantizeRowsParams& params, Format out, LaunchArguments& arguments);

/// The same problem with outputs in float32: what the product before such a launch is planned for.
[[nodiscard]] ProductProblem unrounded(ProductProblem problem);
/// A call that was planned for unrounded(problem), whose last step is the product, and behind it the launch.
[[nodiscard]] PlannedCall with_output_quantization(PlannedCall call, const ProductProblem& problem);
/// The launch's share of the work, behind the product's.
[[nodiscard]] WorkModel with_output_quantization(WorkModel work, const ProductProblem& problem);

/// A family of kernels with that launch behind them, where `Products::quantizes_in_second_pass(problem)` says so. The
/// kernels are then planned for outputs in float32.
template <class Products>
struct WithOutputQuantization : Products {
  using Config = typename Products::Config;
  static constexpr Overrides overrides = [] {
    Overrides all = Products::overrides;
    all.own_choice = all.completed = all.candidates = all.work = all.profiled = all.edges = true;
    return all;
  }();

  static Config own_choice(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec& device) {
    return Products::own_choice(product(problem), knobs, device);
  }
  static Config completed(const Config& config, const ProductProblem& problem, const Knobs& knobs,
                          const DeviceSpec& device) {
    return Products::completed(config, product(problem), knobs, device);
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return Products::infeasible_reasons(product(problem), config, device);
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec& device) {
    return Products::candidates(product(problem), own, knobs, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    WorkModel work = Products::work(product(problem), config, device);
    return is_split(problem) ? with_output_quantization(std::move(work), problem) : work;
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return whole(Products::plan(product(problem), config, device), problem);
  }
  static std::optional<ProfiledCall> profiled(const ProductProblem& problem, const Config& config,
                                              const DeviceSpec& device, const ProfileRequest& request) {
    std::optional<ProfiledCall> profiled = Products::profiled(product(problem), config, device, request);
    if (profiled) {
      profiled->call = whole(std::move(profiled->call), problem);
    }
    return profiled;
  }
  static std::vector<ProductProblem> edges(const ProductProblem& problem, const Config& config,
                                           const DeviceSpec& device) {
    std::vector<ProductProblem> edges = Products::edges(product(problem), config, device);
    for (ProductProblem& edge : edges) {
      edge.out = problem.out;
      edge = with_whole_scales(edge);
    }
    return edges;
  }

 private:
  static bool is_split(const ProductProblem& problem) {
    return format_traits(problem.out).is_quantized_output() && Products::quantizes_in_second_pass(problem);
  }
  static ProductProblem product(const ProductProblem& problem) {
    return is_split(problem) ? unrounded(problem) : problem;
  }
  static PlannedCall whole(PlannedCall call, const ProductProblem& problem) {
    return is_split(problem) ? with_output_quantization(std::move(call), problem) : call;
  }
};

}  // namespace thresher::strategies::gemm
