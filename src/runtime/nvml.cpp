#include "runtime/nvml.hpp"

#include <array>
#include <mutex>
#include <utility>

#include "runtime/driver.hpp"
#include "runtime/shared_library.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

// The part of NVML's interface that is used, declared here: its header is often missing when CUDA's are installed.
using NvmlDevice = struct OpaqueNvmlDevice*;
using NvmlResult = int;
constexpr NvmlResult nvml_success = 0;
constexpr int clock_of_multiprocessors = 1;
constexpr int clock_of_memory = 2;
constexpr int sensor_of_gpu = 0;

struct Api {
  NvmlResult (*init)() = nullptr;
  NvmlResult (*driver_version)(char*, unsigned) = nullptr;
  NvmlResult (*device_by_pci)(const char*, NvmlDevice*) = nullptr;
  NvmlResult (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlResult (*power)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlResult (*throttle_reasons)(NvmlDevice, unsigned long long*) = nullptr;
};

struct Library {
  NvmlStatus status;
  Api api;
};

Library load_nvml() {
  Library loaded;
  const std::string_view remedy = "it comes with the NVIDIA driver; without it clocks and power are not recorded";
  Api& api = loaded.api;
  const SharedLibrary library =
      SharedLibrary::open({"NVML", {"libnvidia-ml.so.1"}, remedy, "update the NVIDIA driver"},
                          {{"nvmlInit_v2", api.init},
                           {"nvmlSystemGetDriverVersion", api.driver_version},
                           {"nvmlDeviceGetHandleByPciBusId_v2", api.device_by_pci},
                           {"nvmlDeviceGetClockInfo", api.clock},
                           {"nvmlDeviceGetPowerUsage", api.power},
                           {"nvmlDeviceGetEnforcedPowerLimit", api.power_limit},
                           {"nvmlDeviceGetTemperature", api.temperature},
                           {"nvmlDeviceGetCurrentClocksThrottleReasons", api.throttle_reasons}});
  loaded.status.library_path = library.path();
  loaded.status.problem = library.problem();
  if (loaded.status.problem.empty() && loaded.api.init() != nvml_success) {
    loaded.status.problem = "NVML (" + library.path() + ") could not start: check that nvidia-smi works";
  }
  if (loaded.status.problem.empty()) {
    std::array<char, 96> version{};
    loaded.api.driver_version(version.data(), static_cast<unsigned>(version.size()));
    loaded.status.driver_version = version.data();
  }
  return loaded;
}

const Library& loaded_library() {
  static const Library* library = new Library(load_nvml());  // never destroyed: NVML stays initialised
  return *library;
}

/// Null when NVML does not know the GPU.
NvmlDevice device_of(int ordinal) {
  static std::mutex mutex;
  static std::array<NvmlDevice, 64> devices{};
  const std::lock_guard lock(mutex);
  NvmlDevice& device = devices.at(static_cast<std::size_t>(ordinal));
  if (device == nullptr) {
    loaded_library().api.device_by_pci(device_properties(ordinal).pci_address.c_str(), &device);
  }
  return device;
}

template <class Read>
std::optional<double> number(double scale, Read read) {
  unsigned value = 0;
  return read(&value) == nvml_success ? std::optional(value * scale) : std::nullopt;
}

}  // namespace

const NvmlStatus& nvml_status() noexcept { return loaded_library().status; }

std::vector<std::string> throttle_words(unsigned long long reasons) {
  constexpr std::array<std::pair<unsigned long long, const char*>, 7> words{{
      {0x2, "application clock setting"},
      {0x4, "power cap"},
      {0x8, "hardware slowdown"},
      {0x10, "sync boost"},
      {0x20, "thermal slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "hardware power brake"},
  }};
  std::vector<std::string> found;
  for (const auto& [bit, word] : words) {
    if ((reasons & bit) != 0) {
      found.emplace_back(word);
    }
  }
  return found;
}

GpuState gpu_state(int ordinal) noexcept try {
  GpuState state;
  const Library& library = loaded_library();
  const NvmlDevice device = library.status.problem.empty() ? device_of(ordinal) : nullptr;
  if (device == nullptr) {
    return state;
  }
  const Api& api = library.api;
  state.multiprocessor_clock_mhz =
      number(1.0, [&](unsigned* value) { return api.clock(device, clock_of_multiprocessors, value); });
  state.memory_clock_mhz = number(1.0, [&](unsigned* value) { return api.clock(device, clock_of_memory, value); });
  state.power_w = number(1e-3, [&](unsigned* value) { return api.power(device, value); });
  state.power_limit_w = number(1e-3, [&](unsigned* value) { return api.power_limit(device, value); });
  state.temperature_c = number(1.0, [&](unsigned* value) { return api.temperature(device, sensor_of_gpu, value); });
  unsigned long long reasons = 0;
  if (api.throttle_reasons(device, &reasons) == nvml_success) {
    state.throttle_reasons = throttle_words(reasons);
  }
  return state;
} catch (const Error&) {
  return {};
}

}  // namespace thresher::runtime
