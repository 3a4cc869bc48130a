#pragma once
/// The rig of a Python kernel that runs on a GPU. The process's host code is the user's too, so nothing that it reports
/// is trusted. This process writes and reads its data in shared memory, and times it with its own watch.
#include <memory>

#include "arena/rig/rig.hpp"
#include "arena/user_kernels/process/calls.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"
#include "arena/user_kernels/process/shared_cuda_memory.hpp"

namespace thresher::arena::user_kernels {

/// This process's watch around a CUDA graph that the other process launches.
class PythonCudaClock final : public Clock {
 public:
  explicit PythonCudaClock(int ordinal) : ordinal_(ordinal) {}
  [[nodiscard]] std::string_view name() const override { return "wall clock around a graph in another process"; }
  /// `runner` comes from PythonCudaRig::bind. The batch's inputs are put in after its graph is captured.
  [[nodiscard]] Reading measure(Runner& runner, const Batch& batch) override;
  void rest(double seconds) override;
  [[nodiscard]] double now_s() override;
  [[nodiscard]] Telemetry telemetry() override { return telemetry_; }
  /// Ringing, launching and waiting take some tens of microseconds, which count as the batch's.
  [[nodiscard]] double shortest_batch_us() const override { return 10000; }

 private:
  int ordinal_;
  Telemetry telemetry_;
};

class PythonCudaRig final : public Rig {
 public:
  /// `own` is the tournament's, on the same GPU.
  PythonCudaRig(Rig& own, ProcessOptions options, const Writer& load)
      : own_(own),
        process_(std::move(options), load),
        memory_(process_, own.device().id().ordinal),
        clock_(own.device().id().ordinal) {}

  [[nodiscard]] std::string name() const override { return own_.name(); }
  [[nodiscard]] Device device() const override { return own_.device(); }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] Clock& clock() override { return clock_; }
  /// The process has its own stream for all calls.
  [[nodiscard]] Stream stream() override { return {}; }
  void wait() override { wait_by(Ask::wait); }
  void wait_for_stream() override { wait_by(Ask::wait_for_stream); }
  bool hold_stream(double microseconds) override;
  [[nodiscard]] std::size_t last_level_cache_bytes() const override { return own_.last_level_cache_bytes(); }
  void flush_caches() override { own_.flush_caches(); }
  std::string restore() override { return own_.restore(); }
  [[nodiscard]] const Ceilings& ceilings() override { return own_.ceilings(); }
  [[nodiscard]] Machine machine() const override { return own_.machine(); }

  /// A runner over calls whose data lie in this rig's memory.
  [[nodiscard]] std::unique_ptr<Runner> bind(Calls calls);
  [[nodiscard]] const runtime::Confined& confined() const { return process_.confined(); }

 private:
  void wait_by(Ask ask);

  Rig& own_;
  KernelProcess process_;
  SharedCudaMemory memory_;
  PythonCudaClock clock_;
  std::size_t enqueued_ = 0;  // calls that were not waited for yet
};

}  // namespace thresher::arena::user_kernels
