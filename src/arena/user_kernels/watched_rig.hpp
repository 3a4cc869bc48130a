#pragma once
/// A rig that gives a sign of life around everything that may take long.
#include <functional>
#include <memory>

#include "arena/rig/rig.hpp"

namespace thresher::arena::user_kernels {

class WatchedRig final : public Rig {
 public:
  WatchedRig(std::unique_ptr<Rig> rig, std::function<void()> alive)
      : rig_(std::move(rig)), alive_(std::move(alive)), clock_(rig_->clock(), alive_) {}

  [[nodiscard]] std::string name() const override { return rig_->name(); }
  [[nodiscard]] Device device() const override { return rig_->device(); }
  [[nodiscard]] Memory& memory() override {
    alive_();
    return rig_->memory();
  }
  [[nodiscard]] Clock& clock() override { return clock_; }
  [[nodiscard]] Stream stream() override { return rig_->stream(); }
  void wait() override {
    rig_->wait();
    alive_();
  }
  void wait_for_stream() override {
    rig_->wait_for_stream();
    alive_();
  }
  bool hold_stream(double microseconds) override { return rig_->hold_stream(microseconds); }
  [[nodiscard]] std::size_t last_level_cache_bytes() const override { return rig_->last_level_cache_bytes(); }
  [[nodiscard]] const Ceilings& ceilings() override { return rig_->ceilings(); }
  [[nodiscard]] Machine machine() const override { return rig_->machine(); }

 private:
  class WatchedClock final : public Clock {
   public:
    WatchedClock(Clock& clock, const std::function<void()>& alive) : below_(clock), alive_(alive) {}
    [[nodiscard]] std::string_view name() const override { return below_.name(); }
    [[nodiscard]] Reading measure(Runner& runner, const Batch& batch) override {
      alive_();
      return below_.measure(runner, batch);
    }
    void rest(double seconds) override {
      alive_();
      below_.rest(seconds);
    }
    [[nodiscard]] double now_s() override { return below_.now_s(); }
    [[nodiscard]] Telemetry telemetry() override { return below_.telemetry(); }
    [[nodiscard]] double shortest_batch_us() const override { return below_.shortest_batch_us(); }

   private:
    Clock& below_;
    const std::function<void()>& alive_;
  };

  std::unique_ptr<Rig> rig_;
  std::function<void()> alive_;
  WatchedClock clock_;
};

}  // namespace thresher::arena::user_kernels
