#pragma once
/// Tiles of fewer rows than the largest: a kernel is compiled for several widths, and each tile takes the least that
/// holds its rows.
#include "machine/types.hpp"

namespace thresher::pipeline {

using namespace machine;

/// The matrix instruction's columns, as a type.
template <u32 count>
struct Rung {
  static constexpr u32 columns = count;
};

inline constexpr u32 least_rung = 8;

/// 8, 16, 32 … `most`, a power of two: the least that holds `rows`, which are 1 to `most`.
TH_DEVICE constexpr u32 rung_of(u32 rows, u32 most) {
  u32 rung = most;
  while (rung > least_rung && rows <= rung / 2) {
    rung /= 2;
  }
  return rung;
}

/// Calls `use` with that rung as a type.
template <u32 most, class Use>
TH_DEVICE void with_rung(u32 rows, const Use& use) {
  if constexpr (most > least_rung) {
    if (rows <= most / 2) {
      with_rung<most / 2>(rows, use);
      return;
    }
  }
  use(Rung<most>{});
}

}  // namespace thresher::pipeline
