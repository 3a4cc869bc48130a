#pragma once
/// Resources of one multiprocessor that work concurrently.
#include "planner/predict.hpp"

namespace thresher::planner {

/// Clocks for which one step keeps each resource busy.
struct Loads {
  double matrix = 0;
  double shared = 0;
  double issue = 0;
  double memory = 0;
};

struct Combined {
  double clocks = 0;
  Bound bound = Bound::matrix;
};

/// The longest, plus `loss` of the second longest, which it does not hide.
[[nodiscard]] Combined combine(const Loads& loads, double loss) noexcept;

}  // namespace thresher::planner
