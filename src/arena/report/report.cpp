#include "arena/report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "arena/report/run_json.hpp"
#include "arena/text_file.hpp"
#include "core/input_file.hpp"
#include "embedded/report_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint64_t max_profile_bytes = std::uint64_t{64} << 20;

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

/// The text that replaces the template's placeholder of that name.
struct Filling {
  std::string_view place;
  std::string text;
};

/// One pass from front to back: placeholders are looked for in the template alone, never in filled-in text.
std::string filled(std::string_view rest, std::span<const Filling> in_order) {
  std::string page;
  for (const Filling& filling : in_order) {
    const std::size_t at = rest.find(filling.place);
    if (at == std::string_view::npos) {
      throw Error(ErrorCode::internal, fmt::format("the report's template has no place {}", filling.place));
    }
    page += rest.substr(0, at);
    page += filling.text;
    rest.remove_prefix(at + filling.place.size());
  }
  page += rest;
  return page;
}

std::string list_of(const std::vector<std::string>& objects) { return fmt::format("[{}]", fmt::join(objects, ",")); }

}  // namespace

void check_report_files(const std::filesystem::path& folder) {
  std::error_code missing;
  for (const char* file : report_files) {
    const std::filesystem::file_status status = std::filesystem::status(folder / file, missing);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw Error(ErrorCode::io, fmt::format("the report {} cannot be written: it exists and is not a regular file",
                                             (folder / file).string()));
    }
  }
}

void prepare_report_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::io, fmt::format("the report folder {} cannot be made: {}", folder.string(),
                                           error ? error.message() : "there is a file of that name"));
  }
  check_report_files(folder);
  check_writable(folder / "report.html", "the report");
}

std::string report_html(const RunRecord& run, const std::vector<std::string>& profiles) {
  const std::array<Filling, 5> in_order{{{"/*style*/", std::string(part("report.css"))},
                                         {"/*data*/", script_safe(to_json(run))},
                                         {"/*profiles*/", script_safe(list_of(profiles))},
                                         {"/*charts*/", std::string(part("chart.min.js"))},
                                         {"/*script*/", std::string(part("report.js"))}}};
  return filled(part("template.html"), in_order);
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
  const InputFile read = read_input_file(file, max_profile_bytes);
  if (!read.bytes) {
    throw Error(ErrorCode::io, fmt::format("profile {}: {}", file.string(), read.obstacle));
  }
  const auto json = nlohmann::json::parse(*read.bytes, nullptr, false);
  if (!json.is_object() || !json.contains("timeline") || !json.contains("parts")) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("profile {}: not what `thresher profile --json` writes", file.string()));
  }
  return json.dump();
}

}  // namespace thresher::arena
