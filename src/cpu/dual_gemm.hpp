#pragma once
/// The dual GEMM on this CPU. Arguments arrive validated: shapes, formats, K a multiple of 8 (16 for NVFP4), contiguous
/// columns, any row strides, no overlap of C with an operand.
///
/// Operands are multiplied as bf16 with float32 accumulation where the CPU does that natively, else as float32. bf16
/// products are exact: NVFP4's value × scale fits in bf16, fp16 is split into a high and a low bf16 part, which costs
/// two products (four for fp16 by fp16). bf16 matrix instructions take subnormals for zero, so a run whose 16-bit
/// operands hold values small enough for that to be felt, or an Inf that a split cannot carry (operand.hpp says exactly
/// when), is done again in float32: right, and some ten times slower. NVFP4 by NVFP4 or by fp16 never needs that.
///
/// QuantizedOutput outputs are made of outputs in float32, which are kept in the workspace.
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

  /// Bytes that `run` needs at a workspace aligned to 64 bytes. Bytes it never touches (those for float32 above) cost
  /// no memory where pages are given out on first use.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  /// Writes C[m, n] for the rows that `a` has, at most the problem's; no rows write nothing.
  virtual void run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                   void* workspace) const = 0;
};

/// "interleaved", the default: block by block of N, dequantises a block of B1 and of B2, multiplies both by A while
/// that is in cache, activates and stores. Keeps A and one block of B1 and B2 a thread in its workspace. "two_pass":
/// dequantises all of A, B1 and B2, makes two whole products, then activates. Keeps all of it.
[[nodiscard]] std::vector<std::string> dual_gemm_strategies();

/// `threads` 0 means all. Throws Error(invalid_argument) for an unknown strategy.
[[nodiscard]] std::unique_ptr<const DualGemmKernel> plan_dual_gemm(std::string_view strategy,
                                                                   const DualGemmProblem& problem, int threads = 0);

}  // namespace thresher::cpu
