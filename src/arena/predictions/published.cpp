#include "arena/predictions/published.hpp"

#include <fmt/format.h>

#include "arena/config/config.hpp"
#include "core/input_file.hpp"
#include "embedded/published_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::int64_t most = 1 << 24;

std::int64_t extent(const ConfigTable& table, const std::string& key) {
  const std::int64_t value = table.integer(key);
  if (value < 1 || value > most) {
    table.fail(key, "must lie between 1 and " + std::to_string(most));
  }
  return value;
}

double time(const ConfigTable& table, const std::string& key, double us) {
  if (us <= 0) {
    table.fail(key, "must be above 0");
  }
  return us;
}

/// `us` and `who` occur together.
std::vector<PublishedTime> times(const ConfigTable& table) {
  const std::vector<std::string> who = table.texts("who");
  const std::vector<double> us = table.numbers("us");
  if (who.size() != us.size()) {
    table.fail("us", "must have a time for each of `who`");
  }
  std::vector<PublishedTime> found;
  for (std::size_t i = 0; i < who.size(); ++i) {
    found.push_back({who[i], time(table, "us", us[i])});
  }
  return found;
}

PublishedProblem problem(const ConfigTable& table, bool has_counts) {
  PublishedProblem found;
  if (has_counts) {
    found.counts = table.integers("counts");
    for (const std::int64_t count : found.counts) {
      if (count < 1 || count > most) {
        table.fail("counts", "must lie between 1 and " + std::to_string(most));
      }
    }
  } else {
    found.m = extent(table, "m");
  }
  found.n = extent(table, "n");
  found.k = extent(table, "k");
  if (found.k % 16 != 0) {
    table.fail("k", "must be a multiple of 16");
  }
  found.speed_of_light_us = time(table, "speed_of_light_us", table.number("speed_of_light_us"));
  found.times = times(table);
  table.reject_unknown();
  return found;
}

}  // namespace

Published parse_published(std::string_view text, const std::string& file) {
  const ConfigTable table = ConfigTable::parse(text, file);
  Published found;
  found.title = table.text("title");
  found.caveat = table.text("caveat");
  found.sources = table.texts("sources");
  for (const ConfigTable& one : table.tables("dual_gemm")) {
    found.dual_gemms.push_back(problem(one, false));
  }
  for (const ConfigTable& one : table.tables("grouped")) {
    found.grouped.push_back(problem(one, true));
  }
  table.reject_unknown();
  return found;
}

Published load_published(const std::string& path) {
  const InputFile file = read_input_file(path);
  if (!file.bytes) {
    throw Error(ErrorCode::invalid_argument, fmt::format("published times {}: {}", path, file.obstacle));
  }
  return parse_published(*file.bytes, path);
}

Published built_in_published() {
  const EmbeddedFile& file = embedded::published_files().front();
  return parse_published(file.text, std::string(file.name));
}

}  // namespace thresher::arena
