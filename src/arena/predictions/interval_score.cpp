// Scores the predicted intervals against measurements.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "arena/predictions/predicted.hpp"
#include "arena/timing/mode.hpp"
#include "core/device_spec.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using nlohmann::json;

json parsed(std::string_view text, const char* what) {
  json found = json::parse(text, nullptr, false);
  if (!found.is_object()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("predict: {} is not a JSON object", what));
  }
  return found;
}

/// A run on another card says nothing about the intervals.
void check_card(const json& intervals, const json& run) {
  const std::string predicted = intervals.at("device");
  const std::string ran = run.at("context").at("machine").value("gpu", "no GPU");
  const DeviceSpec* const card = find_device_spec(ran);
  if (card == nullptr || card->name != predicted) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("predict: what was predicted of {} is not scored by a run on {}", printable(predicted),
                            printable(ran)));
  }
}

/// Problem and contestant.
using Key = std::pair<std::string, std::string>;

std::map<Key, double> measured_in(const json& run) {
  std::map<Key, double> found;
  for (const json& entry : run.at("entries")) {
    for (const json& measurement : entry.at("measurements")) {
      if (measurement.at("mode") == name(TimingMode::cold_burst) && !measurement.contains("not_measured")) {
        found[{measurement.at("problem"), entry.at("contestant")}] = measurement.at("contestant_us").at("value");
      }
    }
  }
  return found;
}

/// The contestants of a problem with both a predicted interval and a measurement.
std::vector<ScoredInterval> scored(const json& problem, const std::map<Key, double>& measured) {
  std::vector<ScoredInterval> found;
  for (const json& contestant : problem.at("contestants")) {
    const auto at = measured.find({problem.at("problem"), contestant.at("contestant")});
    if (at != measured.end() && contestant.contains("low_us")) {
      found.push_back(
          {at->first.first, at->first.second, contestant.at("low_us"), contestant.at("high_us"), at->second});
    }
  }
  return found;
}

/// Contestants whose intervals overlap have no predicted order.
void compare_orders(const std::vector<ScoredInterval>& of_problem, IntervalScore& out) {
  for (std::size_t i = 0; i < of_problem.size(); ++i) {
    for (std::size_t j = i + 1; j < of_problem.size(); ++j) {
      const ScoredInterval& a = of_problem[i];
      const ScoredInterval& b = of_problem[j];
      if (a.high_us < b.low_us || b.high_us < a.low_us) {
        ++out.ordered;
        out.right_order += (a.high_us < b.low_us) == (a.measured_us < b.measured_us) ? 1 : 0;
      }
    }
  }
}

}  // namespace

std::size_t IntervalScore::hits() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(times.begin(), times.end(), [](const ScoredInterval& one) { return one.hit(); }));
}

IntervalScore score(std::string_view predicted, std::string_view run) {
  try {
    const json intervals = parsed(predicted, "the file of predictions");
    const json tournament = parsed(run, "the measured run");
    check_card(intervals, tournament);
    const std::map<Key, double> measured = measured_in(tournament);
    IntervalScore out;
    for (const char* const operation : {"dual_gemm", "grouped"}) {
      for (const json& problem : intervals.at(operation)) {
        const std::vector<ScoredInterval> of_problem = scored(problem, measured);
        compare_orders(of_problem, out);
        out.times.insert(out.times.end(), of_problem.begin(), of_problem.end());
      }
    }
    return out;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("predict: predictions or the measured run lack something: {}", error.what()));
  }
}

std::string text(const IntervalScore& score) {
  if (score.times.empty()) {
    return "nothing that was predicted has been measured\n";
  }
  std::string out = fmt::format("{:>8} {:>8} {:>11}  {:4}  {}\n", "from us", "to us", "measured us", "", "contestant");
  for (const ScoredInterval& one : score.times) {
    out += fmt::format("{:>8.2f} {:>8.2f} {:>11.2f}  {:4}  {} on {}\n", one.low_us, one.high_us, one.measured_us,
                       one.hit() ? "hit" : "miss", printable(one.contestant), printable(one.problem));
  }
  out += fmt::format(
      "{} of {} times lie in their intervals; {} of {} pairs whose intervals do not overlap came in the "
      "order predicted\n",
      score.hits(), score.times.size(), score.right_order, score.ordered);
  return out;
}

}  // namespace thresher::arena
