#pragma once
/// The device code of sums over words.
#include <string>

#include "strategies/device_program.hpp"

namespace thresher::strategies::word_sum {

inline std::string kernel() {
  return "thresher::strategies::word_sum::add_words<thresher::strategies::word_sum::WordSumParams>";
}

inline DeviceProgram program() {
  return {.title = "word_sum",
          .text = "#include \"strategies/word_sum/device/kernel.hpp\"\n",
          .kernels = {kernel()},
          .options = {}};
}

}  // namespace thresher::strategies::word_sum
