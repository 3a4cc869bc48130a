#include "cpu/instructions.hpp"

#include <hwy/targets.h>

namespace thresher::cpu {

std::string vector_instructions() {
  const std::int64_t supported = hwy::SupportedTargets();
  return hwy::TargetName(supported & -supported);  // a better target has a lower bit
}

}  // namespace thresher::cpu
