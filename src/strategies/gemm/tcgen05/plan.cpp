// What `tcgen05_plain` takes, how much work a configuration is, and what it launches.
#include <fmt/format.h>

#include <cstddef>

#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/gemm/call.hpp"
#include "strategies/gemm/dense.hpp"
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
  return {.shape = shape_of(config),
          .dense = config.dense,
          .tile_widths = tile_widths_of(config),
          .outputs = tile_outputs(config),
          .slot_k = static_cast<int>(slot_k(config)),
          .type = matrix_type(config.operand)};
}

WorkModel work_of(const ProductProblem& problem, const Config& config) {
  const TensorKernelShape shape = kernel_shape(config);
  const double columns = usual_columns(problem, shape);
  const double loaded = columns / config.blocks;
  TensorTiles of;
  of.products = config.matrices * static_cast<double>(slot_products);
  of.product_operations = 2.0 * block_outputs * columns * product_k(config);
  of.operand_bytes = (block_outputs + loaded) * product_row_bytes;
  of.l2_bytes = weight_bytes(config) + loaded * slot_row_bytes;
  constexpr double bytes_of_sum = 4;
  of.tensor_memory_bytes = config.matrices * bytes_of_sum * block_outputs * columns;
  TensorKernel kernel = tensor_work(problem, shape, of);
  WorkModel work;
  if (config.gathered) {
    const double read_and_written_bytes = 2.0 * element_bytes(config.operand);
    const double elements = usual_rows(problem) * static_cast<double>(problem.k);
    work.parts.emplace_back(MemoryPass{"gathering the rows", elements * read_and_written_bytes, true});
  }
  if (!config.dense) {
    kernel.dram_bytes += bytes_read_again(problem, usual_row_tiles(problem, shape.tile_widths));
  }
  work.parts.emplace_back(kernel);
  return work;
}

/// Products of 32 bytes along K, of each matrix. Each matrix and the tokens come through a tensor map.
Expectations expectations(const Config& config) {
  return tensor_expectations(kernel_shape(config), {.kind = config.operand == Number::e4m3 ? "UTCQMMA" : "UTCHMMA",
                                                    .products = config.matrices * static_cast<int>(slot_products),
                                                    .loads = config.matrices + 1,
                                                    .parts = config.matrices,
                                                    .staged_tokens = staged_tokens(config)});
}

// --- static tiles

/// Rows of an operand in boxes of `rows` × slot_k(config).
machine::TensorMapDescription map_of(const Config& config, const Tensor& operand, u32 rows) {
  return tensor_map(device_address(operand.data), element_type(config.operand), machine::Swizzle::b128,
                    {static_cast<machine::u64>(operand.shape[1]), static_cast<machine::u64>(operand.shape[0])},
                    {static_cast<machine::u64>(operand.strides[0] * element_bytes(config.operand))},
                    {slot_k(config), rows});
}

/// Where the scales of a matrix lie; null where there are none, or the one is 1.
machine::Global<float> scales_of(Scaling scaling, const Tensor& matrix) {
  return {scaling == Scaling::row ? device_address(matrix.scales.data) : device_address(matrix.global_scale)};
}

void bind(const Config& config, const Activation& activation, const CallTensors& call, LaunchArguments& out) {
  const CallExtents extents = extents_of(call);
  const Tensor& c = output_of(call);
  DenseParams params{};
  params.token_scales = scales_of(config.token_scaling, tokens_of(call));
  params.gate_scales = scales_of(config.weight_scaling, gate_of(call));
  params.up_scales = scales_of(config.weight_scaling, up_of(call));
  params.c = {device_address(c.data)};
  params.profile = {profile_address(call)};
  params.c_row_stride = static_cast<machine::u64>(c.strides[0]);
  params.m = narrow(extents.rows);
  params.n = narrow(extents.n);
  params.k_steps = narrow(ceil_div(extents.k, slot_k(config)));
  params.c_wide = extents.n % 8 == 0 && c.strides[0] % 8 == 0 ? 1 : 0;
  params.token_tiles = narrow(ceil_div(extents.rows, config.block_tokens));
  params.output_tiles = narrow(ceil_div(extents.n, tile_outputs(config)));
  params.alpha = activation.alpha;
  params.limit = activation.limit;
  params.up_offset = activation.up_offset;
  out.set(params);
  out.grid.x = params.token_tiles * params.output_tiles * narrow(pipeline::cluster_blocks(shape_of(config)));
  out.add_map(offsetof(DenseParams, tokens), map_of(config, tokens_of(call), loaded_tokens(config)));
}

void bind_weights(const Config& config, const CallTensors& call, LaunchArguments& out) {
  out.add_map(offsetof(DenseParams, gate), map_of(config, gate_of(call), block_outputs));
  out.add_map(offsetof(DenseParams, up), map_of(config, up_of(call), block_outputs));
}

void add_operand(std::vector<Access>& accesses, std::size_t tensor, Scaling scaling, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  if (scaling != Scaling::none) {
    accesses.push_back({scaling == Scaling::row ? Access::Memory::scales : Access::Memory::global_scale, tensor, use});
  }
}

std::vector<Access> accesses(const ProductProblem& problem, const Config& config) {
  std::vector<Access> all;
  add_operand(all, tokens_index, config.token_scaling, Access::Use::depends_on_previous);
  add_operand(all, gate_index, config.weight_scaling, Access::Use::reads);
  add_operand(all, up_index, config.weight_scaling, Access::Use::reads);
  add_common_accesses(problem, all);
  if (config.profiled) {
    all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
  }
  return all;
}

PlannedCall dense_call(const ProductProblem& problem, const Config& config) {
  KernelLaunch launch = tensor_launch(kernel_shape(config), 1, program(config), config.dependent_launch);
  launch.accesses = accesses(problem, config);
  launch.bind = [config, activation = *problem.activation](const CallTensors& call, LaunchArguments& out) {
    bind(config, activation, call, out);
    return true;
  };
  launch.bind_weights = [config](const CallTensors& call, LaunchArguments& out) { bind_weights(config, call, out); };
  launch.expected = expectations(config);
  PlannedCall call;
  call.data_alignment = tma_alignment_bytes;
  call.alignments = {
      {tokens_index, tma_alignment_bytes}, {gate_index, tma_alignment_bytes}, {up_index, tma_alignment_bytes}};
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
          .expected = expectations(config)};
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
      "tensor "
      "memory";
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
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return tensor_infeasible_reasons(problem, kernel_shape(config), device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return work_of(problem, config);
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    if (config.dense) {
      return dense_call(problem, config);
    }
    PlannedCall call = planned_call(problem, grouped_kernel(problem, config), device.multiprocessors);
    return problem.is_dense() ? without_offsets(std::move(call)) : call;
  }

  /// Of a layer in BF16. FP16 and dense products are compiled where they are used.
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
