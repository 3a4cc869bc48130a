#pragma once
/// How long a planned call takes and what bounds it, predicted from the device table.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_spec.hpp"
#include "planner/calibration.hpp"
#include "strategies/work_model.hpp"

namespace thresher::planner {

/// What the time mostly is.
enum class Bound : std::uint8_t {
  matrix,  ///< the matrix unit
  memory,  ///< DRAM, L2 or the latency of loads
  l2,      ///< the way from L2 into shared memory, where it is told from DRAM
  dram,    ///< DRAM, where it is told from L2
  shared,  ///< shared memory's bandwidth
  issue,   ///< instructions: conversions, exponentials
  waves,   ///< multiprocessors that stand idle beside or after the others
  launch,  ///< launch, first loads, epilogue: what does not grow with the problem
};

[[nodiscard]] std::string_view name(Bound bound) noexcept;

/// The parts add up to the time.
struct TimeParts {
  double launch_us = 0;
  double fill_us = 0;      ///< from the start of a block to its first product
  double main_us = 0;      ///< the main loop, or the library's products
  double exchange_us = 0;  ///< partial results of split K or split keys
  double epilogue_us = 0;  ///< the part of it that nothing hides
  double passes_us = 0;    ///< separate passes over memory: preparation of tokens, conversion, activation

  [[nodiscard]] double total_us() const noexcept {
    return launch_us + fill_us + main_us + exchange_us + epilogue_us + passes_us;
  }
  TimeParts& operator+=(const TimeParts& other) noexcept {
    launch_us += other.launch_us;
    fill_us += other.fill_us;
    main_us += other.main_us;
    exchange_us += other.exchange_us;
    epilogue_us += other.epilogue_us;
    passes_us += other.passes_us;
    return *this;
  }
};

/// Between which times a prediction lies when each constant is taken to the ends of its own interval and the deviations
/// are added as independent ones: the root of the sum of their squares.
struct Interval {
  double low_us = 0;
  double high_us = 0;
  [[nodiscard]] bool contains(double us) const noexcept { return low_us <= us && us <= high_us; }
};

struct Prediction {
  TimeParts parts;
  Bound bound = Bound::matrix;
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;             ///< tiles that the busiest multiprocessor computes one after another
  double busy_share = 1;               ///< of multiprocessor time, over all rounds
  double useful_share = 1;             ///< of the matrix work; the rest is padding of tiles
  bool calibrated = false;             ///< on this kind of device
  std::optional<Interval> interval{};  ///< where the device table has intervals: of cards that were never measured
  std::string why;                     ///< one sentence

  [[nodiscard]] double us() const noexcept { return parts.total_us(); }
};

/// What a planned call takes on `device`: the one predictor, which reads what the strategy says of its work and nothing
/// else. `work` has a kernel or products. One call in a graph of many, inputs cold.
[[nodiscard]] Prediction predict(const strategies::WorkModel& work, const DeviceSpec& device,
                                 const Calibration& calibration = {}, Clocks clocks = Clocks::burst);

}  // namespace thresher::planner
