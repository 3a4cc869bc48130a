#include "runtime/driver.hpp"

namespace thresher::runtime {

std::string version_text(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

}  // namespace thresher::runtime
