#pragma once
/// The device table's description of a GPU of this machine.
#include "core/device_spec.hpp"
#include "thresher/device.hpp"

namespace thresher::ops {

/// The table's entry for the card, with its own number of multiprocessors and the resident clusters for which they have
/// room. A card that is not in the table counts as the entry of its architecture. A card of an unknown architecture has
/// no tensor cores. Throws Error(device) where the driver does.
[[nodiscard]] DeviceSpec cuda_device_spec(int ordinal);

/// The same for any device, the CPU too.
[[nodiscard]] DeviceSpec spec_of(const Device& device);

/// `spec` for a card with a different number of multiprocessors.
[[nodiscard]] DeviceSpec with_multiprocessors(DeviceSpec spec, int multiprocessors);

}  // namespace thresher::ops
