#pragma once
/// Cosine and sine of a position's angle. Positions go far beyond float32's precision of a turn, so the fraction of the
/// turn is computed in float64, and the series in float32.
#include "machine/numbers.hpp"

namespace thresher::strategies::append {

using namespace thresher::machine;

/// Cosine, then sine.
using Angle = Vector<float, 2>;

/// The angle is position · frequency. Positions are from 0 to 2^31 and frequencies from 0 to 1; the error is below
/// 2^-21.
TH_DEVICE Angle angle_of(i64 position, double frequency) {
  constexpr double quarters_of_radian = 0.63661977236758134308;  // 2/pi
  const double quarters = static_cast<double>(position) * frequency * quarters_of_radian;
  const i64 quarter = static_cast<i64>(quarters + 0.5);
  constexpr float half_pi = 1.57079632679F;
  const float x = static_cast<float>(quarters - static_cast<double>(quarter)) * half_pi;  // from -pi/4 to pi/4
  const float square = x * x;
  // The series to the terms that float32 still has there.
  const float sine = math::fma(
      x * square,
      math::fma(square, math::fma(square, math::fma(square, 1.0F / 362880, -1.0F / 5040), 1.0F / 120), -1.0F / 6), x);
  const float cosine = math::fma(
      square,
      math::fma(square,
                math::fma(square, math::fma(square, math::fma(square, -1.0F / 3628800, 1.0F / 40320), -1.0F / 720),
                          1.0F / 24),
                -0.5F),
      1.0F);
  switch (quarter & 3) {
    case 0: return {{cosine, sine}};
    case 1: return {{-sine, cosine}};
    case 2: return {{-cosine, -sine}};
    default: return {{sine, -cosine}};
  }
}

}  // namespace thresher::strategies::append
