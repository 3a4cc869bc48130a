#pragma once
/// A planned call on the CPU, thread by thread and checked (machine/emulator). It decides nothing: what is launched,
/// with which extents, in which order and on which memory, PlannedCall says.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "strategies/host/kernel.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies {

/// A tensor of a call in host memory, where it has one; findings call it by its name.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A launch's kernel as a function of this CPU. Throws Error where there is none.
using FindKernel = std::function<HostKernel(const KernelLaunch&)>;

class EmulatedCall {
 public:
  /// `tensors` in the order of the operation. Finds every kernel, an alternative when it is launched; throws as `find`
  /// does, and Error(unsupported) that names a step which is no launch.
  EmulatedCall(PlannedCall call, std::vector<NamedTensor> tensors, FindKernel find);

  /// Packing, then every step in order; ends after a launch that found something.
  [[nodiscard]] emulator::Report run(const emulator::Options& options);
  /// Fills the tensors that the call writes, so that what a run leaves unwritten is seen.
  void poison_outputs();

  [[nodiscard]] const PlannedCall& planned() const noexcept { return call_; }
  /// The first tensor that the last launch writes.
  [[nodiscard]] std::span<const std::uint8_t> output() const;
  [[nodiscard]] const std::byte* packed() const noexcept { return packed_.data(); }
  [[nodiscard]] const std::byte* workspace() const noexcept { return workspace_.data(); }

 private:
  /// Aligned as device memory is.
  class Memory {
   public:
    explicit Memory(std::size_t bytes);
    Memory(Memory&&) noexcept = default;  // a copy would point into the original
    [[nodiscard]] std::byte* data() const noexcept { return start_; }

   private:
    std::vector<std::byte> bytes_;
    std::byte* start_;
  };
  struct Loaded {
    const KernelLaunch* launch;
    HostKernel kernel;
    bool packs;  ///< it is a step of call_.packing
  };
  struct Region {
    std::string name;
    const void* data;
    std::size_t bytes;

    [[nodiscard]] std::uintptr_t begin() const noexcept { return reinterpret_cast<std::uintptr_t>(data); }
    [[nodiscard]] std::uintptr_t end() const noexcept { return begin() + bytes; }
  };

  void load(const PlannedCall& call, bool packs);
  [[nodiscard]] CallTensors tensors(bool packs) const;
  [[nodiscard]] Region region_of(const Access& access, bool packs) const;
  [[nodiscard]] emulator::GlobalMemory memory_of(const Loaded& loaded) const;
  [[nodiscard]] emulator::Report run(const Loaded& loaded, const emulator::Options& options);

  PlannedCall call_;
  std::vector<NamedTensor> named_;
  std::vector<Tensor> plain_;
  Memory workspace_;
  Memory packing_workspace_;
  Memory packed_;
  FindKernel find_;
  std::vector<Loaded> launches_;  ///< packing first
};

}  // namespace thresher::strategies
