#include "cli/operand_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/by_name.hpp"
#include "cli/options.hpp"

namespace thresher::cli {
void OperandOptions::add_to(CLI::App& command) {
  add_device(command, device);
  command.add_option("--numerics", numerics, "fast: NVFP4 rounded to e4m3, on a Hopper GPU")
      ->transform(by_name(all_numerics))
      ->option_text("exact|fast");
  command.add_option("--scale-layout", scale_layout, "How NVFP4 scales lie in the file")
      ->transform(by_name(all_scale_layouts))
      ->option_text("row-major|blocked");
}

}  // namespace thresher::cli
