#include "arena/pitches/pitch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arena/audit/expectations.hpp"
#include "arena/config/config.hpp"
#include "arena/operations.hpp"
#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

ContestantSpec read_spec(const ConfigTable& table, const std::string& default_operation) {
  ContestantSpec spec;
  spec.operation = default_operation.empty() ? table.text("operation") : table.text_or("operation", default_operation);
  const std::vector<std::string_view> known = operation_names();
  if (std::find(known.begin(), known.end(), spec.operation) == known.end()) {
    table.fail("operation", fmt::format("is \"{}\", but must be one of {}", printable(spec.operation.substr(0, 100)),
                                        fmt::join(known, ", ")));
  }
  spec.strategy = table.text("strategy");
  if (const auto knobs = table.optional_table("knobs")) {
    for (const auto& [knob, value] : knobs->entries()) {
      spec.knobs[knob] = value;
    }
  }
  table.reject_unknown();
  return spec;
}

double positive(const ConfigTable& table, const std::string& key, double value) {
  if (!(value > 0)) {
    table.fail(key, fmt::format("is {}, but must be greater than 0", value));
  }
  return value;
}

std::optional<double> optional_positive(const ConfigTable& table, const std::string& key) {
  const std::optional<double> value = table.optional_number(key);
  return value ? std::optional(positive(table, key, *value)) : std::nullopt;
}

double share(const ConfigTable& table, const std::string& key) {
  const double value = table.number(key);
  if (value < 0 || value > 1) {
    table.fail(key, fmt::format("is {}, but must lie between 0 and 1", value));
  }
  return value;
}

Claim read_claim(const ConfigTable& table) {
  Claim claim;
  const std::vector<double> speedup = table.numbers("speedup");
  if (speedup.size() > 2 || speedup.front() > speedup.back()) {
    table.fail("speedup", "must be one number, or two of which the first is not greater");
  }
  claim.speedup_low = positive(table, "speedup", speedup.front());
  claim.speedup_high = speedup.back();
  claim.confidence = share(table, "confidence");
  claim.reason = table.text("reason");
  claim.touches = table.text_or("touches", "");
  table.reject_unknown();
  return claim;
}

/// Names of user kernels: they may not look like another name with knobs, nor print differently than they read.
bool is_name(const std::string& text) {
  constexpr std::size_t longest = 64;
  return !text.empty() && text.size() <= longest && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

PitchCost read_cost(const ConfigTable& table) {
  PitchCost cost;
  cost.days = table.optional_number("days");
  if (cost.days && *cost.days < 0) {
    table.fail("days", "must not be negative");
  }
  cost.risk = table.text_or("risk", "");
  table.reject_unknown();
  return cost;
}

/// Any gate but the verdict, which the list decides.
std::vector<GateKind> read_gates(const ConfigTable& table) {
  std::vector<GateKind> gates;
  if (!table.has("gates")) {
    return gates;
  }
  std::vector<std::string_view> known;
  for (const GateTraits& gate : all_gates) {
    if (gate.kind != GateKind::verdict) {
      known.push_back(gate.name);
    }
  }
  for (const std::string& gate : table.texts("gates")) {
    if (std::find(known.begin(), known.end(), gate) == known.end()) {
      table.fail("gates", fmt::format("names \"{}\", but there are only the gates {}", gate, fmt::join(known, ", ")));
    }
    if (std::find(gates.begin(), gates.end(), gate_from_name(gate)) != gates.end()) {
      table.fail("gates", fmt::format("names \"{}\" twice", gate));
    }
    gates.push_back(gate_from_name(gate));
  }
  return gates;
}

Acceptance read_acceptance(const ConfigTable& table) {
  Acceptance accept;
  accept.geomean_speedup = optional_positive(table, "geomean_speedup");
  accept.each_speedup = optional_positive(table, "each_speedup");
  accept.gates = read_gates(table);
  accept.shared_memory_bytes_below = optional_positive(table, "shared_memory_bytes_below");
  accept.occupancy_not_worse = table.boolean_or("occupancy_not_worse", false);
  accept.fall_back_below = optional_positive(table, "fall_back_below");
  table.reject_unknown();
  return accept;
}

std::map<std::string, std::string> read_audit(const ConfigTable& table) {
  std::map<std::string, std::string> expectations;
  for (const auto& [key, value] : table.entries()) {
    AuditExpectations unused;
    if (const std::string fault = try_expectation(unused, key, value); !fault.empty()) {
      table.fail(key, fault);
    }
    expectations[key] = value;
  }
  return expectations;
}

template <class Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::vector<std::string_view> names(const std::vector<GateKind>& gates) {
  std::vector<std::string_view> all;
  for (const GateKind gate : gates) {
    all.push_back(name(gate));
  }
  return all;
}

nlohmann::json kernel_json(const std::optional<user_kernels::Kernel>& kernel) {
  return kernel ? nlohmann::json{{"source", kernel->source}, {"entry", kernel->entry}, {"text", kernel->text}}
                : nlohmann::json();
}

nlohmann::json spec_json(const ContestantSpec& spec) {
  return {{"name", label(spec)}, {"operation", spec.operation}, {"strategy", spec.strategy}, {"knobs", spec.knobs}};
}

}  // namespace

Pitch parse_pitch(std::string_view text, const std::string& file) {
  const ConfigTable top = ConfigTable::parse(text, file);
  Pitch pitch;
  pitch.file = file;
  pitch.text = text;
  pitch.title = top.text("title");
  pitch.author = top.text_or("author", "");
  pitch.contestant = read_spec(top.table("contestant"), "");
  pitch.baseline = read_spec(top.table("baseline"), pitch.contestant.operation);
  if (pitch.baseline.operation != pitch.contestant.operation) {
    top.fail("baseline", "is of another operation than the contestant");
  }
  if (pitch.baseline == pitch.contestant) {
    top.fail("baseline", fmt::format("is the contestant itself, {}", label(pitch.contestant)));
  }
  pitch.claim = read_claim(top.table("claim"));
  if (const auto cost = top.optional_table("cost")) {
    pitch.cost = read_cost(*cost);
  }
  if (const auto accept = top.optional_table("accept")) {
    pitch.accept = read_acceptance(*accept);
  }
  if (const auto kernel = top.optional_table("kernel")) {
    pitch.kernel = user_kernels::read_kernel(*kernel, file, find_operation(pitch.contestant.operation));
    if (!is_name(pitch.contestant.strategy)) {
      top.table("contestant")
          .fail("strategy", fmt::format("is \"{}\", but a kernel's name is 1 to 64 of A-Z, a-z, 0-9, _, . and -",
                                        printable(pitch.contestant.strategy.substr(0, 100))));
    }
    if (!pitch.contestant.knobs.empty()) {
      top.fail("contestant", "has knobs, but a user kernel takes none: use options in [kernel]");
    }
  }
  if (const auto audit = top.optional_table("audit")) {
    pitch.audit = read_audit(*audit);
  }
  if (const auto abort = top.optional_table("abort")) {
    if (abort->has("share_of_time_below")) {
      pitch.abort_below_share = share(*abort, "share_of_time_below");
    }
    abort->reject_unknown();
  }
  top.reject_unknown();
  return pitch;
}

Pitch load_pitch(const std::string& path) {
  const InputFile file = read_input_file(path);
  if (!file.bytes) {
    throw Error(ErrorCode::invalid_argument, fmt::format("pitch {}: {}", path, file.obstacle));
  }
  return parse_pitch(*file.bytes, path);
}

std::string to_json(const Pitch& pitch) {
  const Acceptance& accept = pitch.accept;
  return nlohmann::json{{"file", pitch.file},
                        {"title", pitch.title},
                        {"author", pitch.author},
                        {"contestant", spec_json(pitch.contestant)},
                        {"baseline", spec_json(pitch.baseline)},
                        {"claim",
                         {{"speedup_low", pitch.claim.speedup_low},
                          {"speedup_high", pitch.claim.speedup_high},
                          {"confidence", pitch.claim.confidence},
                          {"reason", pitch.claim.reason},
                          {"touches", pitch.claim.touches}}},
                        {"cost", {{"days", or_null(pitch.cost.days)}, {"risk", pitch.cost.risk}}},
                        {"accept",
                         {{"geomean_speedup", or_null(accept.geomean_speedup)},
                          {"each_speedup", or_null(accept.each_speedup)},
                          {"gates", names(accept.gates)},
                          {"shared_memory_bytes_below", or_null(accept.shared_memory_bytes_below)},
                          {"occupancy_not_worse", accept.occupancy_not_worse},
                          {"fall_back_below", or_null(accept.fall_back_below)}}},
                        {"audit", pitch.audit},
                        {"kernel", kernel_json(pitch.kernel)},
                        {"abort", {{"share_of_time_below", or_null(pitch.abort_below_share)}}},
                        {"text", pitch.text}}
      .dump();
}

}  // namespace thresher::arena
