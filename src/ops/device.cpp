#include "thresher/device.hpp"

#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>

#include "ops/cuda_device_spec.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

DeviceSpec of_architecture(const std::string& arch) {
  const std::optional<Arch> known = parse_arch(arch);
  if (const DeviceSpec* const spec = known ? find_device_spec(*known) : nullptr) {
    return *spec;
  }
  DeviceSpec unknown = cpu_device_spec();  // no strategy for tensor cores supports it
  unknown.name = "a GPU that is not in the table";
  return unknown;
}

}  // namespace

DeviceSpec with_multiprocessors(DeviceSpec spec, int multiprocessors) {
  for (int& clusters : spec.resident_clusters) {
    clusters = spec.multiprocessors > 0 ? clusters * multiprocessors / spec.multiprocessors : 0;
  }
  spec.multiprocessors = multiprocessors;
  return spec;
}

DeviceSpec cuda_device_spec(int ordinal) {
  const runtime::DeviceProperties& properties = runtime::device_properties(ordinal);
  const DeviceSpec* const known = find_device_spec(properties.name);
  const bool is_that_card = known != nullptr && properties.is(known->arch);
  return with_multiprocessors(is_that_card ? *known : of_architecture(properties.arch()), properties.multiprocessors);
}

DeviceSpec spec_of(const Device& device) {
  return device.kind() == DeviceKind::cpu ? cpu_device_spec() : cuda_device_spec(device.id().ordinal);
}

}  // namespace thresher::ops

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

Device Device::named(const std::string& name) {
  if (name == "cpu") {
    return cpu();
  }
  if (name == "best") {
    return best();
  }
  if (name == "gpu") {
    return cuda(0);
  }
  constexpr std::string_view prefix = "cuda:";
  int ordinal = 0;
  const char* const end = name.data() + name.size();
  if (name.starts_with(prefix)) {
    const auto [read, error] = std::from_chars(name.data() + prefix.size(), end, ordinal);
    if (error == std::errc{} && read == end) {
      return cuda(ordinal);
    }
  }
  throw Error(ErrorCode::invalid_argument,
              "there is no device '" + name + "', expected cpu, gpu, cuda:N with N counting GPUs from 0, or best");
}

}  // namespace thresher
