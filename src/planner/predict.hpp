#pragma once
/// The time of a planned call and its bound, predicted from the device table.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_spec.hpp"
#include "planner/calibration.hpp"
#include "strategies/work_model.hpp"

namespace thresher::planner {

/// The resource that takes most of the time.
enum class Bound : std::uint8_t {
  matrix,  ///< the tensor cores
  memory,  ///< DRAM, L2 or the latency of loads
  l2,      ///< from L2 into shared memory, if distinguished from DRAM
  dram,    ///< DRAM, if distinguished from L2
  shared,  ///< shared memory's bandwidth
  issue,   ///< instructions: conversions, exponentials
  waves,   ///< idle multiprocessors beside or after the others
  launch,  ///< launch, first loads, epilogue: independent of the problem's size
};

[[nodiscard]] std::string_view name(Bound bound) noexcept;

/// The parts add up to the time.
struct TimeParts {
  double launch_us = 0;
  double fill_us = 0;      ///< from the start of a block to its first product
  double main_us = 0;      ///< the main loop, or the library's products
  double exchange_us = 0;  ///< partial results of split K or split keys
  double epilogue_us = 0;  ///< its visible part
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

/// The range of a prediction when each constant moves to the ends of its own interval. The deviations are added as
/// independent ones: the root of the sum of their squares.
struct Interval {
  double low_us = 0;
  double high_us = 0;
  [[nodiscard]] bool contains(double us) const noexcept { return low_us <= us && us <= high_us; }
};

struct Prediction {
  TimeParts parts;
  Bound bound = Bound::matrix;
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;             ///< tiles of the busiest multiprocessor, one after another
  double busy_share = 1;               ///< of multiprocessor time, over all rounds
  double useful_share = 1;             ///< of the tensor-core work; the rest is padding of tiles
  bool calibrated = false;             ///< for this kind of device
  std::optional<Interval> interval{};  ///< if the device table has intervals: for devices that were never measured
  std::string why;                     ///< one sentence

  [[nodiscard]] double us() const noexcept { return parts.total_us(); }
};

/// The time of a planned call on `device`. This is the only predictor, and it reads only the strategy's work model.
/// `work` has a kernel or products. Predicts one call in a graph of many, with cold inputs.
[[nodiscard]] Prediction predict(const strategies::WorkModel& work, const DeviceSpec& device,
                                 const Calibration& calibration = {}, Clocks clocks = Clocks::burst);

}  // namespace thresher::planner
