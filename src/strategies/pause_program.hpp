#pragma once
/// The device code of a pause on a stream.
#include <string>

#include "strategies/device_program.hpp"

namespace thresher::strategies {

DeviceProgram pause_program();
std::string pause_kernel();

}  // namespace thresher::strategies
