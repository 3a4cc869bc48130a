#include "arena/rig/rig.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "arena/rig/cpu_ceilings.hpp"
#include "arena/rig/cuda_rig.hpp"
#include "arena/timing/wall_clock.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

class CpuRig final : public Rig {
 public:
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] Device device() const override { return Device::cpu(); }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] Clock& clock() override { return clock_; }
  [[nodiscard]] Stream stream() override { return {}; }
  void wait() override {}
  [[nodiscard]] std::size_t last_level_cache_bytes() const override { return machine_info().last_level_cache_bytes; }
  [[nodiscard]] const Ceilings& ceilings() override {
    if (!ceilings_) {
      ceilings_ = measure_cpu_ceilings();
    }
    return *ceilings_;
  }
  [[nodiscard]] Machine machine() const override { return {name(), machine_info()}; }

 private:
  HostMemory memory_;
  WallClock clock_;
  std::optional<Ceilings> ceilings_;
};

}  // namespace

std::unique_ptr<Rig> cpu_rig() { return std::make_unique<CpuRig>(); }

std::unique_ptr<Rig> make_rig(const std::string& device) {
  const DeviceId id = Device::named(device).id();
  return id.kind == DeviceKind::cpu ? cpu_rig() : cuda_rig(id.ordinal);
}

}  // namespace thresher::arena
