#pragma once
/// A planned call on the emulator: the very launches that a GPU would get, on memory of the host.
#include <memory>
#include <vector>

#include "arena/emulation/emulation.hpp"
#include "strategies/host/emulated_call.hpp"

namespace thresher::arena {

class PlannedRun final : public EmulatedRun {
 public:
  /// `tensors` are in the operation's order; `storage` keeps their memory. Throws Error(unsupported) that names the
  /// step which cannot be emulated, and where a kernel is neither compiled in nor can be compiled here.
  PlannedRun(strategies::PlannedCall call, std::vector<strategies::NamedTensor> tensors,
             std::shared_ptr<const void> storage);

  /// What the plan packs of the weights first, then the call itself.
  [[nodiscard]] emulator::Report run(const emulator::Options& options) override;
  [[nodiscard]] std::span<const std::uint8_t> output() const override { return call_.output(); }

 private:
  std::shared_ptr<const void> storage_;
  strategies::EmulatedCall call_;
};

}  // namespace thresher::arena
