#pragma once
/// The rig of a kernel that runs on a GPU in a context of its own, in another process.
#include <memory>

#include "arena/rig/rig.hpp"
#include "arena/user_kernels/line/cubin_launch.hpp"
#include "arena/user_kernels/process/calls.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"

namespace thresher::arena::user_kernels {

/// The state that the parts of the rig share: the process, and memory for bulk data.
class CudaProcess {
 public:
  static constexpr std::size_t staged_bytes = std::size_t{16} << 20;

  CudaProcess(ProcessOptions options, int ordinal, const Writer& load, int image);
  CudaProcess(const CudaProcess&) = delete;
  CudaProcess& operator=(const CudaProcess&) = delete;
  ~CudaProcess();

  [[nodiscard]] KernelProcess& process() { return process_; }
  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] std::byte* staged() const { return staged_; }

 private:
  int ordinal_;
  KernelProcess process_;
  std::byte* staged_ = nullptr;
};

class CudaProcessMemory final : public Memory {
 public:
  explicit CudaProcessMemory(CudaProcess& cuda) : cuda_(cuda) {}
  [[nodiscard]] DeviceId device() const override { return {DeviceKind::cuda, cuda_.ordinal()}; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  [[nodiscard]] std::size_t available_bytes() override;

 private:
  CudaProcess& cuda_;
};

/// The GPU's clock as the process reads it, with this process's watch around the batch as a check.
class CudaProcessClock final : public Clock {
 public:
  explicit CudaProcessClock(CudaProcess& cuda) : cuda_(cuda) {}
  [[nodiscard]] std::string_view name() const override { return "CUDA events around a graph in another process"; }
  /// `runner` comes from CudaProcessRig::bind.
  [[nodiscard]] Reading measure(Runner& runner, const Batch& batch) override;
  void rest(double seconds) override;
  [[nodiscard]] double now_s() override;
  [[nodiscard]] Telemetry telemetry() override { return telemetry_; }
  [[nodiscard]] double shortest_batch_us() const override { return 2000; }

 private:
  CudaProcess& cuda_;
  Telemetry telemetry_;
};

class CudaProcessRig final : public Rig {
 public:
  /// `own` is the tournament's, on the same GPU; `image` is memory that holds the machine code.
  CudaProcessRig(Rig& own, ProcessOptions options, const Writer& load, int image);

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
  [[nodiscard]] std::unique_ptr<Runner> bind(const CubinLaunch& launch, Calls calls);
  [[nodiscard]] const runtime::Confined& confined() { return cuda_.process().confined(); }

 private:
  void wait_by(Ask ask);

  Rig& own_;
  CudaProcess cuda_;
  CudaProcessMemory memory_;
  CudaProcessClock clock_;
  std::size_t enqueued_ = 0;  // calls that were not waited for yet
};

}  // namespace thresher::arena::user_kernels
