#pragma once
/// One problem of a suite: an operation with its shape, formats and options.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

struct Problem {
  std::string operation = "dual_gemm";
  DualGemmProblem dual_gemm;
  ScaleLayout scale_layout = ScaleLayout::row_major;  ///< of every NVFP4 operand
  bool operator==(const Problem&) const = default;
};

/// "256x4096x7168 nvfp4*nvfp4->fp16", followed by what is not the default. Different problems have different labels.
[[nodiscard]] std::string label(const Problem& problem);

}  // namespace thresher::arena
