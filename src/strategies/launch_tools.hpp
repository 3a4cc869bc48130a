#pragma once
/// Helpers that bind a launch to its tensors, for every operation.
#include <cstdint>
#include <string>
#include <utility>

#include "strategies/planned_call.hpp"
#include "thresher/format.hpp"

namespace thresher::strategies {

/// A pointer as kernels take it.
[[nodiscard]] inline std::uint64_t device_address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The type of a format's values in the machine vocabulary, as a template argument.
[[nodiscard]] inline std::string element_argument(Format format) {
  switch (format) {
    case Format::fp16: return "thresher::machine::Half";
    case Format::bf16: return "thresher::machine::BFloat16";
    case Format::fp32: return "float";
    default: return "thresher::machine::E4M3";
  }
}

/// A launch ahead of a product, which only moves and converts data, without what it reads, writes and binds.
[[nodiscard]] inline KernelLaunch preparation_launch(std::string title, DeviceProgram program, std::string kernel,
                                                     std::uint32_t threads) {
  KernelLaunch launch;
  launch.title = std::move(title);
  launch.program = std::move(program);
  launch.expression = std::move(kernel);
  launch.block.x = threads;
  launch.expected.uses_shared_memory = false;
  return launch;
}

}  // namespace thresher::strategies
