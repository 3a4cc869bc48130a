#include "arena/calibration_samples.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "arena/foretold.hpp"
#include "arena/input_sets.hpp"
#include "arena/random.hpp"
#include "arena/registry.hpp"
#include "arena/timing.hpp"
#include "ops/forecast.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint64_t data_seed = 1;

struct Asked {
  DualGemmProblem problem;
  ContestantSpec contestant;
};

void add(std::vector<Asked>& all, const DualGemmProblem& problem, const char* strategy,
         std::map<std::string, std::string> knobs = {}) {
  all.push_back({problem, {"dual_gemm", strategy, std::move(knobs)}});
}

std::vector<Asked> everything() {
  std::vector<Asked> all;
  const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, Format a, Format b, Format out) {
    return DualGemmProblem{.m = m, .n = n, .k = k, .a = a, .b = b, .out = out};
  };
  for (const auto& [m, n, k] : {std::tuple{128, 5120, 5120}, {320, 6144, 4096}, {1024, 5120, 5120}}) {
    const DualGemmProblem plain = of(m, n, k, Format::bf16, Format::bf16, Format::bf16);
    for (const char* strategy : {"two_pass", "interleaved", "sequential", "pingpong"}) {
      add(all, plain, strategy);
    }
    const DualGemmProblem packed = of(m, n, k, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "interleaved", {{"numerics", "exact"}, {"tile", "128x128x128"}, {"stages", "3"}});
  }
  for (const std::int64_t m : {2, 24, 48}) {
    const DualGemmProblem packed = of(m, 11008, 4096, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
  }
  return all;
}

/// Median microseconds of the modes that the budget allowed.
void measure(Rig& rig, const Asked& asked, const planner::DualGemmConfig& config, double seconds,
             std::vector<planner::CalibrationSample>& samples) {
  const Problem problem{.dual_gemm = asked.problem};
  const InputSets inputs = make_input_sets(rig, problem, Distribution::contest, data_seed);
  const auto runner =
      library_registry(rig.device())->create(asked.contestant)->prepare(problem, rig.memory(), inputs.sets);
  Random random(derive_seed(data_seed, label(problem)));
  const Times times = time_against(nullptr, *runner, rig.clock(), inputs.rotation, {.budget_s = seconds}, random);
  if (!times.clock_fault.empty()) {
    throw Error(ErrorCode::device, "calibration: the clock cannot be trusted: " + times.clock_fault);
  }
  for (const auto& [mode, clocks] : {std::pair{Mode::cold_burst, planner::Clocks::burst},
                                     std::pair{Mode::cold_sustained, planner::Clocks::sustained}}) {
    if (const ModeTimes& taken = times.mode(mode); taken.rounds() >= min_rounds) {
      samples.push_back({asked.problem, config, median(taken.baseline_us), clocks});
    }
  }
}

const planner::DeviceSpec& table_of(Rig& rig) {
  if (rig.device().kind() != DeviceKind::cuda) {
    throw Error(ErrorCode::unsupported,
                "calibrate needs a GPU, and there is none here: the planner predicts no contestants of a CPU");
  }
  const planner::DeviceSpec* const spec = forecaster_for(rig.machine_json()).device;
  if (spec == nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("calibrate: the planner has no table for {}, only for H100, H200, B200 and GB300",
                            rig.device().name()));
  }
  return *spec;
}

}  // namespace

std::vector<planner::CalibrationSample> measure_calibration(
    Rig& rig, double seconds_each, const std::function<void(const std::string&, std::size_t, std::size_t)>& each) {
  const planner::DeviceSpec& device = table_of(rig);
  const std::vector<Asked> all = everything();
  std::vector<planner::CalibrationSample> samples;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Problem problem{.dual_gemm = all[i].problem};
    each(label(all[i].contestant) + " on " + label(problem), i, all.size());
    const auto contestant = library_registry(rig.device())->create(all[i].contestant);
    if (contestant->feasible(problem, rig.memory()).yes) {
      const PlanOptions options = plan_options(all[i].contestant);
      measure(rig, all[i], ops::planned_contestant(all[i].problem, options, device), seconds_each, samples);
    }
  }
  return samples;
}

planner::PredictionError unseen_error(const std::vector<planner::CalibrationSample>& samples,
                                      const planner::DeviceSpec& device) {
  std::vector<planner::CalibrationSample> seen;
  std::vector<planner::CalibrationSample> unseen;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    (i % 2 == 0 ? seen : unseen).push_back(samples[i]);
  }
  return planner::prediction_error(unseen, device, planner::fit(seen, device));
}

}  // namespace thresher::arena
