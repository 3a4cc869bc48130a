#pragma once
/// The report: one HTML file that a browser opens offline, and the same as JSON.
#include <filesystem>
#include <string>

#include "arena/record.hpp"

namespace thresher::arena {

/// Creates the folder if need be. Throws Error(io) when nothing can be written there.
void prepare_report_folder(const std::filesystem::path& folder);

/// The whole page, with style, charts and data inside.
[[nodiscard]] std::string report_html(const RunRecord& run);

/// Writes report.html and report.json and returns the path of the former.
std::filesystem::path write_report(const RunRecord& run, const std::filesystem::path& folder);

}  // namespace thresher::arena
