#pragma once
/// The device code of sums over words.
#include <string>

#include "strategies/device_program.hpp"

namespace thresher::strategies::word_sum {

DeviceProgram program();
std::string kernel();

}  // namespace thresher::strategies::word_sum
