#pragma once
/// Predictions for a card before anybody has run there: times as intervals, for a file that is kept until somebody
/// can score it.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arena/operation/problem.hpp"
#include "arena/pitches/pitch.hpp"
#include "arena/predictions/published.hpp"
#include "core/device_spec.hpp"

namespace thresher::arena {

/// JSON list of the constants of a card with tensor memory, each with its interval, its source and how far that is to
/// be trusted.
[[nodiscard]] std::string constants_json(const DeviceSpec& device);

/// JSON: the card's constants with their intervals and sources; of each published problem what would be launched, the
/// interval of its time, what bounds it and why, beside the published times; of each pitch the interval of the speed-up
/// that its idea has on the card. `lists` are the problems of published.grouped, in its order, as tournaments have
/// them. The same arguments give the same bytes. Throws Error(unsupported) for a card whose constants have no
/// intervals, Error(invalid_argument) for a pitch whose idea was not carried over, and for other lists than
/// published.grouped's.
[[nodiscard]] std::string predict_card(const DeviceSpec& device, const Published& published,
                                       std::span<const Pitch> pitches, std::span<const Problem> lists);

/// A predicted interval beside its measurement.
struct ScoredInterval {
  std::string problem;
  std::string contestant;
  double low_us = 0;
  double high_us = 0;
  double measured_us = 0;
  [[nodiscard]] bool hit() const noexcept { return low_us <= measured_us && measured_us <= high_us; }
};

struct IntervalScore {
  std::vector<ScoredInterval> times;
  std::size_t ordered = 0;  ///< pairs of contestants on one problem that were predicted to differ and were measured
  std::size_t right_order = 0;
  [[nodiscard]] std::size_t hits() const noexcept;
};

/// `predicted` is what predict_card wrote, `run` what `thresher ledger export RUN` writes of a tournament; cold bursts
/// count. Throws Error(invalid_argument) when one of them is something else, and for a run on another card.
[[nodiscard]] IntervalScore score(std::string_view predicted, std::string_view run);

/// Lines for people, each ended.
[[nodiscard]] std::string text(const IntervalScore& score);

}  // namespace thresher::arena
