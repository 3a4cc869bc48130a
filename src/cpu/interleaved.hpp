#pragma once
/// The strategy "interleaved" for one type of product.
#include <cstddef>
#include <cstdint>

#include "cpu/operand.hpp"
#include "cpu/product.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::cpu {

/// How the problem is cut. Chunks and blocks cover it evenly; the last ones are filled with zeros.
struct Blocking {
  std::int64_t row_chunk;  ///< rows of A in one product, a multiple of 16
  std::int64_t row_chunks;
  std::int64_t depth_chunk;  ///< a multiple of 32
  std::int64_t depth_chunks;
  std::int64_t block_columns;  ///< rows of B1 and of B2 in one block, a multiple of 16
  std::int64_t blocks;

  static Blocking choose(const DualGemmProblem& problem, int threads) noexcept;
};

/// Products are taken the other way round, Cᵀ = B·Aᵀ: the weights are the operand that oneDNN takes row by row, so that
/// dequantising writes what is multiplied; A, which is smaller and used by every block, is packed once a run into the
/// layout that oneDNN wants of its other operand.
class InterleavedDualGemm {
 public:
  InterleavedDualGemm(const DualGemmProblem& problem, ProductType type, int threads);

  [[nodiscard]] std::size_t workspace_bytes() const noexcept;
  /// False: bf16 products would not have been exact (operand.hpp), and C holds nothing of use. float32 returns true.
  [[nodiscard]] bool run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                         void* workspace) const;

 private:
  struct Run;
  /// Offsets within one thread's part of the workspace.
  struct ThreadParts {
    std::size_t planes;  ///< dequantised weights; before that, rows of A on their way into a panel
    std::size_t gate;
    std::size_t up;
    std::size_t product_scratch;
    std::size_t finish_scratch;
    std::size_t bytes;
  };

  void lay_out_workspace() noexcept;
  void pack(Run& run, std::int64_t task, int thread) const;
  void compute_block(Run& run, std::int64_t block, int thread) const;
  bool multiply_chunk(Run& run, const Tensor& weights, std::byte* planes, bool planes_ready, std::int64_t block,
                      std::int64_t row_chunk, std::int64_t depth_chunk, float* out, void* scratch) const;
  ValueRange convert(const Tensor& operand, const Slice& slice, std::byte* planes, std::size_t plane_bytes) const;
  ValueRange convert_weights(const Tensor& weights, std::int64_t block, std::int64_t depth_chunk,
                             std::byte* planes) const;
  [[nodiscard]] Slice slice(std::int64_t first_row, std::int64_t rows, std::int64_t depth_chunk) const noexcept;
  [[nodiscard]] std::size_t panel_offset(std::int64_t plane, std::int64_t row_chunk,
                                         std::int64_t depth_chunk) const noexcept;
  [[nodiscard]] std::size_t thread_offset(int thread) const noexcept;

  DualGemmProblem problem_;
  ProductType type_;
  int threads_;
  Blocking blocking_;
  Product product_;
  std::int64_t a_planes_;
  std::int64_t b_planes_;
  std::int64_t pack_rows_;  ///< rows of A that one packing task arranges
  std::int64_t
      weight_slots_;  ///< dequantised chunks kept: one, or a block's of B1 and B2 where several chunks of A use them
  std::size_t panel_bytes_;
  std::size_t slot_bytes_;
  std::size_t slot_plane_bytes_;
  ThreadParts parts_{};
};

}  // namespace thresher::cpu
