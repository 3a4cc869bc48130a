#include "thresher/device.hpp"

#include <fstream>

#include "ops/device_operations.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "CPU";
}

}  // namespace

Device Device::cpu() { return {DeviceId{DeviceKind::cpu, 0}, cpu_name()}; }

Device Device::cuda(int ordinal) {
  return {DeviceId{DeviceKind::cuda, ordinal}, runtime::device_properties(ordinal).name};
}

Device Device::best() {
  for (int ordinal = 0; ordinal < runtime::driver_status().devices; ++ordinal) {
    try {
      return cuda(ordinal);
    } catch (const Error&) {  // too old: the next one may do
      continue;
    }
  }
  return cpu();
}

namespace ops {

const DeviceOperations& operations_for(DeviceKind kind) {
  return kind == DeviceKind::cpu ? cpu_operations() : cuda_operations();
}

}  // namespace ops
}  // namespace thresher
