#pragma once
/// What the commands that read operands from a file ask for alike: the device, NVFP4's numerics and scale layout.
#include <initializer_list>
#include <string>

#include "thresher/dual_gemm.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thresher::cli {

struct OperandOptions {
  std::string device = "best";
  Numerics numerics = Numerics::exact;
  ScaleLayout scale_layout = ScaleLayout::row_major;

  CLI::Option* scale_layout_option = nullptr;

  /// Adds --device, --numerics and --scale-layout. This object must outlive the parsing.
  void add_to(CLI::App& command);
  /// Throws Error(invalid_argument) for a --scale-layout that speaks of no operand.
  void check_scale_layout(std::initializer_list<Format> operands) const;
};

}  // namespace thresher::cli
