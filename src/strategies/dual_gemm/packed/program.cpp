#include "strategies/dual_gemm/packed/program.hpp"

#include <fmt/format.h>

namespace thresher::strategies::dual_gemm::packed {
namespace {

constexpr const char* room = "thresher::strategies::dual_gemm::packed::";

/// The configuration as device code: every field, in the order of declaration.
std::string spell(const Config& c) {
  const auto number = [](Number value) {
    return fmt::format("static_cast<{0}Number>({1})", room, static_cast<int>(value));
  };
  return fmt::format(
      "{0}Config{{static_cast<{0}Path>({15}), {1}, {2}, static_cast<{0}ActivationCode>({3}), {4}, {5}, {6}, {7}, {8}, "
      "{9}, static_cast<{0}Overlap>({10}), {11}, {12}, {13}, static_cast<thresher::pipeline::Ablation>({14})}}",
      room, number(c.operand), number(c.output), static_cast<int>(c.activation), c.math_warpgroups, c.block_tokens,
      c.blocks_per_slot, c.stages, c.split_k, c.blocks_resident, static_cast<int>(c.overlap), c.loader_registers,
      c.math_registers, c.profiled, static_cast<int>(c.ablation), static_cast<int>(c.path));
}

}  // namespace

DeviceProgram preparation_program() {
  return {.title = "nvfp4 preparation",
          .text =
              "#include \"strategies/dual_gemm/packed/pack.hpp\"\n#include "
              "\"strategies/dual_gemm/packed/prepare_tokens.hpp\"\n"
              "#include \"strategies/dual_gemm/packed/fold_tokens.hpp\"\n",
          .kernels = {pack_kernel_name(), row_factors_kernel_name(), pack_fast_kernel_name(),
                      widen_tokens_kernel_name(), pad_tokens_kernel_name(), fold_tokens_kernel_name(TokenFormat::nvfp4),
                      fold_tokens_kernel_name(TokenFormat::fp16), fold_tokens_kernel_name(TokenFormat::bf16)},
          .options = {}};
}

std::string pack_kernel_name() { return std::string(room) + "pack_kernel"; }
std::string row_factors_kernel_name() { return std::string(room) + "row_factors_kernel"; }
std::string pack_fast_kernel_name() { return std::string(room) + "pack_fast_kernel"; }
std::string fold_tokens_kernel_name(TokenFormat format) {
  return fmt::format("{0}fold_tokens_kernel<static_cast<{0}TokenFormat>({1})>", room, static_cast<int>(format));
}
std::string widen_tokens_kernel_name() { return std::string(room) + "widen_tokens_kernel"; }
std::string pad_tokens_kernel_name() { return std::string(room) + "pad_tokens_kernel"; }

std::string kernel_name(const Config& config) { return fmt::format("{}kernel<{}>", room, spell(config)); }

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("dual_gemm packed{}, {} outputs x {} tokens, split {}",
                               config.path == Path::fast ? " fast" : "", tile_outputs(config), config.block_tokens,
                               config.split_k),
          .text = "#include \"strategies/dual_gemm/packed/kernel.hpp\"\n",
          .kernels = {kernel_name(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

int shared_bytes(const Config& config) { return pipeline::shared_bytes(shape_of(config)); }
int launch_threads(const Config& config) { return pipeline::threads(shape_of(config)); }

}  // namespace thresher::strategies::dual_gemm::packed
