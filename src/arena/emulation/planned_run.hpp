#pragma once
/// A planned call on the emulator: the very launches that a GPU would get, on memory of the host.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arena/emulation/emulation.hpp"
#include "strategies/host/kernel.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::arena {

/// A tensor of the call; data is null where the call has none.
struct EmulatedTensor {
  std::string name;
  Tensor tensor;
  std::size_t bytes = 0;        ///< behind its data
  std::size_t scale_bytes = 0;  ///< behind its scales
};

class PlannedRun final : public EmulatedRun {
 public:
  /// Clusters that take the work of a persistent kernel: fewer than there is work, so that each takes several pieces.
  static constexpr std::uint32_t resident_clusters = 3;

  /// `tensors` are in the operation's order; `storage` keeps their memory. Throws Error(unsupported) that names the
  /// step which cannot be emulated, and where a kernel is neither compiled in nor can be compiled here.
  PlannedRun(strategies::PlannedCall call, std::vector<EmulatedTensor> tensors, std::shared_ptr<const void> storage);

  /// What the plan packs of the weights first, then the call itself.
  [[nodiscard]] emulator::Report run(const emulator::Options& options) override;
  [[nodiscard]] std::span<const std::uint8_t> output() const override;

 private:
  /// One launch and its alternative, as functions of the host.
  struct Kernels {
    const strategies::KernelLaunch* launch = nullptr;
    strategies::HostKernel kernel = nullptr;
    strategies::HostKernel alternative = nullptr;
  };
  /// Memory that begins at a multiple of 256 bytes, as a device's does.
  struct Buffer {
    explicit Buffer(std::size_t size);
    [[nodiscard]] std::uint8_t* data();
    std::vector<std::uint8_t> bytes;
  };
  struct Region {
    std::string name;
    const void* data = nullptr;
    std::size_t bytes = 0;
  };

  [[nodiscard]] static std::vector<Kernels> kernels_of(const strategies::PlannedCall& call);
  [[nodiscard]] emulator::Report run_all(const strategies::PlannedCall& call, const std::vector<Kernels>& kernels,
                                         Buffer& workspace, const emulator::Options& options);
  [[nodiscard]] emulator::Report run_one(const strategies::PlannedCall& call, const Kernels& kernels, Buffer& workspace,
                                         const emulator::Options& options);
  [[nodiscard]] Region region_of(const strategies::PlannedCall& call, const strategies::Access& access,
                                 Buffer& workspace);
  [[nodiscard]] emulator::GlobalMemory memory_of(const strategies::PlannedCall& call,
                                                 const strategies::KernelLaunch& launch, Buffer& workspace);

  strategies::PlannedCall call_;
  std::vector<EmulatedTensor> tensors_;
  std::vector<Tensor> views_;
  std::shared_ptr<const void> storage_;
  std::vector<Kernels> packing_;
  std::vector<Kernels> kernels_;
  Buffer workspace_;
  Buffer packing_workspace_;
  Buffer packed_;
};

}  // namespace thresher::arena
