#include "arena/rig/cuda_rig.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "arena/rig/cuda_ceilings.hpp"
#include "arena/rig/cuda_memory.hpp"
#include "arena/timing/cuda_clock.hpp"
#include "ops/cuda_pause.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/nvml.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

class CudaRig final : public Rig {
 public:
  explicit CudaRig(int ordinal)
      : device_(Device::cuda(ordinal)),
        ordinal_(ordinal),
        memory_(ordinal),
        clock_(ordinal),
        stream_(ordinal),
        pause_(ordinal),
        persisting_bytes_(runtime::persisting_cache_bytes(ordinal)) {}

  [[nodiscard]] std::string name() const override { return fmt::format("cuda:{}", ordinal_); }
  [[nodiscard]] Device device() const override { return device_; }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] Clock& clock() override { return clock_; }
  [[nodiscard]] Stream stream() override { return stream_.get(); }
  void wait() override { runtime::synchronize_device(ordinal_); }
  void wait_for_stream() override { stream_.synchronize(); }
  bool hold_stream(double microseconds) override {
    pause_.enqueue(stream_.get(), microseconds);
    return true;
  }
  [[nodiscard]] std::size_t last_level_cache_bytes() const override {
    return runtime::device_properties(ordinal_).l2_bytes;
  }
  void flush_caches() override {
    const std::size_t bytes = 2 * last_level_cache_bytes();
    if (scratch_ == nullptr) {
      scratch_ = std::make_unique<GuardedBuffer>(memory_, bytes);
    }
    scratch_->fill(0);
  }
  std::string restore() override {
    try {
      runtime::reset_persisting_cache(ordinal_);
      if (runtime::persisting_cache_bytes(ordinal_) == persisting_bytes_) {
        return {};
      }
      runtime::set_persisting_cache_bytes(ordinal_, persisting_bytes_);
    } catch (const Error&) {
      return {};  // the GPU failed; the caller that waits for it gets the error
    }
    return "it left a part of the GPU's cache set aside for lines that persist";
  }
  [[nodiscard]] const Ceilings& ceilings() override {
    if (!ceilings_) {
      ceilings_ = measure_cuda_ceilings(ordinal_);
    }
    return *ceilings_;
  }
  [[nodiscard]] Machine machine() const override;

 private:
  Device device_;
  int ordinal_;
  CudaMemory memory_;
  CudaClock clock_;
  runtime::OwnedStream stream_;
  ops::CudaPause pause_;
  std::size_t persisting_bytes_;  ///< of the cache, before any contestant ran
  std::optional<Ceilings> ceilings_;
  std::unique_ptr<GuardedBuffer> scratch_;  ///< fills the cache in a flush
};

Machine CudaRig::machine() const {
  const runtime::DeviceProperties& properties = runtime::device_properties(ordinal_);
  return {name(), machine_info(),
          GpuInfo{.name = properties.name,
                  .arch = properties.arch(),
                  .multiprocessors = properties.multiprocessors,
                  .clock_mhz = properties.clock_khz / 1e3,
                  .memory_bytes = properties.memory_bytes,
                  .last_level_cache_bytes = properties.l2_bytes,
                  .power_limit_w = runtime::gpu_state(ordinal_).power_limit_w.value_or(0),
                  .driver = runtime::nvml_status().driver_version,
                  .driver_cuda = runtime::version_text(runtime::driver_status().version),
                  .nvrtc = runtime::version_text(runtime::nvrtc_status().version),
                  .cublaslt = runtime::cublaslt_status().version}};
}

}  // namespace

std::unique_ptr<Rig> cuda_rig(int ordinal) { return std::make_unique<CudaRig>(ordinal); }

}  // namespace thresher::arena
