#include "arena/user_kernels/compile/build_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/ledger/sha256.hpp"
#include "arena/text_file.hpp"
#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_tool_bytes = std::uint64_t{1} << 30;
constexpr std::size_t max_files = 500;
constexpr std::size_t max_bytes = std::size_t{4} << 20;

/// One hash over many files, independent of their order.
std::string hash_of(std::vector<fs::path>& files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::string list;
  for (const fs::path& file : files) {
    list += fmt::format("{} {}\n", sha256(read_input_file(file).bytes.value_or("")), file.string());
  }
  return sha256(list);
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

BuildEvidence evidence_of(const BuildRecord& record) {
  BuildEvidence evidence;
  evidence.compiler = record.compiler;
  evidence.tools = record.tools;
  evidence.options = record.options;
  evidence.kernel = {record.kernel.path, sha256(record.kernel.text), ""};
  for (const SourceFile& file : record.files) {
    evidence.files.push_back({file.path, sha256(file.text), file.text});
  }
  std::vector<fs::path> system_files = record.system_files;
  evidence.system_files_sha256 = hash_of(system_files);
  evidence.system_files = system_files.size();
  evidence.confined = record.confined;
  return evidence;
}

ToolFile tool_file(const fs::path& path) {
  const std::optional<std::string> content = read_input_file(path, max_tool_bytes).bytes;
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

std::string in_a_sentence(std::string_view said) {
  constexpr std::size_t max_columns = 400;
  const std::string shown = printable(said.substr(0, 4 * max_columns));  // at most the bytes of that many characters
  const std::string_view part = first_columns(shown, max_columns);
  return part.size() == shown.size() && said.size() <= 4 * max_columns ? shown : std::string(part) + "…";
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
  if (files_.size() == max_files || bytes_ > max_bytes) {
    throw Error(ErrorCode::compile,
                fmt::format("it includes more than {} files or {} MiB beside it, and no more are kept", max_files,
                            max_bytes >> 20));
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
