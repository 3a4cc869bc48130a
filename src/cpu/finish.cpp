#include "cpu/finish.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "formats/numbers.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/finish.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thresher::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Words = hn::RebindToUnsigned<Floats>;
using Vector = hn::VFromD<Floats>;

HWY_INLINE Vector Splat(float value) { return hn::Set(Floats(), value); }

/// 1/(1 + e^-x), 0 where e^-x is beyond float32. NaN gives some number: the gate that multiplies it keeps the NaN.
HWY_INLINE Vector Sigmoid(Vector x) {
  const Vector one = Splat(1.0F);
  return hn::Div(one, hn::Add(one, hn::Exp(Floats(), hn::Min(hn::Neg(x), Splat(104.0F)))));
}

HWY_INLINE Vector Silu(Vector gate, Vector up) { return hn::Mul(hn::Mul(gate, Sigmoid(gate)), up); }

/// ½g(1 + tanh z) is g·σ(2z).
HWY_INLINE Vector GeluTanh(Vector gate, Vector up) {
  const Vector cubic = hn::Mul(hn::Mul(hn::Mul(Splat(0.044715F), gate), gate), gate);
  const Vector factor = Sigmoid(hn::Mul(Splat(2.0F * 0.79788456F), hn::Add(gate, cubic)));
  return hn::Mul(hn::Mul(gate, factor), up);
}

/// A comparison with NaN is false, so that NaN passes both clamps.
HWY_INLINE Vector SwigluClamped(Vector gate, Vector up, const Activation& activation) {
  const Vector limit = Splat(activation.limit);
  const Vector clamped_gate = hn::IfThenElse(hn::Gt(gate, limit), limit, gate);
  const Vector below = hn::IfThenElse(hn::Gt(up, limit), limit, up);
  const Vector clamped_up = hn::IfThenElse(hn::Lt(below, hn::Neg(limit)), hn::Neg(limit), below);
  const Vector gated = hn::Mul(clamped_gate, Sigmoid(hn::Mul(Splat(activation.alpha), clamped_gate)));
  return hn::Mul(gated, hn::Add(clamped_up, Splat(activation.up_offset)));
}

/// limit·tanh(x / limit); a NaN stays.
HWY_INLINE Vector SoftLimit(Vector x, float limit) {
  const Vector most = Splat(limit);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(most, hn::Tanh(Floats(), hn::Div(x, most))));
}

HWY_INLINE Vector Situ(Vector gate, Vector up, const Activation& activation) {
  const Vector gated = hn::Mul(SoftLimit(gate, activation.alpha), Sigmoid(gate));
  return hn::Mul(gated, SoftLimit(up, activation.limit));
}

HWY_INLINE Vector Relu2(Vector gate) {
  return hn::IfThenElse(hn::Lt(gate, Splat(0.0F)), Splat(0.0F), hn::Mul(gate, gate));
}

/// One rounding to float64 and one to float32, so that no product of two global scales overflows or loses bits.
HWY_INLINE Vector Scaled(Vector products, double scale) {
  const Floats d;
  const hn::Half<Floats> d_half;
  const hn::Rebind<double, decltype(d_half)> d_double;
  const auto by = hn::Set(d_double, scale);
  const auto lower = hn::Mul(hn::PromoteTo(d_double, hn::LowerHalf(d_half, products)), by);
  const auto upper = hn::Mul(hn::PromoteTo(d_double, hn::UpperHalf(d_half, products)), by);
  return hn::Combine(d, hn::DemoteTo(d_half, upper), hn::DemoteTo(d_half, lower));
}

template <class Formula>
HWY_INLINE void ForEachVector(const Finish& finish, const ColumnBias& bias, const float* gate, const float* up,
                              std::size_t count, float* out, const Formula& formula) {
  const Floats d;
  const bool scaled = finish.gate_scale != 1.0 || finish.up_scale != 1.0;
  const auto at = [&](const float* from_gate, const float* from_up) HWY_ATTR {
    Vector g = hn::LoadU(d, from_gate);
    Vector u = hn::LoadU(d, from_up);
    if (scaled) {
      g = Scaled(g, finish.gate_scale);
      u = Scaled(u, finish.up_scale);
    }
    if (bias.is_any) {
      g = hn::Add(g, Splat(bias.gate));
      u = hn::Add(u, Splat(bias.up));
    }
    return formula(g, u);
  };
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    hn::StoreU(at(gate + i, up + i), d, out + i);
  }
  if (i < count) {
    HWY_ALIGN std::array<float, hn::MaxLanes(d)> last_gate{};
    HWY_ALIGN std::array<float, hn::MaxLanes(d)> last_up{};
    std::copy(gate + i, gate + count, last_gate.begin());
    std::copy(up + i, up + count, last_up.begin());
    hn::StoreU(at(last_gate.data(), last_up.data()), d, last_gate.data());
    std::copy_n(last_gate.begin(), count - i, out + i);
  }
}

/// `out` may be `gate`; without an activation `up` is read and not used.
void Activate(const Finish& finish, const ColumnBias& bias, const float* gate, const float* up, std::size_t count,
              float* out) {
  if (!finish.activation) {
    ForEachVector(finish, bias, gate, up, count, out, [](Vector g, Vector) HWY_ATTR { return g; });
    return;
  }
  const Activation& activation = *finish.activation;
  switch (activation.kind) {
    case ActivationKind::silu:
      ForEachVector(finish, bias, gate, up, count, out, [](Vector g, Vector u) HWY_ATTR { return Silu(g, u); });
      return;
    case ActivationKind::gelu_tanh:
      ForEachVector(finish, bias, gate, up, count, out, [](Vector g, Vector u) HWY_ATTR { return GeluTanh(g, u); });
      return;
    case ActivationKind::swiglu_clamped:
      ForEachVector(finish, bias, gate, up, count, out,
                    [&activation](Vector g, Vector u) HWY_ATTR { return SwigluClamped(g, u, activation); });
      return;
    case ActivationKind::situ:
      ForEachVector(finish, bias, gate, up, count, out,
                    [&activation](Vector g, Vector u) HWY_ATTR { return Situ(g, u, activation); });
      return;
    case ActivationKind::relu2:
      ForEachVector(finish, bias, gate, up, count, out, [](Vector g, Vector) HWY_ATTR { return Relu2(g); });
      return;
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
/// A vector at a time; returns the number of elements rounded.
HWY_INLINE std::size_t RoundVectorsToFp16(const float* in, std::size_t count, std::uint16_t* out) {
  const Floats d;
  const hn::Rebind<hwy::float16_t, Floats> d_out;
  const hn::Rebind<std::uint16_t, Floats> d_patterns;
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    hn::StoreU(hn::BitCast(d_patterns, hn::DemoteTo(d_out, hn::LoadU(d, in + i))), d_patterns, out + i);
  }
  return i;
}
#else
/// No conversion in hardware: the caller handles all elements.
HWY_INLINE std::size_t RoundVectorsToFp16(const float*, std::size_t, std::uint16_t*) { return 0; }
#endif

void RoundToFp16(const float* in, std::size_t count, std::uint16_t* out) {
  for (std::size_t i = RoundVectorsToFp16(in, count, out); i < count; ++i) {
    out[i] = formats::float_to_fp16(in[i]);
  }
}

void RoundToBf16(const float* in, std::size_t count, std::uint16_t* out) {
  const Floats d;
  const Words words;
  const hn::Rebind<std::uint16_t, Floats> d_out;
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const Vector values = hn::LoadU(d, in + i);
    const auto bits = hn::BitCast(words, values);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(words, 0x7FFFU)), odd);
    const auto quiet_nan = hn::Or(bits, hn::Set(words, 0x00400000U));
    const auto chosen = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(values)), quiet_nan, rounded);
    hn::StoreU(hn::TruncateTo(d_out, hn::ShiftRight<16>(chosen)), d_out, out + i);
  }
  for (; i < count; ++i) {
    out[i] = formats::float_to_bf16(in[i]);
  }
}

void TransposeTile(const float* in, std::size_t stride, std::size_t columns, float* out) {
  for (std::size_t column = 0; column < columns; column += 4) {
    for (std::size_t row = 0; row < 16; row += 4) {
      Transpose4x4(in + column * stride + row, stride, out + row * columns + column, columns);
    }
  }
}

}  // namespace thresher::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::cpu {
namespace {

HWY_EXPORT(Activate);
HWY_EXPORT(RoundToFp16);
HWY_EXPORT(RoundToBf16);
HWY_EXPORT(TransposeTile);

constexpr std::int64_t tile_rows = 16;

std::int64_t round_up_to_4(std::int64_t count) noexcept { return (count + 3) / 4 * 4; }

std::size_t size(std::int64_t count) noexcept { return static_cast<std::size_t>(count); }

void round_row(const float* in, std::size_t count, Format format, void* out) {
  switch (format) {
    case Format::fp16: HWY_DYNAMIC_DISPATCH(RoundToFp16)(in, count, static_cast<std::uint16_t*>(out)); return;
    case Format::bf16: HWY_DYNAMIC_DISPATCH(RoundToBf16)(in, count, static_cast<std::uint16_t*>(out)); return;
    default: std::memcpy(out, in, count * sizeof(float)); return;
  }
}

}  // namespace

void finish_row(const Finish& finish, const float* gate, const float* up, std::int64_t count, Format out_format,
                void* out) {
  std::array<float, 256> values;
  const std::size_t out_bytes = size(bits(out_format)) / 8;
  for (std::size_t i = 0; i < size(count); i += values.size()) {
    const std::size_t piece = std::min(values.size(), size(count) - i);
    HWY_DYNAMIC_DISPATCH(Activate)(finish, ColumnBias{}, gate + i, up + i, piece, values.data());
    round_row(values.data(), piece, out_format, static_cast<std::byte*>(out) + i * out_bytes);
  }
}

std::int64_t transposed_scratch_floats(std::int64_t columns) noexcept { return tile_rows * round_up_to_4(columns); }

void finish_transposed(const Finish& finish, float* gate, const float* up, std::int64_t stride, std::int64_t rows,
                       std::int64_t columns, const Tensor& c, std::int64_t first_row, std::int64_t first_column,
                       float* scratch) {
  const std::int64_t padded_columns = round_up_to_4(columns);
  const std::int64_t out_bytes = bits(c.format) / 8;
  const bool has_bias = finish.gate_bias.data != nullptr || finish.up_bias.data != nullptr;
  for (std::int64_t tile = 0; tile < rows; tile += tile_rows) {
    for (std::int64_t column = 0; column < padded_columns; ++column) {
      float* products = gate + column * stride + tile;
      const std::int64_t of = first_column + std::min(column, columns - 1);
      const ColumnBias bias =
          has_bias ? ColumnBias{finish.gate_bias.at(of), finish.up_bias.at(of), true} : ColumnBias{};
      HWY_DYNAMIC_DISPATCH(Activate)(finish, bias, products, up + column * stride + tile, size(tile_rows), products);
    }
    HWY_DYNAMIC_DISPATCH(TransposeTile)(gate + tile, size(stride), size(padded_columns), scratch);
    for (std::int64_t i = 0; i < std::min(tile_rows, rows - tile); ++i) {
      const std::int64_t row = first_row + tile + i;
      if (finish.tokens != nullptr && finish.tokens[row] < 0) {
        continue;
      }
      float* values = scratch + i * padded_columns;
      if (finish.row_weights != nullptr) {
        std::transform(values, values + columns, values,
                       [weight = finish.row_weights[row]](float value) { return value * weight; });
      }
      round_row(values, size(columns), c.format,
                static_cast<std::byte*>(c.data) + (row * c.strides[0] + first_column) * out_bytes);
    }
  }
}

}  // namespace thresher::cpu
#endif
