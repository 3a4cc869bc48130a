#pragma once
/// The machine code that a contestant would run on a problem, with its expectations.
#include <cstddef>
#include <string>
#include <vector>

#include "arena/audit/audit.hpp"
#include "arena/audit/disassembler.hpp"

namespace thresher::arena {

struct KernelCode {
  std::string title;             ///< for people
  std::string kernel;            ///< as the cubin calls it
  std::vector<std::byte> image;  ///< the cubin
  std::string toolchain;         ///< "NVRTC 13.0"
  runtime::ResourceReport resources;
  int dynamic_shared_bytes = 0;
  AuditExpectations expected;
  bool operator==(const KernelCode&) const = default;
};

struct MachineCode {
  std::vector<KernelCode> kernels;  ///< the first is the one that a pitch's expectations are about
  std::string not_judged;           ///< why some of the code cannot be read; empty when all is in `kernels`
};

/// A kernel, or the reason why its machine code cannot be read.
struct ReadCode {
  AuditReport report;
  std::string why_no_code;
};
[[nodiscard]] ReadCode read_code(const Disassembler& tools, const KernelCode& code);

/// "168 registers, nothing spilled, 196608 bytes of shared memory".
[[nodiscard]] std::string resources_text(const KernelCode& code);

}  // namespace thresher::arena
