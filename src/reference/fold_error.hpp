#pragma once
/// The error of numerics `fast` on top of NVFP4's own error, on data like that of models. Computed on the CPU, by
/// definition.
#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

enum class Data : std::uint8_t {
  normal,
  heavy_tailed,      ///< Student's t with 3 degrees of freedom
  outlier_channels,  ///< normal; in 1 of 64 columns tokens are 30 times as large
};
[[nodiscard]] std::string_view name(Data data) noexcept;
inline constexpr Data all_data[] = {Data::normal, Data::heavy_tailed, Data::outlier_channels};

/// Both have two e2m1 values in a byte. MXFP4 is held as NVFP4.
enum class FourBits : std::uint8_t { nvfp4, mxfp4 };
inline constexpr FourBits all_four_bits[] = {FourBits::nvfp4, FourBits::mxfp4};
[[nodiscard]] std::string_view name(FourBits format) noexcept;

/// Relative errors of the norm of silu(gate)·up. The same for tokens in 16 bits and tokens in NVFP4.
struct FoldErrors {
  double packed = 0;        ///< operands in 4 bits against the original values
  double fast = 0;          ///< operands of `fast` against those in 4 bits
  double both = 0;          ///< operands of `fast` against the original values
  double accumulation = 0;  ///< tensor cores' 14-bit FP8 accumulation against exact sums, on operands of `fast`
};

/// Tokens are fp16, bf16 or nvfp4; gate and up have standard deviations near 1.
FoldErrors fold_errors(Data data, FourBits weights, Format tokens, std::int64_t m, std::int64_t n, std::int64_t k,
                       unsigned seed);

}  // namespace thresher::reference
