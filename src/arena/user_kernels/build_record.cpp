#include "arena/user_kernels/build_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arena/ledger/sha256.hpp"
#include "arena/text_file.hpp"
#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t most_tool_bytes = std::uint64_t{1} << 30;
constexpr std::size_t most_files = 500;
constexpr std::size_t most_bytes = std::size_t{4} << 20;

/// One hash of many files, whatever order they were read in.
Json system_json(std::vector<fs::path> files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::string list;
  for (const fs::path& file : files) {
    list += fmt::format("{} {}\n", sha256(read_input_file(file).bytes.value_or("")), file.string());
  }
  return {{"count", files.size()}, {"sha256", sha256(list)}};
}

Json confined_json(const runtime::Confined& confined) {
  Json list = Json::array();
  for (const runtime::Protection& protection : confined.protections) {
    list.push_back({{"what", protection.what}, {"in_force", protection.in_force}, {"sentence", protection.sentence}});
  }
  return list;
}

}  // namespace

std::string by_whom(const BuildRecord& record) {
  std::string text = record.compiler;
  for (const ToolFile& tool : record.tools) {
    if (tool.is_script) {
      text += fmt::format(" by the script {}", tool.path);
    }
  }
  if (const std::string missing = record.confined.missing(); !missing.empty()) {
    text += fmt::format("; the compiler was not wholly confined ({})", missing);
  }
  return text;
}

std::string to_json(const BuildRecord& record) {
  Json tools = Json::array();
  for (const ToolFile& tool : record.tools) {
    tools.push_back({{"path", tool.path}, {"sha256", tool.sha256}, {"is_script", tool.is_script}});
  }
  Json files = Json::array();
  for (const SourceFile& file : record.files) {
    files.push_back({{"path", file.path}, {"sha256", sha256(file.text)}, {"text", file.text}});
  }
  return Json{{"compiler", record.compiler},
              {"tools", tools},
              {"options", record.options},
              {"kernel", {{"path", record.kernel.path}, {"sha256", sha256(record.kernel.text)}}},
              {"files", files},
              {"system_files", system_json(record.system_files)},
              {"confined", confined_json(record.confined)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ToolFile tool_file(const fs::path& path) {
  const std::optional<std::string> content = read_input_file(path, most_tool_bytes).bytes;
  if (!content) {
    throw Error(ErrorCode::io, fmt::format("{} cannot be read", path.string()));
  }
  return {path.string(), sha256(*content), content->starts_with("#!")};
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  const fs::path real_folder = error ? fs::path() : fs::weakly_canonical(folder, error);
  if (error) {
    return false;
  }
  const auto [end, rest] = std::mismatch(real_folder.begin(), real_folder.end(), real.begin(), real.end());
  return end == real_folder.end();
}

const std::string& IncludedFiles::add(const fs::path& file) {
  const std::string path = fs::weakly_canonical(file).lexically_relative(fs::weakly_canonical(from_)).string();
  const auto known = std::find_if(files_.begin(), files_.end(), [&](const SourceFile& f) { return f.path == path; });
  if (known != files_.end()) {
    return known->text;
  }
  std::optional<std::string> text = read_input_file(file).bytes;
  if (!text || !is_utf8(*text)) {
    throw Error(ErrorCode::compile, fmt::format("it includes {}, which is no text in UTF-8 that can be read", path));
  }
  bytes_ += text->size();
  if (files_.size() == most_files || bytes_ > most_bytes) {
    throw Error(ErrorCode::compile,
                fmt::format("it includes more than {} files or {} MiB beside it, and no more are kept", most_files,
                            most_bytes >> 20));
  }
  fs::create_directories((to_ / path).parent_path());
  write_text(to_ / path, *text, "a copy of a header");
  return files_.emplace_back(SourceFile{path, std::move(*text)}).text;
}

std::vector<SourceFile> IncludedFiles::sorted() && {
  std::sort(files_.begin(), files_.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return std::move(files_);
}

}  // namespace thresher::arena::user_kernels
