#pragma once
/// What the operating system tells of the CPU.
#include <cstddef>
#include <string>

namespace thresher::arena {

struct MachineInfo {
  std::string cpu;  ///< model name
  int processors = 0;
  std::size_t memory_bytes = 0;
  std::size_t last_level_cache_bytes = 0;  ///< of all processors together; 0 unknown
  double clock_mhz = 0;                    ///< the highest where the system tells, else the present one; 0 unknown
  std::string operating_system;
  std::string kernel;
  bool is_virtual = false;
  std::string instructions;  ///< those that matter here, as /proc/cpuinfo spells them: "avx2 avx512f amx_bf16"
};

[[nodiscard]] const MachineInfo& machine_info();
/// JSON object.
[[nodiscard]] std::string machine_json();

}  // namespace thresher::arena
