#include "strategies/word_sum/program.hpp"

namespace thresher::strategies::word_sum {

std::string kernel() {
  return "thresher::strategies::word_sum::add_words<thresher::strategies::word_sum::WordSumParams>";
}

DeviceProgram program() {
  return {.title = "word_sum",
          .text = "#include \"strategies/word_sum/device/kernel.hpp\"\n",
          .kernels = {kernel()},
          .options = {}};
}

}  // namespace thresher::strategies::word_sum
