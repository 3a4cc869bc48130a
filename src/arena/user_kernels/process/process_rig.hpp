#pragma once
/// The rig of a kernel that runs in a process of its own on the CPU.
#include <memory>

#include "arena/rig/rig.hpp"
#include "arena/timing/wall_clock.hpp"
#include "arena/user_kernels/process/calls.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"
#include "arena/user_kernels/process/shared_memory.hpp"

namespace thresher::arena::user_kernels {

/// This process's watch around calls in another.
class ProcessClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "wall clock around another process"; }
  /// `runner` comes from ProcessRig::bind.
  [[nodiscard]] Reading measure(Runner& runner, const Batch& batch) override;
  void rest(double seconds) override { wall_.rest(seconds); }
  [[nodiscard]] double now_s() override { return wall_.now_s(); }
  [[nodiscard]] Telemetry telemetry() override { return wall_.telemetry(); }
  [[nodiscard]] double shortest_batch_us() const override { return wall_.shortest_batch_us(); }
  [[nodiscard]] std::string unseen() const override { return wall_.unseen(); }

 private:
  WallClock wall_;
};

class ProcessRig final : public Rig {
 public:
  /// `own` is the tournament's; the process shares its machine.
  ProcessRig(Rig& own, ProcessOptions options, const Writer& load)
      : own_(own), process_(std::move(options), load), memory_(process_) {}

  [[nodiscard]] std::string name() const override { return own_.name(); }
  [[nodiscard]] Device device() const override { return own_.device(); }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] Clock& clock() override { return clock_; }
  [[nodiscard]] Stream stream() override { return {}; }
  void wait() override {}
  [[nodiscard]] std::size_t last_level_cache_bytes() const override { return own_.last_level_cache_bytes(); }
  void flush_caches() override { own_.flush_caches(); }
  std::string restore() override { return own_.restore(); }
  [[nodiscard]] const Ceilings& ceilings() override { return own_.ceilings(); }
  [[nodiscard]] Machine machine() const override { return own_.machine(); }

  /// A runner over calls whose data lie in this rig's memory.
  [[nodiscard]] std::unique_ptr<Runner> bind(Calls calls);
  [[nodiscard]] const runtime::Confined& confined() const { return process_.confined(); }

 private:
  Rig& own_;
  KernelProcess process_;
  SharedMemory memory_;
  ProcessClock clock_;
};

}  // namespace thresher::arena::user_kernels
