#include "thresher/device.hpp"

#include <fstream>

#include "ops/device_operations.hpp"
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

Device Device::cuda(int) {
  throw Error(ErrorCode::unsupported, "this build of Thresher has no GPU support: use --device cpu or Device::cpu()");
}

Device Device::best() { return cpu(); }

namespace ops {

const DeviceOperations& operations_for(DeviceKind kind) {
  if (kind == DeviceKind::cpu) {
    return cpu_operations();
  }
  throw Error(ErrorCode::unsupported, "this build of Thresher has no GPU support: plan on Device::cpu()");
}

}  // namespace ops
}  // namespace thresher
