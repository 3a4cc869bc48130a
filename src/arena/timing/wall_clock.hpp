#pragma once
/// The clock of the CPU: the system's monotonic clock around synchronous calls.
#include "arena/timing/clock.hpp"

namespace thresher::arena {

class WallClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "wall clock"; }
  [[nodiscard]] Reading measure(Runner& runner, const Batch& batch) override;
  void rest(double seconds) override;
  [[nodiscard]] double now_s() override;
  /// Core 0's clock and the hottest thermal zone, where the system reports them.
  [[nodiscard]] Telemetry telemetry() override;
  [[nodiscard]] double shortest_batch_us() const override { return 2000; }
  [[nodiscard]] std::string unseen() const override;
};

}  // namespace thresher::arena
