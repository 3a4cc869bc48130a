#pragma once
/// Finds and runs NVIDIA's disassemblers.
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena/audit/sass.hpp"
#include "runtime/nvidia_wheels.hpp"

namespace thresher::arena {

struct Disassembler {
  std::filesystem::path nvdisasm;   ///< empty when not found
  std::filesystem::path cuobjdump;  ///< empty when not found
  [[nodiscard]] bool found() const noexcept { return !nvdisasm.empty() || !cuobjdump.empty(); }
};

/// Looks on PATH, then in bin of $CUDA_HOME, $CUDA_PATH, /usr/local/cuda and /opt/cuda, then among NVIDIA's Python
/// packages.
[[nodiscard]] Disassembler find_disassembler(const runtime::Environment& environment = runtime::process_environment);

/// Where to get one, in one sentence.
[[nodiscard]] std::string how_to_get_a_disassembler();

struct Disassembly {
  std::vector<SassFunction> functions;
  std::vector<SassResources> resources;  ///< empty when only nvdisasm was found
};

/// Throws Error(io) with the tool's own words when it fails, Error(unsupported) when there is none.
[[nodiscard]] Disassembly disassemble(const Disassembler& tools, const std::filesystem::path& cubin);
[[nodiscard]] Disassembly disassemble(const Disassembler& tools, std::span<const std::byte> cubin);

}  // namespace thresher::arena
