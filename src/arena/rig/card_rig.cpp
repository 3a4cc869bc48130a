#include "arena/rig/card_rig.hpp"

#include "arena/timing/wall_clock.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

class CardRig final : public Rig {
 public:
  explicit CardRig(const DeviceSpec& card) : card_(card) {}
  [[nodiscard]] std::string name() const override { return "table:" + std::string(card_.name); }
  [[nodiscard]] Device device() const override { return Device::cpu(); }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] Clock& clock() override { return clock_; }
  [[nodiscard]] Stream stream() override { return {}; }
  void wait() override {}
  [[nodiscard]] std::size_t last_level_cache_bytes() const override { return static_cast<std::size_t>(card_.l2_bytes); }
  [[nodiscard]] const Ceilings& ceilings() override {
    throw Error(ErrorCode::internal, "a card that is not here has no measured ceilings");
  }
  [[nodiscard]] Machine machine() const override { return {name(), machine_info()}; }

 private:
  const DeviceSpec& card_;
  HostMemory memory_;
  WallClock clock_;
};

}  // namespace

std::unique_ptr<Rig> card_rig(const DeviceSpec& card) { return std::make_unique<CardRig>(card); }

}  // namespace thresher::arena
