#include "planner/choose.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <tuple>

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

void sort_choices(std::vector<Choice>& choices) {
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return place(a) < place(b); });
}

}  // namespace thresher::planner
