#pragma once
/// Products block by block of the weights, one or two matrices at a time, for one type of product. It is the strategy
/// "interleaved" of the dual GEMM, and computes each expert of the grouped products.
#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/finish.hpp"
#include "cpu/operand.hpp"
#include "cpu/product.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::cpu {

/// A product of A [m,k] and one matrix [n,k], or gate and up.
struct InterleavedShape {
  std::int64_t m = 0;  ///< the maximum number of rows of a call
  std::int64_t n = 0;
  std::int64_t k = 0;
  Format a = Format::fp16;
  Format b = Format::fp16;
  int matrices = 2;
};

/// A matrix, and the selection of its rows.
struct MatrixRows {
  Tensor matrix;
  Rows rows{};
};

/// The operands of one call. C has as many rows as A and receives the result of `finish`.
struct InterleavedCall {
  MatrixRows a;
  MatrixRows b1_gate;
  MatrixRows b2_up;  ///< ignored if there is one matrix
  Tensor c;
  Finish finish;
};

/// How the problem is divided. Chunks and blocks cover it evenly; the last ones are padded with zeros.
struct Blocking {
  std::int64_t row_chunk;  ///< rows of A in one product, a multiple of 16
  std::int64_t row_chunks;
  std::int64_t depth_chunk;  ///< a multiple of 32
  std::int64_t depth_chunks;
  std::int64_t block_columns;  ///< rows of B1 and of B2 in one block, a multiple of 16
  std::int64_t blocks;

  static Blocking choose(const InterleavedShape& shape, int threads) noexcept;
};

/// Products are transposed, Cᵀ = B·Aᵀ. The weights are the operand that oneDNN takes row by row, so that dequantization
/// writes it directly. A is smaller and used by every block; it is packed once per run into the layout that oneDNN
/// needs for its other operand.
class InterleavedGemm {
 public:
  InterleavedGemm(const InterleavedShape& shape, ProductType type, int threads);

  [[nodiscard]] int threads() const noexcept { return threads_; }
  /// For a run on `team` of the threads.
  [[nodiscard]] std::size_t workspace_bytes(int team) const noexcept;
  /// False: bf16 products would not have been exact (operand.hpp), and C is invalid. float32 returns true.
  [[nodiscard]] bool run(const InterleavedCall& call, void* workspace, int team) const;

 private:
  struct Run;
  /// Offsets within one thread's part of the workspace.
  struct ThreadParts {
    std::size_t planes;  ///< dequantized weights; before that, rows of A before they are packed
    std::size_t gate;
    std::size_t up;
    std::size_t product_scratch;
    std::size_t finish_scratch;
    std::size_t bytes;
  };

  void lay_out_workspace() noexcept;
  void pack(Run& run, std::int64_t task, int thread) const;
  void compute_block(Run& run, std::int64_t block, int thread) const;
  bool multiply_chunk(Run& run, const MatrixRows& weights, std::byte* planes, bool planes_ready, std::int64_t block,
                      std::int64_t row_chunk, std::int64_t depth_chunk, float* out, void* scratch) const;
  ExponentRange convert(const Tensor& operand, const Slice& slice, std::byte* planes, std::size_t plane_bytes) const;
  ExponentRange convert_weights(const MatrixRows& weights, std::int64_t block, std::int64_t depth_chunk,
                                std::byte* planes) const;
  [[nodiscard]] Slice slice(const MatrixRows& operand, std::int64_t first_row, std::int64_t rows,
                            std::int64_t depth_chunk) const noexcept;
  [[nodiscard]] std::size_t panel_offset(std::int64_t plane, std::int64_t row_chunk,
                                         std::int64_t depth_chunk) const noexcept;
  [[nodiscard]] std::size_t thread_offset(int thread) const noexcept;

  InterleavedShape shape_;
  ProductType type_;
  int threads_;
  Blocking blocking_;
  Product product_;
  std::int64_t a_planes_;
  std::int64_t b_planes_;
  std::int64_t pack_rows_;  ///< rows of A per packing task
  std::int64_t
      weight_slots_;  ///< dequantized chunks kept: one, or a block's of B1 and B2 if several chunks of A use them
  std::size_t panel_bytes_;
  std::size_t slot_bytes_;
  std::size_t slot_plane_bytes_;
  ThreadParts parts_{};
};

/// The strategy "interleaved" of the dual GEMM.
class InterleavedDualGemm {
 public:
  InterleavedDualGemm(const DualGemmProblem& problem, ProductType type, int threads);

  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return gemm_.workspace_bytes(gemm_.threads()); }
  /// As InterleavedGemm::run.
  [[nodiscard]] bool run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                         void* workspace) const;

 private:
  Activation activation_;
  InterleavedGemm gemm_;
};

}  // namespace thresher::cpu
