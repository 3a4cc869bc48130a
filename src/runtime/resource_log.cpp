#include <algorithm>
#include <charconv>

#include "runtime/nvrtc.hpp"

namespace thresher::runtime {
namespace {

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

/// The number before `words` in `line`, 0 when they do not occur.
int number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) {
    return 0;
  }
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') {
    --begin;
  }
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

/// The text between the first pair of single quotes.
std::string_view quoted(std::string_view line) {
  const std::size_t open = line.find('\'');
  const std::size_t close = open == std::string_view::npos ? open : line.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view{} : line.substr(open + 1, close - open - 1);
}

}  // namespace

std::vector<NamedReport> parse_resource_log(std::string_view log) {
  std::vector<NamedReport> reports;
  for_each_line(log, [&](std::string_view line) {
    if (line.find("Compiling entry function") != std::string_view::npos) {
      reports.push_back({std::string(quoted(line)), {}});
    } else if (!reports.empty()) {
      ResourceReport& report = reports.back().resources;
      if (line.find("bytes stack frame") != std::string_view::npos) {
        report.stack_bytes = number_before(line, " bytes stack frame");
        report.spill_store_bytes = number_before(line, " bytes spill stores");
        report.spill_load_bytes = number_before(line, " bytes spill loads");
      } else if (line.find(" registers") != std::string_view::npos && line.find("Used ") != std::string_view::npos) {
        report.registers = number_before(line, " registers");
        report.barriers = number_before(line, " barriers");
        report.static_shared_bytes = number_before(line, " bytes smem");
      }
    }
  });
  return reports;
}

std::string_view performance_failure(std::string_view log) noexcept {
  std::string_view found;
  for_each_line(log, [&](std::string_view line) {
    if (found.empty() && (line.find("Potential Performance Loss") != std::string_view::npos ||
                          line.find("wait is injected") != std::string_view::npos)) {
      found = line;
    }
  });
  return found;
}

std::string without_times(std::string_view log) {
  std::string kept;
  while (!log.empty()) {
    const std::size_t line_bytes = std::min(log.find('\n'), log.size() - 1) + 1;
    if (const std::string_view line = log.substr(0, line_bytes);
        line.find("Compile time = ") == std::string_view::npos) {
      kept += line;
    }
    log.remove_prefix(line_bytes);
  }
  return kept;
}

std::string missing_builtins(std::string_view log) {
  constexpr std::string_view file = "libnvrtc-builtins";
  const std::size_t begin = log.find(file);
  if (log.find("failed to open " + std::string(file)) == std::string_view::npos) {
    return {};
  }
  const std::string_view name = log.substr(begin, log.substr(begin).find_first_of(" \n"));
  return std::string(name.substr(0, name.find_last_not_of('.') + 1));
}

}  // namespace thresher::runtime
