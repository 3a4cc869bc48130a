#pragma once
/// The dual GEMM on this CPU. Arguments are validated: shapes, formats, K a multiple of 8 (16 for NVFP4), contiguous
/// columns, any row strides, and C must not overlap an operand.
///
/// Operands are multiplied as bf16 with float32 accumulation if the CPU does that natively, otherwise as float32. bf16
/// products are exact. NVFP4's value × scale fits in bf16; fp16 is split into a high and a low bf16 part, which costs
/// two products (four for fp16 by fp16).
///
/// bf16 matrix instructions flush subnormals to zero. So a run is repeated in float32 if its 16-bit operands hold
/// values small enough to matter. The same applies to an Inf that a split cannot represent (operand.hpp has the exact
/// rule). The result is then right, but some ten times slower. NVFP4 by NVFP4 or by fp16 never needs that.
///
/// A quantized output is computed from a float32 output in the workspace.
///
/// Results are bitwise equal from run to run.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// A planned dual GEMM. Safe to run from several threads, each with its own workspace.
class DualGemmKernel {
 public:
  DualGemmKernel() = default;
  DualGemmKernel(const DualGemmKernel&) = delete;
  DualGemmKernel& operator=(const DualGemmKernel&) = delete;
  virtual ~DualGemmKernel() = default;

  /// Bytes that `run` needs in a workspace aligned to 64 bytes. Untouched bytes (those for float32 above) cost no
  /// memory if the system allocates pages on first use.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  /// Writes C[m, n] for the rows that `a` has, at most the problem's; without rows it writes nothing.
  virtual void run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                   void* workspace) const = 0;
};

/// "interleaved", the default, goes through N block by block: it dequantizes a block of B1 and of B2, multiplies both
/// by A while they are in cache, activates and stores. Its workspace keeps A and one block of B1 and B2 per thread.
/// "two_pass" dequantizes all of A, B1 and B2, computes two whole products, then activates. Its workspace keeps all of
/// it.
[[nodiscard]] std::vector<std::string> dual_gemm_strategies();

/// `threads` 0 means all. Throws Error(invalid_argument) for an unknown strategy.
[[nodiscard]] std::unique_ptr<const DualGemmKernel> plan_dual_gemm(std::string_view strategy,
                                                                   const DualGemmProblem& problem, int threads = 0);

}  // namespace thresher::cpu
