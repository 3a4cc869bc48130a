#pragma once
/// What the commands that read operands from a file ask for alike: the device, NVFP4's numerics and scale layout.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace CLI {
class App;
}

namespace thresher::cli {

struct OperandOptions {
  std::string device = "best";
  Numerics numerics = Numerics::exact;
  ScaleLayout scale_layout = ScaleLayout::row_major;

  /// Adds --device, --numerics and --scale-layout. This object must outlive the parsing.
  void add_to(CLI::App& command);
};

}  // namespace thresher::cli
