#pragma once
/// Matrix products of cuBLASLt, which is loaded on first use. An algorithm is chosen once and run many times.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher::runtime {

struct CublasLtStatus {
  std::string library_path;
  std::size_t version = 0;  ///< as from cublasLtGetVersion, e.g. 130100
  std::string problem;      ///< empty when usable; says what to do
};

/// Loads cuBLASLt on the first call. Never throws.
const CublasLtStatus& cublaslt_status() noexcept;

/// D[m,n] = A[m,k]·Bᵀ[n,k], all row-major, D in float32. fp16 and bf16 inputs have float32 accumulation, fp32 inputs
/// use true float32 (no tf32). Row strides are in elements. Pointers and row strides in bytes are multiples of 16.
struct MatmulShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Format input = Format::fp16;
  std::int64_t a_row_stride = 0;
  std::int64_t b_row_stride = 0;
  std::int64_t d_row_stride = 0;
};

/// An algorithm chosen for one shape on one GPU. `run` may be called from several threads; it allocates nothing and can
/// be captured in a graph. The same inputs give the same bits.
class Matmul {
 public:
  /// The maximum workspace that the algorithm may use, in bytes.
  static constexpr std::size_t workspace_limit_bytes = std::size_t{32} << 20;

  /// Throws Error(unsupported) when cuBLASLt is missing or has no algorithm for the shape.
  Matmul(int ordinal, const MatmulShape& shape);
  Matmul(Matmul&&) noexcept;
  Matmul& operator=(Matmul&&) noexcept;
  ~Matmul();

  [[nodiscard]] std::size_t workspace_bytes() const noexcept;
  /// `rows` of A and D, at most the shape's m; `a_row_stride` may differ from the shape's. The workspace is 256-byte
  /// aligned, and concurrent runs must not share it.
  void run(Stream stream, std::int64_t rows, const void* a, std::int64_t a_row_stride, const void* b, void* d,
           void* workspace) const;

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
};

}  // namespace thresher::runtime
