#include "arena/predictions/calibration_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "arena/attention/task.hpp"
#include "arena/contestants/registry.hpp"
#include "arena/dual_gemm/task.hpp"
#include "arena/operation/input_sets.hpp"
#include "arena/predictions/predictions.hpp"
#include "arena/random.hpp"
#include "arena/timing/timing.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint64_t data_seed = 1;

struct Asked {
  Problem problem;
  ContestantSpec contestant;
};

void add(std::vector<Asked>& all, const DualGemmProblem& problem, const char* strategy,
         std::map<std::string, std::string> knobs = {}) {
  all.push_back({problem_of(problem), {"dual_gemm", strategy, std::move(knobs)}});
}

void add_attention(std::vector<Asked>& all, const AttentionProblem& problem, const char* strategy) {
  all.push_back({problem_of(AttentionTask{problem}), {"attention", strategy}});
}

void add_products(std::vector<Asked>& all) {
  const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, Format a, Format b, Format out) {
    return DualGemmProblem{.m = m, .n = n, .k = k, .a = a, .b = b, .out = out};
  };
  const std::map<std::string, std::string> fast{{"numerics", "fast"}};
  for (const auto& [m, n, k] : {std::tuple{128, 5120, 5120}, {320, 6144, 4096}, {1024, 5120, 5120}}) {
    const DualGemmProblem plain = of(m, n, k, Format::bf16, Format::bf16, Format::bf16);
    for (const char* strategy : {"two_pass", "interleaved", "sequential", "pingpong"}) {
      add(all, plain, strategy);
    }
    const DualGemmProblem packed = of(m, n, k, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "packed", fast);
    add(all, packed, "packed",
        {{"math_warpgroups", "2"},
         {"block_tokens", "128"},
         {"blocks_per_slot", "2"},
         {"stages", "3"},
         {"split_k", "1"}});
  }
  for (const std::int64_t m : {2, 24, 48}) {
    const DualGemmProblem packed = of(m, 11008, 4096, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "packed", fast);
  }
}

void add_attentions(std::vector<Asked>& all) {
  const auto of = [](std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t head_dim, bool causal) {
    return AttentionProblem{.batch = batch,
                            .heads = heads,
                            .kv_heads = heads,
                            .queries = length,
                            .keys = length,
                            .head_dim = head_dim,
                            .format = Format::bf16,
                            .causal = causal};
  };
  for (const bool causal : {false, true}) {
    add_attention(all, of(1, 10, 384, 64, causal), "split");
    add_attention(all, of(1, 10, 384, 64, causal), "pipelined");
    add_attention(all, of(2, 16, 3072, 64, causal), "pipelined");
    add_attention(all, of(2, 12, 3072, 128, causal), "pipelined");
  }
}

std::vector<Asked> everything() {
  std::vector<Asked> all;
  add_products(all);
  add_attentions(all);
  return all;
}

planner::CalibrationSample sample_of(const Asked& asked, const DeviceSpec& device) {
  return {.what = label(asked.contestant) + " on " + label(asked.problem),
          .work = asked.problem.operation().outlook(asked.problem, asked.contestant, device, {}).work};
}

/// Median microseconds of the modes that the budget allowed.
void measure(Rig& rig, const Asked& asked, const Contestant& contestant, const DeviceSpec& device, double seconds,
             std::vector<planner::CalibrationSample>& samples) {
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

const DeviceSpec& table_of(Rig& rig) {
  if (rig.device().kind() != DeviceKind::cuda) {
    throw Error(ErrorCode::unsupported,
                "calibrate needs a GPU, and there is none here: the planner predicts no contestants of a CPU");
  }
  const DeviceSpec* const spec = forecaster_for(rig.machine()).device;
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
  const DeviceSpec& device = table_of(rig);
  const std::vector<Asked> all = everything();
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
  const std::vector<Asked> all = everything();
  return std::any_of(all.begin(), all.end(), [&](const Asked& asked) { return label(asked.problem) == problem; });
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
