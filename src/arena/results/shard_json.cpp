#include "arena/results/shard_json.hpp"

#include <nlohmann/json.hpp>

#include "arena/results/recorded_json.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

[[noreturn]] void fail_as_no_shard() {
  throw Error(ErrorCode::invalid_argument, "what was recorded of its shards is not as it was written");
}

int checked_number(const nlohmann::json& json, int count) {
  const auto number = json.get<std::int64_t>();
  if (number < 1 || number > count) {
    fail_as_no_shard();
  }
  return static_cast<int>(number);
}

nlohmann::json to_json_value(const MergedShard& shard) {
  return {{"shard", shard.number},    {"device", shard.device}, {"machine", parse_recorded(shard.machine)},
          {"started", shard.started}, {"ended", shard.ended},   {"hash", shard.hash},
          {"entries", shard.entries}};
}

/// The part that all shards of a tournament have in common.
nlohmann::json common_part(const std::string& arguments) {
  nlohmann::json json = parse_recorded(arguments);
  read_recorded([&] {
    if (json.contains("shard")) {
      json["matches"] = json["shard"].at("matches");
      json.erase("shard");
    }
    for (nlohmann::json& pitch : json["pitches"]) {
      pitch.erase("file");
    }
  });
  return json;
}

}  // namespace

std::string add_shard(const std::string& arguments, const ShardRecord& shard) {
  nlohmann::json matches = nlohmann::json::array();
  for (const MatchRecord& match : shard.matches) {
    matches.push_back({{"suite", match.suite},
                       {"contestant", match.contestant},
                       {"baseline", match.baseline},
                       {"shard", match.shard}});
  }
  nlohmann::json json = parse_recorded(arguments);
  json["shard"] = {{"number", shard.shard.number}, {"count", shard.shard.count}, {"matches", matches}};
  return json.dump();
}

std::string add_merge(const std::string& arguments_of_shard, const MergeRecord& merge) {
  nlohmann::json shards = nlohmann::json::array();
  for (const MergedShard& shard : merge.shards) {
    shards.push_back(to_json_value(shard));
  }
  nlohmann::json json = parse_recorded(arguments_of_shard);
  json.erase("shard");
  json["merged"] = {{"count", merge.count}, {"shards", shards}, {"missing", merge.missing}};
  return json.dump();
}

std::optional<ShardRecord> shard_from_json(const std::string& arguments) {
  return read_recorded([&]() -> std::optional<ShardRecord> {
    const nlohmann::json json = parse_recorded(arguments);
    const auto found = json.find("shard");
    if (found == json.end()) {
      return std::nullopt;
    }
    ShardRecord record;
    record.shard.count = checked_number(found->at("count"), max_shards);
    record.shard.number = checked_number(found->at("number"), record.shard.count);
    for (const nlohmann::json& match : found->at("matches")) {
      record.matches.push_back({match.at("suite"), match.at("contestant"), match.at("baseline"),
                                checked_number(match.at("shard"), record.shard.count)});
    }
    return record;
  });
}

std::optional<MergeRecord> merge_from_json(const std::string& arguments) {
  return read_recorded([&]() -> std::optional<MergeRecord> {
    const nlohmann::json json = parse_recorded(arguments);
    const auto found = json.find("merged");
    if (found == json.end()) {
      return std::nullopt;
    }
    MergeRecord record;
    record.count = checked_number(found->at("count"), max_shards);
    for (const nlohmann::json& shard : found->at("shards")) {
      record.shards.push_back({checked_number(shard.at("shard"), record.count), shard.at("device"),
                               shard.at("machine").dump(), shard.at("started"), shard.at("ended"), shard.at("hash"),
                               shard.at("entries").get<std::vector<std::int64_t>>()});
    }
    for (const nlohmann::json& number : found->at("missing")) {
      record.missing.push_back(checked_number(number, record.count));
    }
    return record;
  });
}

std::string differing_argument(const std::string& one, const std::string& other) {
  const nlohmann::json left = common_part(one);
  const nlohmann::json right = common_part(other);
  for (const auto* keys : {&left, &right}) {
    for (const auto& [key, value] : keys->items()) {
      if (!left.contains(key) || !right.contains(key) || left[key] != right[key]) {
        return key;
      }
    }
  }
  return "";
}

}  // namespace thresher::arena
