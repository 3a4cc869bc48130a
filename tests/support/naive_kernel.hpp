#pragma once
/// The text of naive_kernel.h.
#include <fstream>
#include <iterator>
#include <string>

namespace thresher {

inline std::string naive_kernel() {
  std::ifstream stream(std::string(THRESHER_SOURCE_DIR) + "/tests/support/naive_kernel.h", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace thresher
