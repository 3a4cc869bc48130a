#include "strategies/gemm/tcgen05/kernel.hpp"

#include <fmt/format.h>

#include "strategies/gemm/tcgen05_family.hpp"

namespace thresher::strategies::gemm::tcgen05 {

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{"thresher::strategies::gemm::tcgen05::Config",
                                       tensor_knobs<Config>({number_knob("operand", &Config::operand),
                                                             scaling_knob("token_scaling", &Config::token_scaling),
                                                             scaling_knob("weight_scaling", &Config::weight_scaling)},
                                                            "stage buffers, 128 bytes along K each")};
  return table;
}

std::string kernel_name(const Config& config) {
  return fmt::format("thresher::strategies::gemm::tcgen05::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return tensor_program(config, "tcgen05_plain", "tcgen05", kernel_name(config));
}

}  // namespace thresher::strategies::gemm::tcgen05
