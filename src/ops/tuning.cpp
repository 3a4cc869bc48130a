#include "ops/tuning.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "core/input_file.hpp"
#include "core/user_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

/// All that decides a time: shape, formats and the kind of activation.
std::string key_of(const DualGemmProblem& problem) {
  return fmt::format("{}x{}x{} {}*{}->{} {}", problem.m, problem.n, problem.k, name(problem.a), name(problem.b),
                     name(problem.out), name(problem.activation.kind));
}

constexpr std::size_t field_count = 6;

/// Fewer than all fields: not a record.
std::optional<std::array<std::string_view, field_count>> fields_of(std::string_view line) {
  std::array<std::string_view, field_count> fields;
  for (std::size_t i = 0; i < field_count; ++i) {
    const std::size_t tab = line.find('\t');
    if ((tab == std::string_view::npos) != (i + 1 == field_count)) {
      return std::nullopt;
    }
    fields[i] = line.substr(0, tab);
    line = tab == std::string_view::npos ? std::string_view{} : line.substr(tab + 1);
  }
  return fields;
}

std::optional<double> positive(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() && value > 0 ? std::optional(value)
                                                                                   : std::nullopt;
}

}  // namespace

Tuning Tuning::parse(std::string_view text) {
  Tuning tuning;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (const auto fields = fields_of(text.substr(0, end))) {
      const auto& [device, problem, strategy, knobs, us_digits, default_digits] = *fields;
      const auto us = positive(us_digits);
      const auto default_us = positive(default_digits);
      if (!device.empty() && !problem.empty() && !strategy.empty() && us && default_us) {
        tuning.choices_[{std::string(device), std::string(problem)}] = {std::string(strategy), std::string(knobs), *us,
                                                                        *default_us};
      }
    }
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return tuning;
}

std::string Tuning::text() const {
  std::string text;
  for (const auto& [key, choice] : choices_) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", key.first, key.second, choice.strategy, choice.knobs, choice.us,
                        choice.default_us);
  }
  return text;
}

const TunedChoice* Tuning::find(const std::string& device, const DualGemmProblem& problem) const {
  const auto found = choices_.find({device, key_of(problem)});
  return found == choices_.end() ? nullptr : &found->second;
}

void Tuning::set(const std::string& device, const DualGemmProblem& problem, const TunedChoice& choice) {
  choices_[{device, key_of(problem)}] = choice;
}

void Tuning::forget(const std::string& device, const DualGemmProblem& problem) {
  choices_.erase({device, key_of(problem)});
}

std::filesystem::path tuning_file() {
  const char* chosen = std::getenv("THRESHER_TUNING");
  if (chosen != nullptr && *chosen != '\0') {
    return chosen;
  }
  const std::filesystem::path folder = state_folder();
  return folder.empty() ? folder : folder / "tuning.tsv";
}

Tuning read_tuning(const std::filesystem::path& file) {
  return Tuning::parse(read_input_file(file).bytes.value_or(""));
}

std::optional<DualGemmOptions> tuned_options(const Device& device, const DualGemmProblem& problem,
                                             const DualGemmOptions& options) {
  static const Tuning tuning = read_tuning(tuning_file());
  if (!options.strategy.empty() || !options.knobs.empty()) {
    return std::nullopt;
  }
  const TunedChoice* const choice = tuning.find(device.name(), problem);
  if (choice == nullptr) {
    return std::nullopt;
  }
  DualGemmOptions tuned = options;
  tuned.strategy = choice->strategy;
  try {
    tuned.knobs = Knobs::parse(choice->knobs);
  } catch (const Error&) {  // a cache that is damaged harms nothing
    return std::nullopt;
  }
  return tuned;
}

}  // namespace thresher::ops
