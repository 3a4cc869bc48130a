#include "strategies/dual_gemm/packed/host/emulated.hpp"

#include <fmt/format.h>

#include <array>

#include "machine/emulator/engine/tensor_map.hpp"
#include "strategies/dual_gemm/packed/host/candidates.hpp"
#include "strategies/dual_gemm/packed/kernel.hpp"
#include "strategies/dual_gemm/packed/pack.hpp"
#include "strategies/dual_gemm/packed/program.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

constexpr std::array small{
    Config{.math_warpgroups = 2, .block_tokens = 8, .blocks_per_slot = 4, .stages = 2, .overlap = Overlap::none},
    Config{.math_warpgroups = 2, .block_tokens = 32, .blocks_per_slot = 2, .stages = 3, .overlap = Overlap::step},
    Config{.operand = Number::bf16,
           .output = Number::bf16,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .blocks_per_slot = 1,
           .stages = 3,
           .overlap = Overlap::block},
    Config{.output = Number::fp32,
           .activation = ActivationCode::gelu_tanh,
           .math_warpgroups = 2,
           .block_tokens = 64,
           .blocks_per_slot = 2,
           .stages = 3,
           .split_k = 2,
           .overlap = Overlap::step,
           .loader_registers = 40,
           .math_registers = 216},
    Config{.path = Path::fast,
           .math_warpgroups = 2,
           .block_tokens = 8,
           .blocks_per_slot = 2,
           .stages = 2,
           .overlap = Overlap::none},
    Config{.path = Path::fast, .math_warpgroups = 2, .block_tokens = 32, .blocks_per_slot = 1, .stages = 4},
    Config{.path = Path::fast,
           .output = Number::bf16,
           .activation = ActivationCode::swiglu_clamped,
           .math_warpgroups = 3,
           .block_tokens = 64,
           .blocks_per_slot = 1,
           .stages = 3,
           .split_k = 2,
           .loader_registers = 24,
           .math_registers = 160},
    Config{.path = Path::fast,
           .output = Number::fp32,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .blocks_per_slot = 2,
           .stages = 2,
           .overlap = Overlap::block},
};

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_name(configs[index]), &host_kernel<&kernel<configs[index]>>}), ...);
}

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void add_operand(emulator::GlobalMemory& memory, const std::string& name, const Tensor& tensor, emulator::Use use) {
  const std::int64_t elements = (tensor.shape[0] - 1) * tensor.strides[0] + tensor.shape[1];
  memory.add(name, tensor.data, static_cast<std::size_t>(elements * thresher::bits(tensor.format) / 8), use);
  if (tensor.format == Format::nvfp4) {
    memory.add(name + ".scales", tensor.scales.data, scale_bytes(tensor), emulator::Use::input);
    if (tensor.global_scale != nullptr) {
      memory.add(name + ".global_scale", tensor.global_scale, sizeof(float), emulator::Use::input);
    }
  }
}

machine::Global<float> global_scale(const Tensor& tensor) { return {address(tensor.global_scale)}; }

}  // namespace

std::span<const Config> small_configs() { return small; }

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  add<small>(kernels, std::make_index_sequence<small.size()>());
  add<default_config_list>(kernels, std::make_index_sequence<default_config_list.size()>());
  return kernels;
}

std::string title(const Config& c) {
  return fmt::format("packed {} {} x {} blocks {} stages {} split {} overlap {} output {}",
                     c.path == Path::fast ? "fast" : "exact", tile_outputs(c), c.block_tokens, c.blocks_per_slot,
                     c.stages, c.split_k, static_cast<int>(c.overlap), static_cast<int>(c.output));
}

EmulatedProduct::EmulatedProduct(HostKernel kernel, const Config& config, const EmulatedProblem& problem)
    : kernel_(kernel),
      config_(config),
      problem_(problem),
      extents_{problem.a.shape[0], problem.b1_gate.shape[0], problem.b1_gate.shape[1]},
      prepared_(packed::prepared_tokens(config.path, extents_.m, extents_.k)),
      packed_(packed_bytes(config.path, extents_.n, extents_.k)),
      tokens_(static_cast<std::size_t>(prepared_.bytes)) {}

emulator::GlobalMemory EmulatedProduct::weights_memory(emulator::Use blocks, emulator::Use factors) const {
  emulator::GlobalMemory memory;
  const std::size_t blocks_bytes = config_.path == Path::fast ? factors_offset(extents_.n, extents_.k) : packed_.size();
  memory.add("packed weights", packed_.data(), blocks_bytes, blocks);
  if (config_.path == Path::fast) {
    memory.add("row factors", packed_.data() + blocks_bytes, packed_.size() - blocks_bytes, factors);
  }
  return memory;
}

emulator::Report EmulatedProduct::pack(const emulator::Options& options) {
  PackParams params{};
  params.gate = matrix_of(problem_.b1_gate);
  params.up = matrix_of(problem_.b2_up);
  params.packed = {address(packed_.data())};
  params.k_blocks = weight_k_blocks(config_.path, extents_.k);
  const auto memory = [&](emulator::Use blocks, emulator::Use factors) {
    emulator::GlobalMemory all = weights_memory(blocks, factors);
    add_operand(all, "b1 (gate)", problem_.b1_gate, emulator::Use::input);
    add_operand(all, "b2 (up)", problem_.b2_up, emulator::Use::input);
    return all;
  };
  emulator::LaunchShape shape;
  shape.block = threads;
  if (config_.path == Path::fast) {
    params.row_factors = {address(packed_.data() + factors_offset(extents_.n, extents_.k))};
    shape.grid.x = row_factor_blocks(extents_.n);
    const emulator::Report report = emulator::launch(
        shape, options, memory(emulator::Use::output, emulator::Use::output), [&] { row_factors_kernel(params); });
    if (!report.clean()) {
      return report;
    }
  }
  shape.grid.x = packing_blocks(config_.path, extents_.n, extents_.k);
  return emulator::launch(shape, options, memory(emulator::Use::output, emulator::Use::input), [&] {
    if (config_.path == Path::fast) {
      pack_fast_kernel(params);
    } else {
      pack_kernel(params);
    }
  });
}

emulator::Report EmulatedProduct::prepare_tokens(const emulator::Options& options) {
  emulator::GlobalMemory memory;
  add_operand(memory, "a", problem_.a, emulator::Use::input);
  memory.add("prepared tokens", tokens_.data(), tokens_.size(), emulator::Use::output);
  emulator::LaunchShape shape;
  const std::uint64_t out = address(tokens_.data());
  if (config_.path == Path::fast) {
    FoldTokensParams params = fold_params(problem_.a);
    params.out = {out};
    params.factors = {out + static_cast<std::uint64_t>(prepared_.factors_offset)};
    shape.grid.x = static_cast<std::uint32_t>(extents_.m);
    shape.block = fold_threads;
    shape.dynamic_shared_bytes = fold_shared_bytes;
    return emulator::launch(shape, options, memory, [&] {
      switch (token_format(problem_.a.format)) {
        case TokenFormat::fp16: fold_tokens_kernel<TokenFormat::fp16>(params); break;
        case TokenFormat::bf16: fold_tokens_kernel<TokenFormat::bf16>(params); break;
        case TokenFormat::nvfp4: fold_tokens_kernel<TokenFormat::nvfp4>(params); break;
      }
    });
  }
  WidenTokensParams params = widen_params(problem_.a);
  params.out = {out};
  shape.grid.x = widen_blocks(problem_.a);
  shape.block = widen_threads;
  return emulator::launch(shape, options, memory, [&] {
    if (problem_.a.format == Format::nvfp4) {
      widen_tokens_kernel(params);
    } else {
      pad_tokens_kernel(params);
    }
  });
}

emulator::Report EmulatedProduct::multiply(const emulator::Options& options) {
  emulator::GlobalMemory memory = weights_memory(emulator::Use::input, emulator::Use::input);
  memory.add("prepared tokens", tokens_.data(), tokens_.size(), emulator::Use::earlier_input);
  add_operand(memory, "c", problem_.c, emulator::Use::output);
  Params params = scalars(config_, extents_, problem_.c.strides[0], problem_.activation);
  params.tokens =
      emulator::encode_tensor_map(tokens_map(config_, extents_, address(tokens_.data()), prepared_.row_bytes));
  params.weights = {address(packed_.data())};
  params.c = {address(problem_.c.data)};
  const std::array scales{&problem_.a, &problem_.b1_gate, &problem_.b2_up};
  const std::array names{"a", "b1 (gate)", "b2 (up)"};
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (scales[i]->global_scale != nullptr) {
      memory.add(std::string(names[i]) + ".global_scale", scales[i]->global_scale, sizeof(float), emulator::Use::input);
    }
  }
  params.token_scale = global_scale(problem_.a);
  params.gate_scale = global_scale(problem_.b1_gate);
  params.up_scale = global_scale(problem_.b2_up);
  if (config_.path == Path::fast) {
    params.row_factors = {address(packed_.data() + factors_offset(extents_.n, extents_.k))};
    params.token_factors = {address(tokens_.data() + prepared_.factors_offset)};
  }
  emulator::LaunchShape shape;
  shape.grid.x = blocks(config_, params);
  shape.block = static_cast<std::uint32_t>(launch_threads(config_));
  shape.cluster.x = static_cast<std::uint32_t>(config_.split_k);
  shape.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(config_));
  shape.after_earlier_grid = true;
  return emulator::launch(shape, options, memory, [&] { kernel_(&params); });
}

emulator::Report EmulatedProduct::run(const emulator::Options& options) {
  emulator::Report report = pack(options);
  if (report.clean()) {
    report = prepare_tokens(options);
  }
  return report.clean() ? multiply(options) : report;
}

}  // namespace thresher::strategies::dual_gemm::packed
