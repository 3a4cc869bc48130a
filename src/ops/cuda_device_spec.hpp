#pragma once
/// A GPU that is here in the words of the device table.
#include "core/device_spec.hpp"
#include "thresher/device.hpp"

namespace thresher::ops {

/// The table's entry for the card, with its own count of multiprocessors and as many resident clusters as these give
/// room to; a card that is not in the table counts as the entry of its architecture, and one of an unknown architecture
/// has no matrix unit. Throws Error(device) where the driver does.
[[nodiscard]] DeviceSpec cuda_device_spec(int ordinal);

/// The same for any device.
[[nodiscard]] DeviceSpec spec_of(const Device& device);

/// `spec` for a card with other multiprocessors.
[[nodiscard]] DeviceSpec with_multiprocessors(DeviceSpec spec, int multiprocessors);

}  // namespace thresher::ops
