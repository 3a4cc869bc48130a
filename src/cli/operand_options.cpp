#include "cli/operand_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace thresher::cli {
namespace {

const std::map<std::string, Numerics> all_numerics{{"exact", Numerics::exact}, {"fast", Numerics::fast}};
const std::map<std::string, ScaleLayout> scale_layouts{{"row-major", ScaleLayout::row_major},
                                                       {"blocked", ScaleLayout::blocked}};

}  // namespace

void OperandOptions::add_to(CLI::App& command) {
  command.add_option("--device", device, "cpu or gpu; default: a GPU if there is one")
      ->check(CLI::IsMember({"cpu", "gpu"}));
  command.add_option("--numerics", numerics, "fast: NVFP4 rounded to e4m3, on a Hopper GPU")
      ->transform(CLI::CheckedTransformer(all_numerics))
      ->option_text("exact|fast");
  command.add_option("--scale-layout", scale_layout, "How NVFP4 scales lie in the file")
      ->transform(CLI::CheckedTransformer(scale_layouts))
      ->option_text("row-major|blocked");
}

Device OperandOptions::chosen_device() const {
  if (device == "cpu") {
    return Device::cpu();
  }
  return device == "gpu" ? Device::cuda(0) : Device::best();
}

}  // namespace thresher::cli
