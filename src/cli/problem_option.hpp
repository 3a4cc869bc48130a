#pragma once
/// The problem of a dual GEMM on a command line: MxNxK and formats.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace CLI {
class App;
}

namespace thresher::cli {

struct ProblemArgument {
  std::string shape;
  std::string a = "fp16";
  std::string b = "nvfp4";
  std::string out{};

  /// Adds the argument `problem` and the options --a, --b and --out. This object must outlive the parsing.
  void add_to(CLI::App& command);
  /// Throws Error(invalid_argument) naming the fault.
  [[nodiscard]] DualGemmProblem problem() const;

 private:
  CLI::Option* out_option_ = nullptr;
};

}  // namespace thresher::cli
