// The strategy tcgen05_plain: the problems that it takes, the work of a configuration, and its launches.
#include <fmt/format.h>

#include <cstddef>

#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/gemm/call.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/plain_call.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/params.hpp"
#include "strategies/gemm/tcgen05/strategy.hpp"
#include "strategies/gemm/tcgen05_family.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::gemm {
namespace tcgen05 {
namespace {

TensorKernelShape kernel_shape(const Config& config) {
  return tensor_kernel_shape(config, slot_k(config), matrix_type(config.operand));
}

WorkModel work_of(const ProductProblem& problem, const Config& config) {
  const TensorKernelShape shape = kernel_shape(config);
  TensorKernel kernel = tensor_work(problem, shape);
  WorkModel work;
  if (config.gathered) {
    work.parts.emplace_back(gathering_work(problem));
  }
  if (!config.dense) {
    kernel.dram_bytes += bytes_read_again(problem, usual_row_tiles(problem, shape.tile_widths));
  }
  work.parts.emplace_back(kernel);
  return work;
}

// --- static tiles

/// Rows of an operand in boxes of `rows` × slot_k(config).
machine::TensorMapDescription map_of(const Config& config, const Tensor& operand, u32 rows) {
  return tensor_map(device_address(operand.data), element_type(config.operand), machine::Swizzle::b128,
                    {static_cast<machine::u64>(operand.shape[1]), static_cast<machine::u64>(operand.shape[0])},
                    {static_cast<machine::u64>(operand.strides[0] * element_bytes(config.operand))},
                    {slot_k(config), rows});
}

void bind(const ProductProblem& problem, const Config& config, const CallTensors& call, LaunchArguments& out) {
  DenseParams params{};
  params.token_scales = scales_of(config.token_scaling, tokens_of(call));
  params.gate_scales = scales_of(config.weight_scaling, gate_of(call));
  params.up_scales = scales_of(config.weight_scaling, up_of(call));
  params.k_steps = narrow(ceil_div(extents_of(call).k, slot_k(config)));
  set_static_tiles(problem, call, config.block_tokens, tile_outputs(config), params);
  out.set(params);
  out.grid.x = params.token_tiles * params.output_tiles * narrow(pipeline::cluster_blocks(shape_of(config)));
  out.add_map(offsetof(DenseParams, tokens), map_of(config, tokens_of(call), loaded_tokens(config)));
}

void bind_weights(const Config& config, const CallTensors& call, LaunchArguments& out) {
  out.add_map(offsetof(DenseParams, gate), map_of(config, gate_of(call), block_outputs));
  out.add_map(offsetof(DenseParams, up), map_of(config, up_of(call), block_outputs));
}

void add_operand(std::size_t tensor, Scaling scaling, Access::Use use, std::vector<Access>& accesses) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  add_scales(tensor, scaling, use, accesses);
}

std::vector<Access> accesses(const ProductProblem& problem, const Config& config) {
  std::vector<Access> all;
  add_operand(tokens_index, config.token_scaling, Access::Use::depends_on_previous, all);
  add_operand(gate_index, config.weight_scaling, Access::Use::reads, all);
  add_operand(up_index, config.weight_scaling, Access::Use::reads, all);
  add_common_accesses(problem, config.profiled, all);
  return all;
}

PlannedCall dense_call(const ProductProblem& problem, const Config& config) {
  KernelLaunch launch = tensor_launch(kernel_shape(config), 1, program(config), config.dependent_launch);
  launch.accesses = accesses(problem, config);
  launch.bind = [problem, config](const CallTensors& call, LaunchArguments& out) {
    bind(problem, config, call, out);
    return true;
  };
  launch.bind_weights = [config](const CallTensors& call, LaunchArguments& out) { bind_weights(config, call, out); };
  PlannedCall call;
  read_in_place(call);
  call.steps.emplace_back(std::move(launch));
  return call;
}

// --- groups

PlainKernel grouped_kernel(const ProductProblem& problem, const Config& config) {
  const pipeline::TensorShape shape = shape_of(config);
  return {.program = program(config),
          .expression = kernel_name(config),
          .operand = config.operand,
          .token_scaling = config.token_scaling,
          .weight_scaling = config.weight_scaling,
          .matrices = config.matrices,
          .tile_widths = tile_widths_of(config),
          .tile_outputs = tile_outputs(config),
          .boxes = {machine::Swizzle::b128, static_cast<int>(block_outputs), pipeline::many_tensor_rows},
          .block = {.threads = pipeline::threads(shape),
                    .cluster = pipeline::cluster_blocks(shape),
                    .shared_bytes = pipeline::grouped_shared_bytes(shape, narrow(problem.experts)),
                    .profiled = shape.profiled},
          .dependent_launch = config.dependent_launch,
          .expected = tensor_expectations(kernel_shape(config))};
}

// --- the family

struct Family : TensorFamily<Family, Config> {
  static constexpr Overrides overrides = [] {
    Overrides own = TensorFamily<Family, Config>::overrides;
    own.role = true;
    return own;
  }();
  static constexpr std::string_view name = "tcgen05_plain";
  static constexpr std::string_view summary =
      "16-bit or FP8 tokens and weights, of all experts too, where they lie on Blackwell's tensor cores, sums in "
      "tensor memory";
  static constexpr std::array grouped_widths{16, 32, 64, 96, 128, 160, 192, 256};
  static constexpr std::int64_t n_granule = 8;
  /// Rows of operands end where TMA can tell.
  static std::int64_t k_granule(const Config& config) { return tma_alignment_bytes / element_bytes(config.operand); }

  /// The library's dense products of 16 bits are known to be right on such cards; this has run on none.
  static Role role(const ProductProblem& problem) {
    return is_16_bit(problem.a) && has_static_tiles(problem) ? Role::by_name : Role::competes;
  }

  static const KnobTable<Config>& knob_table() { return tcgen05::knob_table(); }
  static TensorKernelShape kernel_shape(const Config& config) { return tcgen05::kernel_shape(config); }
  static void set_operands(Config& config, const ProductProblem& problem) {
    config.operand = number_of(problem.a);
    config.token_scaling = scaling_of(problem.a);
    config.weight_scaling = scaling_of(problem.b);
  }
  static OperandFormats formats(const Config& config) {
    return {format_of(config.operand, config.token_scaling), format_of(config.operand, config.weight_scaling)};
  }

  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool takes =
        (is_16_bit(problem.a) && problem.a == problem.b) || (is_plain_fp8(problem.a) && is_plain_fp8(problem.b));
    if (!takes || device.matrix_unit != MatrixUnit::tcgen05) {
      return fmt::format(
          "strategy tcgen05_plain needs fp16 with fp16, bf16 with bf16, or fp8_tensor or fp8_row with either, and a "
          "Blackwell GPU, not {} with {} on {}",
          thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    return cannot_quantize_output(name, problem.out);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return work_of(problem, config);
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    if (config.dense) {
      return dense_call(problem, config);
    }
    return planned_call(problem, grouped_kernel(problem, config), device.multiprocessors);
  }

  /// Those of a layer in BF16. FP16 and dense products are compiled where they are used.
  static auto default_configs() { return default_grouped_configs<Config>(); }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace tcgen05

const Strategy<ProductProblem>& tcgen05_plain_strategy() {
  static const KernelStrategy<tcgen05::Family> strategy;
  return strategy;
}

}  // namespace thresher::strategies::gemm
