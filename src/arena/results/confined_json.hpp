#pragma once
/// Protections, as evidence lists them.
#include <nlohmann/json.hpp>

#include "runtime/confinement.hpp"

namespace thresher::arena {

[[nodiscard]] inline nlohmann::json json_of(const runtime::Confined& confined) {
  nlohmann::json list = nlohmann::json::array();
  for (const runtime::Protection& protection : confined.protections) {
    list.push_back({{"what", protection.what}, {"in_force", protection.in_force}, {"sentence", protection.sentence}});
  }
  return list;
}

}  // namespace thresher::arena
