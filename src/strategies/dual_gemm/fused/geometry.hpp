#pragma once
/// What the host needs to launch the 16-bit dual GEMM: grid, tensor maps, parameters. Pure functions.
#include <cstdint>

#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/dual_gemm/fused/params.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::fused {

struct Extents {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// A row-major matrix in the memory that the kernel runs in.
struct Matrix {
  std::uint64_t address = 0;
  std::int64_t row_stride = 0;  ///< elements
};

struct Geometry {
  std::uint32_t token_tiles = 0;  ///< a multiple of the multicast group
  std::uint32_t output_tiles = 0;
  std::uint32_t token_rows = 0;  ///< as Params has it
  std::uint32_t blocks = 0;
};

/// One block for each tile, or for each half of one that splits K.
Geometry geometry(const Config& config, const Extents& extents);

machine::TensorMapDescription tokens_map(const Config& config, const Extents& extents, const Matrix& a,
                                         const Geometry& geometry);
/// Of B1 or B2.
machine::TensorMapDescription weights_map(const Config& config, const Extents& extents, const Matrix& b);
/// For epilogue `tma`.
machine::TensorMapDescription output_map(const Config& config, const Extents& extents, const Matrix& c);

/// Everything but the tensor maps.
Params scalars(const Config& config, const Extents& extents, const Matrix& c, const Geometry& geometry,
               const Activation& activation);

}  // namespace thresher::strategies::dual_gemm::fused
