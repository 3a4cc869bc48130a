#include "arena/predictions/predicted.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "arena/operation/contestant_spec.hpp"
#include "arena/operation/operation.hpp"
#include "arena/predictions/predicted_pitches.hpp"
#include "planner/choose.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using nlohmann::json;
using planner::Choice;
using planner::Prediction;
using strategies::gemm::Product;

double rounded(double value) { return std::round(value * 100) / 100; }

json constants_of(const DeviceSpec& device) {
  json all = json::array();
  for (const TensorUnitField& field : tensor_unit_fields) {
    const Constant& constant = device.tensor.*field.member;
    all.push_back({{"name", field.name},
                   {"unit", field.unit},
                   {"value", constant.value},
                   {"low", constant.low},
                   {"high", constant.high},
                   {"trust", name(constant.trust)},
                   {"source", constant.source}});
  }
  return all;
}

json time_of(const Prediction& prediction) {
  json time{
      {"predicted_us", rounded(prediction.us())}, {"bound", planner::name(prediction.bound)}, {"why", prediction.why}};
  if (prediction.interval) {
    time["low_us"] = rounded(prediction.interval->low_us);
    time["high_us"] = rounded(prediction.interval->high_us);
  }
  return time;
}

json published_of(const PublishedProblem& problem) {
  json times = json::array();
  for (const PublishedTime& time : problem.times) {
    times.push_back({{"who", time.who}, {"us", time.us}});
  }
  return {{"speed_of_light_us", problem.speed_of_light_us}, {"times", times}};
}

// --- dual GEMMs

DualGemmProblem dual_gemm_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16};
}

/// As tournaments label it.
std::string label_of(const DualGemmProblem& problem) {
  return fmt::format("{}x{}x{} {}*{}->{}", problem.m, problem.n, problem.k, name(problem.a), name(problem.b),
                     name(problem.out));
}

std::vector<DualGemmProblem> problems_of(const Published& published) {
  std::vector<DualGemmProblem> problems;
  for (const PublishedProblem& given : published.dual_gemms) {
    problems.push_back(dual_gemm_of(given.m, given.n, given.k));
  }
  return problems;
}

/// Whom a tournament there enters: what `plan` would choose, the library, and both sides of the pitches that run there.
std::vector<ContestantSpec> contestants_of(std::span<const Pitch> pitches, std::span<const DualGemmProblem> problems,
                                           const DeviceSpec& device) {
  std::vector<ContestantSpec> found{{"dual_gemm", "tcgen05", {}}, {"dual_gemm", "two_pass", {}}};
  const auto add = [&](const ContestantSpec& spec) {
    if (std::find(found.begin(), found.end(), spec) == found.end()) {
      found.push_back(spec);
    }
  };
  for (const Pitch& pitch : pitches) {
    if (runs_as_it_stands(pitch, problems, device)) {
      add(pitch.contestant);
      add(pitch.baseline);
    }
  }
  return found;
}

json contestant_of(const ContestantSpec& spec, const DualGemmProblem& problem, const DeviceSpec& device) {
  const Choice best = best_choice(problem, request_of(spec), device);
  json out = time_of(*best.prediction);
  out["contestant"] = label(spec);
  out["knobs"] = best.knobs.text();
  return out;
}

json dual_gemms(const Published& published, std::span<const Pitch> pitches, const DeviceSpec& device) {
  const std::vector<DualGemmProblem> problems = problems_of(published);
  const std::vector<ContestantSpec> specs = contestants_of(pitches, problems, device);
  json all = json::array();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    json contestants = json::array();
    for (const ContestantSpec& spec : specs) {
      contestants.push_back(contestant_of(spec, problems[i], device));
    }
    all.push_back({{"problem", label_of(problems[i])},
                   {"contestants", contestants},
                   {"published", published_of(published.dual_gemms[i])}});
  }
  return all;
}

// --- lists of groups

/// One product of each group, which is what was published: the grouped dual GEMM's half.
json one_matrix(const PublishedProblem& given, const DeviceSpec& device) {
  GroupedProblem problem;
  problem.experts = static_cast<std::int64_t>(given.counts.size());
  problem.rows = std::accumulate(given.counts.begin(), given.counts.end(), std::int64_t{0});
  problem.expected_rows = problem.rows;
  problem.n = given.n;
  problem.k = given.k;
  problem.a = Format::nvfp4;
  problem.b = Format::nvfp4;
  const planner::Choices choices = planner::choose<strategies::gemm::ProductProblem>(
      strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda), problem, {.strategy = "tcgen05"}, device);
  json out = time_of(*choices.ranked.front().prediction);
  out["knobs"] = choices.ranked.front().knobs.text();
  return out;
}

/// The contestant that a tournament there times.
json contestant_of(const Problem& list, const DeviceSpec& device) {
  const ContestantSpec spec{std::string(list.operation().name()), "tcgen05", {}};
  json out = time_of(list.operation().outlook(list, spec, device, {}).prediction);
  out["contestant"] = label(spec);
  return out;
}

/// As tournaments label it.
std::string list_label_of(const PublishedProblem& given) {
  return fmt::format("{}x{}x{} nvfp4*nvfp4->fp16 rows({})", given.counts.size(), given.n, given.k,
                     fmt::join(given.counts, ","));
}

json grouped(const Published& published, std::span<const Problem> lists, const DeviceSpec& device) {
  if (lists.size() != published.grouped.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("predict: {} lists of groups were published, and there are {} problems",
                            published.grouped.size(), lists.size()));
  }
  json all = json::array();
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (const std::string given = list_label_of(published.grouped[i]); given != label(lists[i])) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("predict: list {} of groups was published of {}, and tournaments have {} there", i + 1,
                              given, label(lists[i])));
    }
    all.push_back({{"problem", label(lists[i])},
                   {"contestants", json::array({contestant_of(lists[i], device)})},
                   {"one_matrix", one_matrix(published.grouped[i], device)},
                   {"published", published_of(published.grouped[i])}});
  }
  return all;
}

// --- pitches

json pitches_of(std::span<const Pitch> pitches, const Published& published, const DeviceSpec& device) {
  const std::vector<DualGemmProblem> problems = problems_of(published);
  json all = json::array();
  for (const Pitch& pitch : pitches) {
    const PredictedPitch predicted = predict_pitch(pitch, problems, device);
    all.push_back({{"pitch", pitch.title},
                   {"file", std::filesystem::path(pitch.file).filename().string()},
                   {"claimed", {pitch.claim.speedup_low, pitch.claim.speedup_high}},
                   {"here", predicted.here},
                   {"contestant", predicted.contestant},
                   {"baseline", predicted.baseline},
                   {"speedup", rounded(predicted.speedup)},
                   {"low", rounded(predicted.low)},
                   {"high", rounded(predicted.high)},
                   {"bound", planner::name(predicted.bound)}});
  }
  return all;
}

}  // namespace

std::string constants_json(const DeviceSpec& device) { return constants_of(device).dump(); }

std::string predict_card(const DeviceSpec& device, const Published& published, std::span<const Pitch> pitches,
                         std::span<const Problem> lists) {
  if (device.matrix_unit != MatrixUnit::tcgen05) {
    throw Error(ErrorCode::unsupported,
                fmt::format("predict: the constants of {} have no intervals: name B200 or GB300", device.name));
  }
  const json all{
      {"device", device.name},
      {"what",
       "one call in a graph of many, inputs cold: microseconds of the kernels by the device's clock; predicted before "
       "anybody ran it there"},
      {"interval",
       "each constant is taken to both of its ends alone, and the deviations are added by the root of the sum of their "
       "squares"},
      {"constants", constants_of(device)},
      {"dual_gemm", dual_gemms(published, pitches, device)},
      {"grouped", grouped(published, lists, device)},
      {"grouped_note",
       "rows are taken to be spread evenly, since counts are not known when a call is planned; what was published is "
       "one_matrix, one product of each group, without gate and up"},
      {"pitches", pitches_of(pitches, published, device)},
      {"published", {{"title", published.title}, {"caveat", published.caveat}, {"sources", published.sources}}}};
  return all.dump(1) + "\n";
}

}  // namespace thresher::arena
