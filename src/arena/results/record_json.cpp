#include "arena/results/record_json.hpp"

#include <nlohmann/json.hpp>

#include "arena/results/recorded_json.hpp"

namespace thresher::arena {
namespace {

using Json = nlohmann::json;

Json value_of(const MachineInfo& host) {
  return {{"device", "cpu"},
          {"cpu", host.cpu},
          {"processors", host.processors},
          {"memory_bytes", host.memory_bytes},
          {"last_level_cache_bytes", host.last_level_cache_bytes},
          {"clock_mhz", host.clock_mhz},
          {"operating_system", host.operating_system},
          {"kernel", host.kernel},
          {"virtual_machine", host.is_virtual},
          {"instructions", host.instructions}};
}

Json value_of(const Machine& machine) {
  if (!machine.gpu) {
    return value_of(machine.host);
  }
  const GpuInfo& gpu = *machine.gpu;
  return {{"device", machine.device},
          {"gpu", gpu.name},
          {"arch", gpu.arch},
          {"multiprocessors", gpu.multiprocessors},
          {"clock_mhz", gpu.clock_mhz},
          {"memory_bytes", gpu.memory_bytes},
          {"last_level_cache_bytes", gpu.last_level_cache_bytes},
          {"power_limit_w", gpu.power_limit_w},
          {"driver", gpu.driver},
          {"driver_cuda", gpu.driver_cuda},
          {"nvrtc", gpu.nvrtc},
          {"cublaslt", gpu.cublaslt},
          {"host", value_of(machine.host)}};
}

std::optional<double> optional_number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::nullopt : std::optional(found->get<double>());
}

}  // namespace

std::string to_json(const Toolchain& toolchain) {
  return Json{{"thresher", toolchain.thresher}, {"compiler", toolchain.compiler}, {"build_type", toolchain.build_type},
              {"flags", toolchain.flags},       {"onednn", toolchain.onednn},     {"sqlite", toolchain.sqlite}}
      .dump();
}

std::string to_json(const Machine& machine) {
  Json json = value_of(machine);
  if (!machine.name.empty()) {
    json["name"] = machine.name;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const ClockSummary& clocks) {
  if (clocks.clock.empty()) {
    return "{}";
  }
  Json json{{"clock", clocks.clock}, {"throttle_reasons", clocks.throttle_reasons}};
  if (clocks.lowest_mhz) {
    json["lowest_mhz"] = *clocks.lowest_mhz;
  }
  if (clocks.highest_mhz) {
    json["highest_mhz"] = *clocks.highest_mhz;
  }
  return json.dump();
}

ClockSummary clocks_from_json(const std::string& clocks) {
  return read_recorded([&]() -> ClockSummary {
    const Json json = parse_recorded(clocks);
    return {json.value("clock", ""), optional_number(json, "lowest_mhz"), optional_number(json, "highest_mhz"),
            json.value("throttle_reasons", std::set<std::string>{})};
  });
}

std::optional<ClaimRecord> claim_from_json(const std::string& pitch) {
  return read_recorded([&]() -> std::optional<ClaimRecord> {
    const Json json = pitch.empty() ? Json::object() : parse_recorded(pitch);
    if (!json.contains("claim")) {
      return std::nullopt;
    }
    return ClaimRecord{json.at("title"), json["claim"].at("speedup_low"), json["claim"].at("speedup_high")};
  });
}

std::optional<PanelRecord> panel_from_json(const std::string& opinion) {
  return read_recorded([&]() -> std::optional<PanelRecord> {
    const Json json = opinion.empty() ? Json::object() : parse_recorded(opinion);
    if (!json.contains("predicted") || json["predicted"].is_null()) {
      return std::nullopt;
    }
    const auto& claimed = json.at("claimed");
    const auto& interval = json.at("predicted_interval");
    return PanelRecord{claimed.at(0), claimed.at(1), json.at("predicted"), interval.at(0), interval.at(1)};
  });
}

MachineLabel machine_from_json(const std::string& machine) {
  return read_recorded([&]() -> MachineLabel {
    const Json json = parse_recorded(machine);
    return {json.value("name", ""), json.value("gpu", json.value("cpu", ""))};
  });
}

std::vector<std::string> suites_from_json(const std::string& arguments) {
  return read_recorded([&] {
    std::vector<std::string> names;
    const Json json = parse_recorded(arguments);
    for (const Json& suite : json.value("suites", Json::array())) {
      names.push_back(suite.at("name"));
    }
    return names;
  });
}

}  // namespace thresher::arena
