#include "arena/attention/options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

int whole_number(const ContestantSpec& spec, const std::string& knob, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: knob {} is {}, but must be a whole number", label(spec), knob, text));
  }
  return value;
}

}  // namespace

AttentionOptions attention_options(const ContestantSpec& spec) {
  AttentionOptions options;
  options.strategy = spec.strategy == planned_strategy ? "" : spec.strategy;
  for (const auto& [knob, text] : spec.knobs) {
    if (knob == "threads") {
      options.threads = whole_number(spec, knob, text);
    } else {
      options.knobs.set(knob, text);
    }
  }
  return options;
}

}  // namespace thresher::arena
