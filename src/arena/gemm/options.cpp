#include "arena/gemm/options.hpp"

namespace thresher::arena {

DualGemmOptions plan_options(const ContestantSpec& spec) {
  DualGemmOptions options{.strategy = spec.strategy};
  for (const auto& [knob, value] : spec.knobs) {
    options.knobs.set(knob, value);
  }
  return options;
}

}  // namespace thresher::arena
