#include "arena/dual_gemm/options.hpp"

namespace thresher::arena {

planner::DualGemmConfig planner_config(const ContestantSpec& spec) {
  std::string words = spec.strategy == "packed" ? "interleaved" : spec.strategy;  // what it is in the planner's words
  for (const auto& [knob, value] : spec.knobs) {
    if (knob == "tile" || knob == "numerics") {
      words += " " + value;
    } else if (value == "true") {
      words += " " + knob;
    } else if (knob == "epilogue" || knob == "raster") {
      words += value == "tma" || value == "same_tokens" ? " " + value : "";
    } else if (value != "false") {
      words += " " + knob + "=" + value;
    }
  }
  return planner::parse_config(words);
}

DualGemmOptions plan_options(const ContestantSpec& spec) {
  DualGemmOptions options{.strategy = spec.strategy};
  if (spec.knobs.empty()) {
    return options;
  }
  const planner::DualGemmConfig config = planner_config(spec);
  if (spec.knobs.size() == 1 && spec.knobs.contains("numerics")) {
    options.numerics = config.numerics;
  } else {
    options.knobs = Knobs::parse(planner::text(config));
  }
  return options;
}

}  // namespace thresher::arena
