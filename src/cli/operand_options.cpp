#include "cli/operand_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/by_name.hpp"
#include "cli/options.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {

void OperandOptions::add_to(CLI::App& command) {
  add_device(command, device);
  command.add_option("--numerics", numerics, "fast: NVFP4 rounded to e4m3, on a Hopper GPU")
      ->transform(by_name(all_numerics))
      ->option_text("exact|fast");
  scale_layout_option = command.add_option("--scale-layout", scale_layout, "How NVFP4 scales lie in the file")
                            ->transform(by_name(all_scale_layouts))
                            ->option_text("row-major|blocked");
}

void OperandOptions::check_scale_layout(std::initializer_list<Format> operands) const {
  const bool has_scales =
      std::any_of(operands.begin(), operands.end(), [](Format format) { return format_traits(format).has_scales(); });
  if (scale_layout_option->count() > 0 && !has_scales) {
    throw Error(ErrorCode::invalid_argument, "--scale-layout: no tensor that is read has NVFP4 scales: leave it out");
  }
}

}  // namespace thresher::cli
