#pragma once
/// Chooses the card on which a strategy's sample is emulated.
#include <algorithm>

#include "core/device_spec.hpp"
#include "strategies/strategy.hpp"

namespace thresher::arena {

/// Returns `wanted`, or where that is null the first card of the table that the strategy supports. Null when the
/// strategy does not support `wanted`, or supports no card.
template <class Problem>
[[nodiscard]] const DeviceSpec* card_for(const strategies::Strategy<Problem>& strategy,
                                         const std::type_identity_t<Problem>& problem, const DeviceSpec* wanted) {
  const auto suits = [&](const DeviceSpec& card) { return !strategy.unsupported_reason(problem, card); };
  if (wanted != nullptr) {
    return suits(*wanted) ? wanted : nullptr;
  }
  const auto cards = device_specs();
  const auto found = std::find_if(cards.begin(), cards.end(), suits);
  return found == cards.end() ? nullptr : &*found;
}

}  // namespace thresher::arena
