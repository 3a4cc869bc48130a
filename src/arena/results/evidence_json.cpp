#include "arena/results/evidence_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "arena/results/confined_json.hpp"
#include "arena/results/recorded_json.hpp"

namespace thresher::arena {
namespace {

using Json = nlohmann::json;

std::string text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json value_of(double value) {  // JSON has no NaN and no Inf
  return std::isfinite(value) ? Json(value) : Json(fmt::to_string(value));
}
Json value_of(std::int64_t value) { return value; }

Json value_of(const JudgeEvidence::Numbers& numbers) {
  Json json = Json::object();
  for (const auto& [name, number] : numbers) {
    json[name] = std::visit([](auto value) { return value_of(value); }, number);
  }
  return json;
}

Json value_of(const TrialResult& trial) {
  const Finding& finding = trial.finding;
  Json json = value_of(finding.evidence.numbers);
  if (!finding.evidence.rule.empty()) {
    json["rule"] = finding.evidence.rule;
  }
  for (const auto& [name, numbers] : finding.evidence.places) {
    json[name] = value_of(numbers);
  }
  if (finding.error_against_exact) {
    json["error_against_exact_operands"] = *finding.error_against_exact;
  }
  json["problem"] = trial.problem;
  json["distribution"] = trial.distribution;
  json["correct"] = finding.correct;
  if (!finding.correct) {
    json["fault"] = finding.fault;
    json["sentence"] = finding.sentence;
  }
  return json;
}

Json value_of(const TensorReport& tensor) {
  return {{"instructions", tensor.instructions},  {"repeated", tensor.repeated},
          {"scale_copies", tensor.scale_copies},  {"commits", tensor.commits},
          {"of_pairs", tensor.of_pairs},          {"of_blocks", tensor.of_blocks},
          {"loaded_bytes", tensor.loaded_bytes},  {"trap_calls", tensor.trap_calls},
          {"other_calls", tensor.other_calls},    {"traps", tensor.traps},
          {"uniform_moves", tensor.uniform_moves}};
}

Json value_of(const AuditedKernel& kernel) {
  const AuditReport& report = kernel.report;
  Json json{{"kernel", report.kernel},
            {"arch", report.arch},
            {"registers", report.registers},
            {"stack_bytes", report.stack_bytes},
            {"spill_store_bytes", report.spill_store_bytes},
            {"spill_load_bytes", report.spill_load_bytes},
            {"declared_shared_bytes", report.declared_shared_bytes},
            {"disassembled", report.disassembled}};
  if (report.disassembled) {
    json.update({{"matrix_instructions", report.matrix_instructions},
                 {"local_accesses", report.local_accesses},
                 {"shared_accesses", report.shared_accesses},
                 {"tma_loads", report.tma_loads},
                 {"tma_stores", report.tma_stores},
                 {"global_accesses", report.global_accesses},
                 {"wide_global_accesses", report.wide_global_accesses},
                 {"barriers", report.barriers},
                 {"branches", report.branches},
                 {"code_bytes", report.code_bytes}});
  }
  if (report.tensor) {
    json["tensor"] = value_of(*report.tensor);
  }
  for (const auto& [key, words] : {std::pair{"title", &kernel.title}, {"sentence", &kernel.sentence}}) {
    if (!words->empty()) {
      json[key] = *words;
    }
  }
  return json;
}

Json value_of(const ScheduledKernel& kernel) {
  Json json{{"kernel", kernel.kernel}};
  if (!kernel.not_judged.empty()) {
    json["not_judged"] = kernel.not_judged;
    return json;
  }
  json["problems"] = kernel.problems;
  if (kernel.finding) {
    json["finding"] = kernel.finding->text;
    json["seed"] = kernel.finding->seed;
    json["replay"] = kernel.finding->replay;
  }
  return json;
}

Json value_of(const ProbeResult& result) {
  Json json{{"probe", result.probe},
            {"outcome", result.accusation           ? "accused"
                        : result.not_judged.empty() ? "nothing found"
                                                    : "not judged"}};
  if (result.accusation) {
    json["cheat"] = result.accusation->cheat;
    json["sentence"] = result.accusation->sentence;
  } else if (!result.not_judged.empty()) {
    json["why"] = result.not_judged;
  }
  return json;
}

Json value_of(const ProblemVerification& verification) {
  Json json{{"problem", verification.problem},
            {"secret_seed", verification.secret_seed},
            {"samples", verification.samples},
            {"samples_that_do_not_count", verification.uncounted},
            {"samples_that_waited", verification.waited},
            {"calls", verification.calls},
            {"calls_looked_at", verification.calls_looked_at},
            {"whole_outputs", verification.whole_outputs},
            {"inputs_compared", verification.inputs_compared},
            {"seconds_of_samples", verification.sampled_s},
            {"seconds_of_verification", verification.aside_s}};
  if (verification.other_data) {
    json["other_data"] = name(*verification.other_data);
  }
  return json;
}

template <class Value>
Json list_of(const std::vector<Value>& values) {
  Json json = Json::array();
  for (const Value& value : values) {
    json.push_back(value_of(value));
  }
  return json;
}

std::string text_of(std::monostate) { return "{}"; }

std::string text_of(const MemoryNeed& need) {
  return fmt::format(R"({{"needed_bytes":{:.0f},"available_bytes":{:.0f}}})", need.needed_bytes, need.available_bytes);
}

std::string text_of(const CompilerLog& log) { return text({{"log", log.text}}); }

std::string text_of(const BuildEvidence& build) { return to_json(build); }

std::string text_of(const AuditedEvidence& audited) { return text({{"kernels", list_of(audited.kernels)}}); }

std::string text_of(const RaceFreeEvidence& race_free) {
  return text({{"seeds", race_free.seeds}, {"kernels", list_of(race_free.kernels)}});
}

std::string text_of(const CorrectEvidence& correct) {
  const std::string process =
      correct.confined.protections.empty() ? "" : R"(,"process_confined":)" + text(json_of(correct.confined));
  return fmt::format(R"({{"seed":{},"numerics":"{}","trials":{}{}}})", correct.seed, name(correct.numerics),
                     text(list_of(correct.trials)), process);
}

std::string text_of(const HonestEvidence& honest) {
  return text({{"problem", honest.problem}, {"secret_seed", honest.secret_seed}, {"probes", list_of(honest.probes)}});
}

std::string text_of(const TimedEvidence& timed) {
  const Ceilings& ceilings = timed.ceilings;
  return text({{"clock", timed.clock},
               {"verification", list_of(timed.verification)},
               {"distribution", name(timed.distribution)},
               {"budget_s", timed.budget_s},
               {"ceilings",
                {{"peak_operations_per_s", ceilings.peak_operations_per_s},
                 {"sustained_operations_per_s", ceilings.sustained_operations_per_s},
                 {"bytes_per_s", ceilings.bytes_per_s},
                 {"fast_rate", ceilings.fast_rate},
                 {"method", ceilings.method}}}});
}

std::string text_of(const VerdictEvidence& verdict) {
  Json json = Json::object();
  for (const ModeSpeedup& mode : verdict.modes) {
    json[std::string(name(mode.mode))] = {
        {"geomean_speedup", mode.geomean.value}, {"low", mode.geomean.low}, {"high", mode.geomean.high},
        {"noise", noise_factor(mode.self)},      {"rounds", mode.rounds},   {"each", mode.each}};
  }
  return text(json);
}

std::string text_of(const RecordedEvidence& recorded) { return recorded.json; }

std::vector<ModeSpeedup> recorded_speedups(const std::string& evidence) {
  return read_recorded([&] {
    const Json json = parse_recorded<Json>(evidence);
    std::vector<ModeSpeedup> speedups;
    for (const TimingMode mode : all_modes) {
      if (const auto found = json.find(std::string(name(mode))); found != json.end()) {
        ModeSpeedup& speedup = speedups.emplace_back();
        speedup.mode = mode;
        speedup.geomean = {found->at("geomean_speedup"), found->at("low"), found->at("high")};
        speedup.rounds = found->value("rounds", 0);
        speedup.each = found->value("each", std::vector<double>{});
      }
    }
    return speedups;
  });
}

}  // namespace

std::string to_json(const Evidence& evidence) {
  return std::visit([](const auto& found) { return text_of(found); }, evidence);
}

std::string to_json(const AuditedKernel& kernel) { return text(value_of(kernel)); }

std::vector<ModeSpeedup> speedups_of(const Evidence& evidence) {
  if (const auto* const verdict = std::get_if<VerdictEvidence>(&evidence)) {
    return verdict->modes;
  }
  const auto* const recorded = std::get_if<RecordedEvidence>(&evidence);
  return recorded != nullptr ? recorded_speedups(recorded->json) : std::vector<ModeSpeedup>{};
}

}  // namespace thresher::arena
