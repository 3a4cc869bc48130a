#include "arena/moe_layer/options.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr const char* strategy_of_down = "down";
constexpr std::string_view knob_of_down = "down.";

void set(MoeOptions& options, const std::string& knob, const std::string& value) {
  if ((knob == "numerics" || knob == "down.numerics") && value != name(Numerics::exact)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("knob {} of a layer is {}, expected exact: layers are judged on the operands as they are, "
                            "and not as they are folded",
                            knob, value));
  }
  if (knob == strategy_of_down) {
    options.down.strategy = value;
  } else if (knob.starts_with(knob_of_down)) {
    options.down.knobs.set(knob.substr(knob_of_down.size()), value);
  } else {
    options.gate_up.knobs.set(knob, value);
    if (knob == "threads") {
      options.down.knobs.set(knob, value);
    }
  }
}

MoeOptions of(const std::string& strategy, const auto& knobs) {
  MoeOptions options;
  options.gate_up.strategy = strategy == planned_layer ? "" : strategy;
  for (const auto& [knob, value] : knobs) {
    set(options, knob, value);
  }
  return options;
}

}  // namespace

MoeOptions layer_options(const PlanRequest& request) { return of(request.strategy, Knobs::parse(request.knobs)); }

MoeOptions layer_options(const ContestantSpec& spec) { return of(spec.strategy, spec.knobs); }

GatedMlpOptions gated_mlp_options(const MoeOptions& options) {
  return {.gate_up = options.gate_up, .down = options.down};
}

PlanRequest request_of(const MoeOptions& options) {
  Knobs knobs = options.gate_up.knobs;
  if (!options.down.strategy.empty()) {
    knobs.set(strategy_of_down, options.down.strategy);
  }
  for (const auto& [knob, value] : options.down.knobs) {
    knobs.set(std::string(knob_of_down) + knob, value);
  }
  return {options.gate_up.strategy.empty() ? planned_layer : options.gate_up.strategy, knobs.text()};
}

}  // namespace thresher::arena
