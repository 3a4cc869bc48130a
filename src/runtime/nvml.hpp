#pragma once
/// A GPU's state from NVML: clocks, power, temperature and the reasons for a limited clock.
#include <optional>
#include <string>
#include <vector>

namespace thresher::runtime {

struct NvmlStatus {
  std::string library_path;
  std::string driver_version;  ///< "580.65.06"
  std::string problem;         ///< empty when usable
};

/// Loads NVML on the first call. Never throws.
const NvmlStatus& nvml_status() noexcept;

/// The state of one GPU at one moment; members are empty if NVML is missing or does not provide them.
struct GpuState {
  std::optional<double> multiprocessor_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> temperature_c;
  /// "power cap", "thermal slowdown", …; empty when nothing limits the clock. Idleness is not a reason.
  std::vector<std::string> throttle_reasons;
};

/// The state of CUDA's GPU `ordinal`, found by its PCI address. Never throws.
GpuState gpu_state(int ordinal) noexcept;

/// The words for NVML's bit mask of reasons.
std::vector<std::string> throttle_words(unsigned long long reasons);

}  // namespace thresher::runtime
