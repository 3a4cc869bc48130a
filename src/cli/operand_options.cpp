#include "cli/operand_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "cli/options.hpp"

namespace thresher::cli {
namespace {

const std::map<std::string, Numerics> all_numerics{{"exact", Numerics::exact}, {"fast", Numerics::fast}};
const std::map<std::string, ScaleLayout> scale_layouts{{"row-major", ScaleLayout::row_major},
                                                       {"blocked", ScaleLayout::blocked}};

}  // namespace

void OperandOptions::add_to(CLI::App& command) {
  add_device(command, device);
  command.add_option("--numerics", numerics, "fast: NVFP4 rounded to e4m3, on a Hopper GPU")
      ->transform(CLI::CheckedTransformer(all_numerics))
      ->option_text("exact|fast");
  command.add_option("--scale-layout", scale_layout, "How NVFP4 scales lie in the file")
      ->transform(CLI::CheckedTransformer(scale_layouts))
      ->option_text("row-major|blocked");
}

}  // namespace thresher::cli
