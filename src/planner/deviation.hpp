#pragma once
/// The change of a number when its constants move to the ends of their intervals.
#include <algorithm>
#include <cmath>

#include "core/device_spec.hpp"

namespace thresher::planner {

/// Both at least 0.
struct Deviation {
  double down = 0;
  double up = 0;
};

/// The deviation of `number(device)`, which is `middle`. Each constant of device.tensor moves to both of its ends
/// alone. The effects of the constants are added as independent errors, by the root of the sum of squares.
template <class Number>
[[nodiscard]] Deviation deviation_of(const DeviceSpec& device, double middle, const Number& number) {
  Deviation squares;
  for (const TensorUnitField& field : tensor_unit_fields) {
    Deviation most;
    const Constant& constant = device.tensor.*field.member;
    for (const double end : {constant.low, constant.high}) {
      DeviceSpec other = device;
      (other.tensor.*field.member).value = end;
      const double moved = number(other) - middle;
      most.up = std::max(most.up, moved);
      most.down = std::max(most.down, -moved);
    }
    squares.up += most.up * most.up;
    squares.down += most.down * most.down;
  }
  return {std::sqrt(squares.down), std::sqrt(squares.up)};
}

}  // namespace thresher::planner
