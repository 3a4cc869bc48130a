#pragma once
/// A machine and its clock made of numbers: it drifts, throttles, jumps and lies as a test tells it to.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "arena/random.hpp"
#include "arena/timing/clock.hpp"

namespace thresher::arena {

struct FakeMachine {
  double noise = 0;             ///< standard deviation of the logarithm of every call's time
  double drift_per_s = 0;       ///< growth of all times with each simulated second
  double throttled_factor = 1;  ///< all times are this much longer when hot
  double heat_limit_s = 1e30;   ///< seconds of work, less twice the seconds of rest, until the machine is hot
  double jump_every_s = 1e30;   ///< every so often the machine changes between normal and `jump_factor`
  double jump_factor = 1;
  /// What the clock makes of the truth; by default it says it.
  std::function<double(double)> lie = [](double us) { return us; };
  /// How much of the next batch threads wait for processors that others use; by default nobody tells.
  std::function<std::optional<double>()> waited_share = [] { return std::nullopt; };
  double waiting_factor = 1;  ///< a batch of which they wait takes this many times as long
};

class FakeClock final : public Clock {
 public:
  FakeClock(FakeMachine machine, std::uint64_t seed) : machine_(std::move(machine)), random_(seed) {}

  /// Called by fake contestants: the work of a call, in microseconds on a machine at rest.
  void spend(double us) {
    double factor = std::exp(machine_.noise * random_.normal()) * (1 + machine_.drift_per_s * now_s_);
    factor *= heat_s_ > machine_.heat_limit_s ? machine_.throttled_factor : 1;
    factor *= std::fmod(now_s_, 2 * machine_.jump_every_s) >= machine_.jump_every_s ? machine_.jump_factor : 1;
    now_s_ += us * factor * 1e-6;
    heat_s_ += us * factor * 1e-6;
  }

  std::string_view name() const override { return "fake clock"; }
  Reading measure(Runner& runner, const Batch& batch) override {
    const double start_s = now_s_;
    for (std::size_t call = 0; call < batch.calls; ++call) {
      runner.run(Stream{}, batch.set_of(call));
    }
    const std::optional<double> waited_share = machine_.waited_share();
    if (waited_share.value_or(0) > 0) {
      now_s_ += (now_s_ - start_s) * (machine_.waiting_factor - 1);
    }
    const double us = (now_s_ - start_s) * 1e6 / static_cast<double>(batch.calls);
    return {machine_.lie(us), us, waited_share};
  }
  void rest(double seconds) override {
    now_s_ += seconds;
    heat_s_ = std::max(0.0, heat_s_ - 2 * seconds);
  }
  double now_s() override { return now_s_; }
  Telemetry telemetry() override {
    Telemetry telemetry;
    if (heat_s_ > machine_.heat_limit_s) {
      telemetry.throttle_reasons.emplace_back("fake heat");
    }
    return telemetry;
  }
  double shortest_batch_us() const override { return 100; }

 private:
  FakeMachine machine_;
  Random random_;
  double now_s_ = 0;
  double heat_s_ = 0;
};

/// A contestant whose calls take `us` on a machine at rest.
class FakeRunner final : public Runner {
 public:
  FakeRunner(FakeClock& clock, double us) : clock_(clock), us_(us) {}
  void run(Stream, std::size_t set) override {
    sets_used.push_back(set);
    clock_.spend(us_);
  }
  std::vector<std::size_t> sets_used;

 private:
  FakeClock& clock_;
  double us_;
};

}  // namespace thresher::arena
