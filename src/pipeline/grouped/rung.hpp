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

/// The widths from `least` to `most`: each is twice the one below, or, of those beyond doubled_rungs, `step` wider.
struct Rungs {
  u32 least = 8;
  u32 most = 8;
  u32 step = 0;  ///< divides doubled_rungs; 0: all are twice the one below
};
inline constexpr u32 doubled_rungs = 64;

/// The next width below `rung`, which is not the least.
TH_DEVICE constexpr u32 rung_below(u32 rung, Rungs rungs) {
  return rungs.step != 0 && rung > doubled_rungs ? rung - rungs.step : rung / 2;
}

/// The least that holds `rows`, which are 1 to `rungs.most`.
TH_DEVICE constexpr u32 rung_of(u32 rows, Rungs rungs) {
  u32 rung = rungs.step != 0 && rungs.most > doubled_rungs ? doubled_rungs : rungs.most;
  if (rungs.step != 0 && rows > doubled_rungs) {
    rung = (rows + rungs.step - 1) / rungs.step * rungs.step;
  } else {
    while (rung > rungs.least && rows <= rung / 2) {
      rung /= 2;
    }
  }
  return rung < rungs.least ? rungs.least : rung;
}

/// `rows` in tiles of equal rungs, as few as there can be: what each of them has, but for the last, which has the rest.
TH_DEVICE constexpr u32 rows_of_tiles(u32 rows, u32 tiles, Rungs rungs) {
  return rung_of((rows + tiles - 1) / tiles, rungs);
}

/// Calls `use` with `rung`, which is one of them, as a type.
template <Rungs rungs, class Use>
TH_DEVICE void with_rung(u32 rung, const Use& use) {
  if constexpr (rungs.most > rungs.least) {
    if (rung < rungs.most) {
      with_rung<Rungs{rungs.least, rung_below(rungs.most, rungs), rungs.step}>(rung, use);
      return;
    }
  }
  use(Rung<rungs.most>{});
}

}  // namespace thresher::pipeline
