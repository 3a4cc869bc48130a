#include "ops/cuda_device_spec.hpp"

#include "runtime/driver.hpp"

namespace thresher::ops {
namespace {

DeviceSpec of_architecture(const std::string& arch) {
  const std::optional<Arch> known = parse_arch(arch);
  if (const DeviceSpec* const spec = known ? find_device_spec(*known) : nullptr) {
    return *spec;
  }
  DeviceSpec unknown = cpu_device_spec();  // what no strategy of a matrix unit is made for
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
