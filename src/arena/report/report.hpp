#pragma once
/// The report: one HTML file that a browser opens offline, and the same as JSON.
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "arena/results/record.hpp"

namespace thresher::arena {

/// The files that a report may write into its folder.
inline constexpr std::array report_files{"report.html", "report.json", "profiles.json"};

/// Throws Error(io) when one of them exists and is no file, such as a pipe.
void check_report_files(const std::filesystem::path& folder);

/// Creates the folder if need be. Throws Error(io) when nothing can be written there.
void prepare_report_folder(const std::filesystem::path& folder);

/// The whole page, with style, charts and data inside. `profiles` are JSON objects of to_json(const Profile&).
[[nodiscard]] std::string report_html(const RunRecord& run, const std::vector<std::string>& profiles = {});

/// Writes report.html, report.json and, when there are any, profiles.json; returns the path of the first.
std::filesystem::path write_report(const RunRecord& run, const std::filesystem::path& folder,
                                   const std::vector<std::string>& profiles = {});

/// A file that `thresher profile --json` wrote, as report_html takes it. Throws Error(io) or Error(invalid_argument)
/// naming the file.
[[nodiscard]] std::string read_profile(const std::filesystem::path& file);

}  // namespace thresher::arena
