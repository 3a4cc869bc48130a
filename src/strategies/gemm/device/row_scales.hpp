#pragma once
/// The float32 scales of a tile's operands as the warps that finish it want them: sum × weight scale × token scale. A
/// tile has outputs along its rows and tokens along its columns, in the fragments of pipeline/transposed_output.hpp.
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

inline constexpr u32 no_token = ~0U;

/// Whether scales multiply finished sums; others are of blocks along K, or there are none.
TH_DEVICE constexpr bool is_whole(Scaling scaling) { return scaling == Scaling::tensor || scaling == Scaling::row; }

namespace detail {
TH_DEVICE float one_scale(machine::Global<float> scales) { return scales.is_null() ? 1.0F : scales.load(); }
}  // namespace detail

/// The scales of the outputs that a thread has, one of each of `eights`. `first` is the first output of its warp. The
/// scales of neighbouring rows have the stride `step`.
template <Scaling scaling, int eights>
class WeightScales {
 public:
  TH_DEVICE WeightScales(machine::Global<float> scales, u32 first, u32 end, u32 step = 1) {
    if constexpr (scaling == Scaling::tensor) {
      scale_[0] = detail::one_scale(scales);
    } else if constexpr (scaling == Scaling::row) {
      TH_UNROLL
      for (u32 eight = 0; eight < eights; ++eight) {
        const u32 output = first + eight * 8 + machine::warp::lane() / 4;
        scale_[eight] = output < end ? scales.load(output * step) : 0;
      }
    }
  }
  TH_DEVICE float scaled(float sum, int eight) const {
    if constexpr (!is_whole(scaling)) {
      return sum;
    } else {
      return sum * scale_[scaling == Scaling::row ? eight : 0];
    }
  }

 private:
  float scale_[scaling == Scaling::row ? eights : 1] = {};
};

/// The scales of the tokens of one chunk of at most 32, of which each lane of a warp has one. The next chunk's scales
/// are loaded while this chunk's are used.
template <Scaling scaling>
class TokenScales {
 public:
  TH_DEVICE TokenScales(machine::Global<float> scales, u32 first, u32 end)
      : TokenScales(scales, first, end, [](u32 row) { return row; }) {}
  /// `token(row)` has the scale of a row of C, which is below `end`; no_token has none.
  template <class Token>
  TH_DEVICE TokenScales(machine::Global<float> scales, u32 first, u32 end, const Token& token) {
    if constexpr (scaling == Scaling::tensor) {
      scale_ = detail::one_scale(scales);
    } else if constexpr (scaling == Scaling::row) {
      const u32 row = first + machine::warp::lane();
      const u32 from = row < end ? token(row) : no_token;
      scale_ = from != no_token ? scales.load(from) : 0;
    }
  }

  /// The scales that one thread needs of a chunk: those of the tokens 8·group + 2·(lane % 4) and + 1.
  template <int tokens>
  class Pairs {
   public:
    TH_DEVICE explicit Pairs(const TokenScales& of) {
      static_assert(tokens <= 32, "a lane has one token's scale");
      if constexpr (scaling == Scaling::tensor) {
        scale_[0] = of.scale_;
      } else if constexpr (scaling == Scaling::row) {
        TH_UNROLL
        for (u32 i = 0; i < tokens / 4; ++i) {
          scale_[i] = machine::warp::shuffle(of.scale_, i / 2 * 8 + machine::warp::lane() % 4 * 2 + i % 2);
        }
      }
    }
    TH_DEVICE float scaled(float value, int group, int e) const {
      if constexpr (!is_whole(scaling)) {
        return value;
      } else {
        return value * scale_[scaling == Scaling::row ? group * 2 + e : 0];
      }
    }

   private:
    float scale_[scaling == Scaling::row ? tokens / 4 : 1] = {};
  };

 private:
  float scale_ = 0;
};

}  // namespace thresher::strategies::gemm
