#include "arena/report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "arena/report/run_json.hpp"
#include "arena/text_file.hpp"
#include "embedded/report_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

std::string_view part(std::string_view name) {
  for (const EmbeddedFile& file : embedded::report_files()) {
    if (file.name.ends_with(name)) {
      return file.text;
    }
  }
  throw Error(ErrorCode::internal, fmt::format("the report's {} was not built in", name));
}

/// Text that may stand inside a script element: nothing in it can end the element.
std::string script_safe(std::string_view text) {
  std::string safe;
  for (const char character : text) {
    if (character == '<') {
      safe += "\\u003c";
    } else {
      safe += character;
    }
  }
  return safe;
}

std::string list_of(const std::vector<std::string>& objects) { return fmt::format("[{}]", fmt::join(objects, ",")); }

}  // namespace

void prepare_report_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::io, fmt::format("the report folder {} cannot be made: {}", folder.string(),
                                           error ? error.message() : "there is a file of that name"));
  }
  check_writable(folder / "report.html", "the report");
}

std::string report_html(const RunRecord& run, const std::vector<std::string>& profiles) {
  std::string page(part("template.html"));
  const auto fill = [&](std::string_view place, std::string_view text) {
    const std::size_t at = page.find(place);
    if (at == std::string::npos) {
      throw Error(ErrorCode::internal, fmt::format("the report's template has no place {}", place));
    }
    page.replace(at, place.size(), text);
  };
  fill("/*style*/", part("report.css"));
  fill("/*data*/", script_safe(to_json(run)));
  fill("/*profiles*/", script_safe(list_of(profiles)));
  fill("/*charts*/", part("chart.min.js"));
  fill("/*script*/", part("report.js"));
  return page;
}

std::filesystem::path write_report(const RunRecord& run, const std::filesystem::path& folder,
                                   const std::vector<std::string>& profiles) {
  write_text(folder / "report.json", to_json(run, 1) + "\n", "the report");
  if (!profiles.empty()) {
    write_text(folder / "profiles.json", list_of(profiles) + "\n", "the report");
  }
  write_text(folder / "report.html", report_html(run, profiles), "the report");
  return folder / "report.html";
}

std::string read_profile(const std::filesystem::path& file) {
  const auto text = read_text(file);
  if (!text) {
    throw Error(ErrorCode::io, fmt::format("profile {}: the file cannot be read", file.string()));
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("timeline") || !json.contains("parts")) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("profile {}: not what `thresher profile --json` writes", file.string()));
  }
  return json.dump();
}

}  // namespace thresher::arena
