#include "strategies/gemm/tcgen05/kernel.hpp"

#include <fmt/format.h>

#include "strategies/gemm/tcgen05_family.hpp"

namespace thresher::strategies::gemm::tcgen05 {

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{"thresher::strategies::gemm::tcgen05::Config",
                                       tensor_knobs<Config>({number_knob("operand", &Config::operand),
                                                             scaling_knob("token_scaling", &Config::token_scaling),
                                                             scaling_knob("weight_scaling", &Config::weight_scaling)},
                                                            "slots of the ring, 128 bytes along K each")};
  return table;
}

std::string kernel_name(const Config& config) {
  return fmt::format("thresher::strategies::gemm::tcgen05::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("{} tcgen05_plain, {} outputs x {} tokens, split {}",
                               config.dense ? "dual_gemm" : "grouped_gemm", tile_outputs(config), config.block_tokens,
                               config.split_k),
          .text = "#include \"strategies/gemm/tcgen05/device/operation.hpp\"\n",
          .kernels = {kernel_name(config)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

}  // namespace thresher::strategies::gemm::tcgen05
