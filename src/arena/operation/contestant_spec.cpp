#include "arena/operation/contestant_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

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

}  // namespace thresher::arena
