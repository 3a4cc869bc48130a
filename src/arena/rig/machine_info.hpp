#pragma once
/// The CPU as the operating system describes it, and a GPU as its driver does.
#include <cstddef>
#include <optional>
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
  std::string instructions;  ///< the relevant ones, as /proc/cpuinfo spells them: "avx2 avx512f amx_bf16"
};

[[nodiscard]] const MachineInfo& machine_info();

struct GpuInfo {
  std::string name;  ///< "NVIDIA H200"
  std::string arch;
  int multiprocessors = 0;
  double clock_mhz = 0;  ///< the highest
  std::size_t memory_bytes = 0;
  std::size_t last_level_cache_bytes = 0;
  double power_limit_w = 0;  ///< 0 unknown
  std::string driver;
  std::string driver_cuda;
  std::string nvrtc;
  std::size_t cublaslt = 0;
};

/// The machine of a tournament.
struct Machine {
  std::string device;  ///< "cpu", "cuda:0"
  MachineInfo host;
  std::optional<GpuInfo> gpu{};  ///< of the device, when it is one
  std::string name{};            ///< host_name() where it must be distinguished from others; else empty
};

/// This machine's name in its network.
[[nodiscard]] std::string host_name();

}  // namespace thresher::arena
