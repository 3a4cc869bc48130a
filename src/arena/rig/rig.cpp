#include "arena/rig/rig.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "arena/rig/cpu_ceilings.hpp"
#include "arena/rig/cuda_rig.hpp"
#include "arena/timing/wall_clock.hpp"
#include "reference/parallel.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// A larger flush takes longer than it is worth.
constexpr std::size_t max_flushed_bytes = std::size_t{256} << 20;
/// Where the cache is unknown.
constexpr std::size_t assumed_cache_bytes = std::size_t{64} << 20;

class CpuRig final : public Rig {
 public:
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] Device device() const override { return Device::cpu(); }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] Clock& clock() override { return clock_; }
  [[nodiscard]] Stream stream() override { return {}; }
  void wait() override {}
  [[nodiscard]] std::size_t last_level_cache_bytes() const override { return machine_info().last_level_cache_bytes; }
  /// Uses all processors at once, which flushes their own caches too: one alone takes ten times as long for a large
  /// cache.
  void flush_caches() override {
    const std::size_t cache_bytes = last_level_cache_bytes() > 0 ? last_level_cache_bytes() : assumed_cache_bytes;
    scratch_.resize(std::min(2 * cache_bytes, max_flushed_bytes) / sizeof(std::uint64_t));
    const std::size_t pieces = (scratch_.size() + words_of_a_piece - 1) / words_of_a_piece;
    reference::parallel_for(static_cast<std::int64_t>(pieces), 0, [this](std::int64_t piece) {
      const std::size_t first = static_cast<std::size_t>(piece) * words_of_a_piece;
      const std::size_t last = std::min(first + words_of_a_piece, scratch_.size());
      for (std::size_t i = first; i < last; i += words_of_a_line) {
        ++scratch_[i];
      }
    });
  }
  [[nodiscard]] const Ceilings& ceilings() override {
    if (!ceilings_) {
      ceilings_ = measure_cpu_ceilings();
    }
    return *ceilings_;
  }
  [[nodiscard]] Machine machine() const override { return {name(), machine_info()}; }

 private:
  static constexpr std::size_t words_of_a_line = 8;
  static constexpr std::size_t words_of_a_piece = std::size_t{1} << 19;
  HostMemory memory_;
  WallClock clock_;
  std::vector<std::uint64_t> scratch_;
  std::optional<Ceilings> ceilings_;
};

}  // namespace

std::unique_ptr<Rig> cpu_rig() { return std::make_unique<CpuRig>(); }

std::unique_ptr<Rig> make_rig(const std::string& device) {
  const DeviceId id = Device::named(device).id();
  return id.kind == DeviceKind::cpu ? cpu_rig() : cuda_rig(id.ordinal);
}

}  // namespace thresher::arena
