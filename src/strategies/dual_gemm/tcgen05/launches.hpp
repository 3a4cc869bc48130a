#pragma once
/// What the host needs to pack weights, prepare tokens and launch the product on tcgen05: which tokens are read where
/// they lie, tensor maps, parameters. Pure functions of addresses and shapes.
#include <cstdint>

#include "machine/tensor_map.hpp"
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/dual_gemm/tcgen05/device/prepare_tokens.hpp"
#include "strategies/dual_gemm/tcgen05/params.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

struct Extents {
  u32 m = 0;
  u32 n = 0;
  u32 k = 0;
};

/// Tokens as the product's tensor maps see them: as they came, or as prepare_tokens_kernel left them.
struct TokenOperand {
  u64 codes = 0;       ///< address
  u64 row_bytes = 0;   ///< from one row of codes to the next
  u64 used_bytes = 0;  ///< of a row
  u64 scales = 0;      ///< address
  u32 scale_groups = 0;
};

/// Whether the product reads these tokens where they lie: nobody has to move signs of scales into codes, and the copy
/// engine can address both.
[[nodiscard]] bool reads_in_place(const Config& config, const Tensor& tokens);

[[nodiscard]] TokenOperand given_tokens(const Tensor& tokens);
[[nodiscard]] TokenOperand prepared_tokens(const Config& config, const Extents& extents, u64 codes, u64 scales);

/// Without the addresses of codes and scales.
[[nodiscard]] PrepareTokensParams prepare_params(const Config& config, const Tensor& tokens);
[[nodiscard]] u32 prepare_blocks(const PrepareTokensParams& params);

[[nodiscard]] machine::TensorMapDescription weights_map(const Extents& extents, u64 codes);
[[nodiscard]] machine::TensorMapDescription weight_scales_map(const Extents& extents, u64 scales);
[[nodiscard]] machine::TensorMapDescription tokens_map(const Config& config, const Extents& extents,
                                                       const TokenOperand& tokens);
[[nodiscard]] machine::TensorMapDescription token_scales_map(const Config& config, const Extents& extents,
                                                             const TokenOperand& tokens);

/// Everything but addresses and tensor maps. `c_row_stride` counts elements.
[[nodiscard]] Params scalars(const Config& config, const Extents& extents, std::int64_t c_row_stride,
                             const Activation& activation);
[[nodiscard]] u32 blocks(const Config& config, const Params& params);

}  // namespace thresher::strategies::dual_gemm::tcgen05
