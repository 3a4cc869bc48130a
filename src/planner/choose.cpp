#include "planner/choose.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <tuple>

#include "planner/choose_steady.hpp"

namespace thresher::planner {
namespace {

auto place(const Choice& choice) {
  return std::tuple(choice.role, choice.prediction ? choice.prediction->us() : std::numeric_limits<double>::max());
}

}  // namespace

void refuse_unknown_strategy(const std::string& name, const std::vector<std::string>& known) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("strategy {} is not known: use one of {}", name, fmt::join(known, ", ")));
}

void refuse_knobs(const Knobs& knobs, const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("no strategy takes the knobs \"{}\": {}; name a strategy to hear what it says", knobs.text(),
                          sentence));
}

Knobs with_steady_knobs(const Knobs& knobs, const Knobs& steady) {
  Knobs all = knobs;
  for (const auto& [knob, value] : steady) {
    if (const std::string* const given = knobs.find(knob); given != nullptr && *given != value) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("deterministic is batch, for which {} is {}, but the knob says {}: leave it out", knob,
                              value, *given));
    }
    all.set(knob, value);
  }
  return all;
}

std::string not_steady(std::string_view strategy) {
  return fmt::format("deterministic is batch, but the bits of strategy {} depend on the batch here", strategy);
}

void sort_choices(std::vector<Choice>& choices) {
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return place(a) < place(b); });
}

}  // namespace thresher::planner
