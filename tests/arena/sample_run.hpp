#pragma once
/// A tournament made up for tests of the report: every verdict, every kind of evidence, awkward text.
#include <string>
#include <vector>

#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"

namespace thresher::arena {

inline Measurement sample_measurement(const std::string& problem, TimingMode mode, double contestant_us,
                                      double baseline_us) {
  Measurement measurement;
  measurement.problem = problem;
  measurement.mode = mode;
  measurement.rounds = 12;
  measurement.baseline_us = {baseline_us, baseline_us * 0.98, baseline_us * 1.03};
  measurement.contestant_us = {contestant_us, contestant_us * 0.97, contestant_us * 1.02};
  const double speedup = baseline_us / contestant_us;
  measurement.speedup = {speedup, speedup * 0.98, speedup * 1.02};
  measurement.self = {1, 0.995, 1.006};
  measurement.comparison = speedup > 1.02 ? "faster" : speedup < 0.98 ? "slower" : "same";
  measurement.floor_us = contestant_us / 4;
  measurement.sustained_us = contestant_us / 2;
  measurement.samples =
      R"({"rotation":{"why_not_cold":"rotated over 330 MiB, not over 3 times the last-level cache"}})";
  return measurement;
}

inline std::vector<GateResult> sample_gates(const std::string& verdict_evidence) {
  return {
      {GateKind::feasible, Outcome::passed, "needs 225 MiB of memory, 21250 MiB are available",
       RecordedEvidence{R"({"needed_bytes":225})"}},
      {GateKind::compiles, Outcome::passed, "compiled with Thresher itself"},
      {GateKind::audited, Outcome::not_judged, "no disassembler was found"},
      {GateKind::race_free, Outcome::not_judged, "it runs on the CPU"},
      {GateKind::correct, Outcome::passed, "2 trials; the worst error is 48 % of what is allowed (seed 7)",
       RecordedEvidence{R"({"seed":7,"trials":[{"problem":"256x4096x7168 nvfp4*nvfp4->fp16","distribution":"contest",)"
                        R"("rule":"contest","worst_element":{"row":3,"column":4000,"value":1.5,"reference":"nan"}},)"
                        R"({"problem":"p","fault":"none"}]})"}},
      {GateKind::honest, Outcome::not_judged, ""},
      {GateKind::timed, Outcome::passed, "2 problems, 4 of 8 modes measured with the wall clock",
       RecordedEvidence{R"({"budget_s":6})"}},
      {GateKind::verdict, Outcome::passed, "over dual_gemm/two_pass", RecordedEvidence{verdict_evidence}}};
}

inline Entry sample_entry(const std::string& suite, const std::string& contestant, const std::string& verdict,
                          double factor) {
  Entry entry;
  entry.suite = suite;
  entry.contestant = contestant;
  entry.baseline = "dual_gemm/two_pass";
  entry.verdict = verdict_from_text(verdict);
  entry.sentence = "a sentence";
  entry.clocks = {"wall clock", 2400.0, 2600.0, {"power cap"}};
  const std::string mode = R"({"geomean_speedup":)" + std::to_string(factor) + R"(,"low":)" +
                           std::to_string(factor * 0.98) + R"(,"high":)" + std::to_string(factor * 1.02) +
                           R"(,"noise":1.01,"rounds":12,"each":[1.0]})";
  entry.gates =
      sample_gates(entry.is_baseline() ? "{}" : R"({"cold burst":)" + mode + R"(,"cold sustained":)" + mode + "}");
  entry.speedups = speedups_of(entry.gates.back().evidence);
  for (const char* problem :
       {"256x4096x7168 nvfp4*nvfp4->fp16", "512x3072x7168 nvfp4*nvfp4->fp16 swiglu_clamped(1.702,7,1)"}) {
    for (const TimingMode timed : cold_modes) {
      entry.measurements.push_back(sample_measurement(problem, timed, 41'300 / factor, 41'300));
    }
    Measurement& left_out = entry.measurements.emplace_back();
    left_out.problem = problem;
    left_out.mode = TimingMode::warm_burst;
    left_out.not_measured = "it needs 3.0 s and 1.0 s of the time budget were left";
  }
  return entry;
}

/// A prediction for every entry of the first suite, a tenth too long; the pitched ones carry the panel's opinion.
inline std::vector<PredictionRecord> sample_predictions(const std::vector<Entry>& entries) {
  std::vector<PredictionRecord> predictions;
  for (const Entry& entry : entries) {
    for (const Measurement& measurement : entry.measurements) {
      if (measurement.mode == TimingMode::cold_burst) {
        PredictionRecord& prediction = predictions.emplace_back();
        prediction.ordinal = entry.ordinal;
        prediction.suite = entry.suite;
        prediction.contestant = entry.contestant;
        prediction.problem = measurement.problem;
        prediction.predicted_us = measurement.contestant_us.value * 1.1;
        prediction.why = "bound by the matrix unit";
        prediction.frozen = "2026-11-21T01:02:03Z";
        if (!entry.is_baseline()) {
          prediction.panel =
              R"({"pitch":"Blocks stay in cache","score":0.71,"withdrawn":false,"claimed":[1.5,1.8],"predicted":1.4,)"
              R"("predicted_interval":[1.27,1.54],"touched_share":null,"obstacles":[],"reason":"1.4× predicted",)"
              R"("scores":{"speedup":0.5,"feasibility":1.0,"risk":0.5,"evidence":0.8}})";
          prediction.opinion = panel_from_json(prediction.panel);
        }
      }
    }
  }
  return predictions;
}

/// As `thresher profile --json` writes it.
inline std::string sample_profile() {
  std::string blocks;
  for (int block = 0; block < 128; ++block) {
    blocks += (block == 0 ? "[" : ",[") + std::to_string(block % 3 * 0.2) + "," + std::to_string(38 + block % 5) + "]";
  }
  return R"({"contestant":"packed","problem":"256x4096x7168 nvfp4*nvfp4->fp16","machine":"NVIDIA H200","us":43.2,)"
         R"("parts":[{"part":"epilogue","variant":"left out","us":42.0,"share":{"value":0.028,"low":0.02,"high":0.03}},)"
         R"({"part":"epilogue","variant":"done twice","us":44.4,"share":{"value":0.027,"low":0.02,"high":0.03}}],)"
         R"("timeline":{"clock_ghz":1.71,"span_us":42.0,"roles":[{"role":"math 0","segments":[)"
         R"({"name":"start-up","begin_us":0,"end_us":0.8},{"name":"main loop","begin_us":0.8,"end_us":38},)"
         R"({"name":"epilogue","begin_us":38,"end_us":39.5}]},{"role":"loader","segments":[)"
         R"({"name":"start-up","begin_us":0,"end_us":0.4},{"name":"loads","begin_us":0.4,"end_us":36}]}],"blocks_us":[)" +
         blocks + "]}}";
}

inline RunRecord sample_run() {
  RunRecord run;
  run.id = 12;
  run.started = "2026-11-21T01:02:03Z";
  run.ended = "2026-11-21T01:04:05Z";
  run.device = "cpu";
  run.seed = 7;
  run.arguments =
      R"({"suites":[{"name":"origin","title":"The origin's four problems","timed":true,"text":""},)"
      R"({"name":"edges","title":"The edges of tiles <b>&amp;","timed":false,"text":""}],"pitches":[],"seconds":6})";
  run.context = {
      "0123456789abcdef", R"({"compiler":"GCC 12.2.0","flags":""})",
      R"({"cpu":"A Processor With a Rather Long Name (R) 8480+","memory_bytes":25000000000,"processors":2})"};
  run.entries = {sample_entry("origin", "dual_gemm/two_pass", "baseline", 1),
                 sample_entry("origin", "dual_gemm/interleaved[stages=4,tile=128x256x64,cluster=2x1]", "accepted", 1.6),
                 sample_entry("origin", "dual_gemm/sequential", "rejected", 0.8)};
  run.entries[1].pitch =
      R"({"title":"Blocks stay in cache","claim":{"speedup_low":1.5,"speedup_high":1.8,"confidence":0.9,"reason":"r"}})";
  run.entries[2].pitch =
      R"({"title":"Stages","claim":{"speedup_low":1.3,"speedup_high":1.3,"confidence":0.5,"reason":"r"}})";
  for (Entry& entry : run.entries) {
    entry.claim = claim_from_json(entry.pitch);
  }
  Entry failed = sample_entry("edges", "dual_gemm/pingpong", "failed at correct", 1);
  failed.measurements.clear();
  failed.gates[4] = {GateKind::correct, Outcome::failed,
                     "gate and up swapped: 25800 of 25800 outputs are outside </script>"};
  for (std::size_t gate = 5; gate < failed.gates.size(); ++gate) {
    failed.gates[gate] = {failed.gates[gate].kind, Outcome::skipped, "failed at correct"};
  }
  run.entries.push_back(failed);
  for (std::size_t i = 0; i < run.entries.size(); ++i) {
    run.entries[i].ordinal = static_cast<std::int64_t>(i);
    run.entries[i].context = run.context;
  }
  run.predictions = sample_predictions(run.entries);
  return run;
}

}  // namespace thresher::arena
