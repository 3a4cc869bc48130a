#include "arena/predictions/calibration_samples.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "arena/contestants/registry.hpp"
#include "arena/operation/input_sets.hpp"
#include "arena/operations.hpp"
#include "arena/random.hpp"
#include "arena/timing/timing.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint64_t data_seed = 1;

std::vector<CalibrationCase> everything() {
  std::vector<CalibrationCase> all;
  for (const Operation* operation : operations()) {
    for (CalibrationCase& one : operation->calibration_cases()) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

planner::CalibrationSample sample_of(const CalibrationCase& asked, const DeviceSpec& device) {
  return {.what = label(asked.contestant) + " on " + label(asked.problem),
          .work = asked.problem.operation().outlook(asked.problem, asked.contestant, device, {}).work};
}

/// Median microseconds of the modes that the budget allowed.
void measure(Rig& rig, const CalibrationCase& asked, const Contestant& contestant, const DeviceSpec& device,
             double seconds, std::vector<planner::CalibrationSample>& samples) {
  const bool warm = asked.problem.operation().is_timed_warm();
  const Distribution distribution = warm ? Distribution::normal : Distribution::contest;
  const InputSets inputs = make_input_sets(rig, asked.problem, distribution, data_seed, warm ? 1 : max_sets);
  const auto runner = contestant.prepare(asked.problem, rig.memory(), inputs.sets);
  Random random(derive_seed(data_seed, label(asked.problem)));
  const Times times =
      time_against(nullptr, *runner, rig.clock(), inputs.rotation, {.budget_s = seconds, .warm = warm}, random);
  if (!times.clock_fault.empty()) {
    throw Error(ErrorCode::device, "calibration: the clock cannot be trusted: " + times.clock_fault);
  }
  const auto& modes = warm ? warm_modes : cold_modes;
  for (const auto& [mode, clocks] : {std::pair{modes[0], Clocks::burst}, std::pair{modes[1], Clocks::sustained}}) {
    if (const ModeTimes& taken = times.mode(mode); taken.rounds() >= min_rounds) {
      samples.push_back(sample_of(asked, device));
      samples.back().measured_us = median(taken.baseline_us);
      samples.back().clocks = clocks;
    }
  }
}

}  // namespace

const DeviceSpec& calibrated_device(Rig& rig) {
  if (rig.device().kind() != DeviceKind::cuda) {
    throw Error(ErrorCode::unsupported,
                "calibrate needs a GPU, and there is none here: the planner predicts no contestants of a CPU");
  }
  const std::optional<GpuInfo>& gpu = rig.machine().gpu;
  const DeviceSpec* const spec = gpu ? find_device_spec(gpu->name) : nullptr;
  if (spec == nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("calibrate: the planner has no table for {}, only for {}", rig.device().name(),
                            fmt::join(device_specs() | std::views::transform(&DeviceSpec::name), ", ")));
  }
  return *spec;
}

std::vector<planner::CalibrationSample> measure_calibration(
    Rig& rig, double seconds_each, const std::function<void(const std::string&, std::size_t, std::size_t)>& each) {
  const DeviceSpec& device = calibrated_device(rig);
  const std::vector<CalibrationCase> all = everything();
  std::vector<planner::CalibrationSample> samples;
  for (std::size_t i = 0; i < all.size(); ++i) {
    each(label(all[i].contestant) + " on " + label(all[i].problem), i, all.size());
    const auto contestant = library_registry(rig.device())->create(all[i].contestant);
    if (contestant->feasible(all[i].problem, rig.memory()).yes) {
      measure(rig, all[i], *contestant, device, seconds_each, samples);
    }
  }
  return samples;
}

bool is_calibrated_on(const std::string& problem) {
  const std::vector<CalibrationCase> all = everything();
  return std::any_of(all.begin(), all.end(),
                     [&](const CalibrationCase& asked) { return label(asked.problem) == problem; });
}

planner::PredictionError unseen_error(const std::vector<planner::CalibrationSample>& samples,
                                      const DeviceSpec& device) {
  std::vector<planner::CalibrationSample> seen;
  std::vector<planner::CalibrationSample> unseen;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    (i % 2 == 0 ? seen : unseen).push_back(samples[i]);
  }
  return planner::prediction_error(unseen, device, planner::fit(seen, device));
}

}  // namespace thresher::arena
