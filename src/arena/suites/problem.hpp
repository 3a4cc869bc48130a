#pragma once
/// One problem of a suite: an operation with its shape, formats and options.
#include <cstdint>
#include <string>
#include <vector>

#include "thresher/attention.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// An attention of a suite: what is computed, and how its tensors lie in memory.
struct AttentionTask {
  AttentionProblem problem;
  bool lse = false;         ///< the logarithms of the rows' sums are outputs too
  bool rows_first = false;  ///< memory order [B,S,H,D] instead of [B,H,S,D]; always so with variable length
  /// Variable length: queries and keys of each sequence, problem.batch of them.
  std::vector<std::int64_t> query_lengths{};
  std::vector<std::int64_t> key_lengths{};
  bool operator==(const AttentionTask&) const = default;
};

struct Problem {
  std::string operation = "dual_gemm";
  DualGemmProblem dual_gemm;                          ///< of that operation
  ScaleLayout scale_layout = ScaleLayout::row_major;  ///< of every NVFP4 operand
  AttentionTask attention{};                          ///< of that operation
  bool operator==(const Problem&) const = default;
};

/// "256x4096x7168 nvfp4*nvfp4->fp16", or for attention batch, heads (query heads/key heads), queries (queries:keys) and
/// head dimension: "1x32/8x2048x128 bf16 causal"; followed by what is not the default. Different problems have
/// different labels.
[[nodiscard]] std::string label(const Problem& problem);

}  // namespace thresher::arena
