#include "arena/results/build_evidence.hpp"

#include <nlohmann/json.hpp>

#include "arena/results/confined_json.hpp"

namespace thresher::arena {

using Json = nlohmann::json;

std::string to_json(const BuildEvidence& build) {
  Json tools = Json::array();
  for (const ToolFile& tool : build.tools) {
    tools.push_back({{"path", tool.path}, {"sha256", tool.sha256}, {"is_script", tool.is_script}});
  }
  Json files = Json::array();
  for (const KeptFile& file : build.files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"text", file.text}});
  }
  return Json{{"compiler", build.compiler},
              {"tools", tools},
              {"options", build.options},
              {"kernel", {{"path", build.kernel.path}, {"sha256", build.kernel.sha256}}},
              {"files", files},
              {"system_files", {{"count", build.system_files}, {"sha256", build.system_files_sha256}}},
              {"confined", json_of(build.confined)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace thresher::arena
