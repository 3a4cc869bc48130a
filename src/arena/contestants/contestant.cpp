#include "arena/contestants/contestant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "thresher/error.hpp"

namespace thresher::arena {

std::string label(const ContestantSpec& spec) {
  std::vector<std::string> knobs;
  for (const auto& [knob, value] : spec.knobs) {
    knobs.push_back(knob + "=" + value);
  }
  return spec.operation + "/" + spec.strategy + (knobs.empty() ? "" : fmt::format("[{}]", fmt::join(knobs, ",")));
}

ContestantSpec parse_label(const std::string& text) {
  const auto fail = [&] {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: write operation/strategy or operation/strategy[knob=value,...]", text));
  };
  const std::size_t slash = text.find('/');
  const std::size_t bracket = text.find('[');
  if (slash == std::string::npos || bracket < slash || (bracket != std::string::npos && text.back() != ']')) {
    fail();
  }
  ContestantSpec spec{text.substr(0, slash), text.substr(slash + 1, bracket - slash - 1)};
  std::string rest = bracket == std::string::npos ? "" : text.substr(bracket + 1, text.size() - bracket - 2);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string knob = rest.substr(0, comma);
    const std::size_t equals = knob.find('=');
    if (equals == std::string::npos) {
      fail();
    }
    spec.knobs[knob.substr(0, equals)] = knob.substr(equals + 1);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return spec;
}

Answer fits_in_memory(const Problem& problem, double needed_bytes, Memory& memory) {
  const auto available_bytes = static_cast<double>(memory.available_bytes());
  constexpr double mib = 1 << 20;
  return {needed_bytes <= available_bytes,
          fmt::format("{} needs about {:.0f} MiB of memory, {:.0f} MiB are available", label(problem),
                      needed_bytes / mib, available_bytes / mib),
          fmt::format(R"({{"needed_bytes":{:.0f},"available_bytes":{:.0f}}})", needed_bytes, available_bytes)};
}

Answer compiled(const MachineCode& code, const std::string& by_whom) {
  if (code.kernels.empty()) {
    return {true, by_whom + "; " + code.not_judged, "{}"};
  }
  const KernelCode& kernel = code.kernels.front();
  return {true, fmt::format("{} by {}: {}", kernel.title, kernel.toolchain, resources_text(kernel)), "{}"};
}

}  // namespace thresher::arena
