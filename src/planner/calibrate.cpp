#include "planner/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "thresher/error.hpp"

namespace thresher::planner {
namespace {

constexpr std::size_t min_samples = 4;
/// Relative to the mean squared logarithm: a change of a parameter by 10 % costs as much as an error of 0.3 % in every
/// sample.
constexpr double price_of_leaving = 1e-3;

double log_ratio(double a, double b) { return std::log(a / b); }

double cost(std::span<const CalibrationSample> samples, const DeviceSpec& device, const Calibration& calibration,
            const Calibration& start) {
  double sum = 0;
  for (const CalibrationSample& sample : samples) {
    const double error = log_ratio(predicted_us(sample, device, calibration), sample.measured_us);
    sum += error * error;
  }
  double left = 0;
  for (const CalibrationField& field : calibration_fields) {
    const double change = calibration.*field.member - start.*field.member;
    left += change * change / std::max(1e-12, start.*field.member * start.*field.member);
  }
  return sum / static_cast<double>(samples.size()) + price_of_leaving * left;
}

/// One pass over all parameters with one step size; whether anything improved.
bool improve(std::span<const CalibrationSample> samples, const DeviceSpec& device, const Calibration& start,
             double step, Calibration& best, double& best_cost) {
  bool improved = false;
  for (const CalibrationField& field : calibration_fields) {
    for (const double factor : {1 + step, 1 / (1 + step)}) {
      Calibration candidate = best;
      candidate.*field.member = std::clamp(best.*field.member * factor, field.low, field.high);
      if (const double candidate_cost = cost(samples, device, candidate, start); candidate_cost < best_cost) {
        best = candidate;
        best_cost = candidate_cost;
        improved = true;
      }
    }
  }
  return improved;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  const std::size_t end = text.find_last_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin + 1);
}

double number_in(std::string_view digits, const CalibrationField& field) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // The form of the comparison rejects NaN, which from_chars reads.
  if (error != std::errc{} || end != digits.data() + digits.size() || !(value >= field.low && value <= field.high)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("calibration parameter {} is \"{}\": use a number from {} to {}", field.name, digits,
                            field.low, field.high));
  }
  return value;
}

/// Reads the lines of a file; at its end, only a complete file is accepted.
class CalibrationReader {
 public:
  explicit CalibrationReader(std::string_view device) : device_(device) {}

  void read_line(std::string_view line) {
    const std::size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string_view value = equals == std::string_view::npos ? "" : trimmed(line.substr(equals + 1));
    if (key == "device") {
      once(key, has_device_);
      require_device(value);
      return;
    }
    for (std::size_t i = 0; i < calibration_fields.size(); ++i) {
      const CalibrationField& field = calibration_fields[i];
      if (key == field.name) {
        once(key, has_field_[i]);
        read_.*field.member = number_in(value, field);
        return;
      }
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("calibration parameter \"{}\" is not known: remove the line, or calibrate again", key));
  }

  [[nodiscard]] const Calibration& complete() const {
    require("device", has_device_);
    for (std::size_t i = 0; i < calibration_fields.size(); ++i) {
      require(calibration_fields[i].name, has_field_[i]);
    }
    return read_;
  }

 private:
  static void once(std::string_view key, bool& is_there) {
    if (is_there) {
      throw Error(ErrorCode::invalid_argument, fmt::format("calibration parameter {} is given twice", key));
    }
    is_there = true;
  }
  static void require(std::string_view key, bool is_there) {
    if (!is_there) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the calibration does not say {}: the file is not complete, calibrate again", key));
    }
  }
  void require_device(std::string_view value) const {
    if (value != fmt::format("\"{}\"", device_)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the calibration is of the device {}, expected \"{}\": it holds for no other",
                              value.empty() ? "\"\"" : value, device_));
    }
  }

  std::string_view device_;
  bool has_device_ = false;
  std::array<bool, calibration_fields.size()> has_field_{};
  Calibration read_;
};

}  // namespace

double predicted_us(const CalibrationSample& sample, const DeviceSpec& device, const Calibration& calibration) {
  return predict(sample.work, device, calibration, sample.clocks).us();
}

std::string text(const CalibrationSample& sample) {
  return sample.what + (sample.clocks == Clocks::sustained ? ", sustained" : "");
}

PredictionError prediction_error(std::span<const CalibrationSample> samples, const DeviceSpec& device,
                                 const Calibration& calibration) {
  std::vector<double> errors;
  errors.reserve(samples.size());
  for (const CalibrationSample& sample : samples) {
    const double us = predicted_us(sample, device, calibration);
    errors.push_back(std::abs(us / sample.measured_us - 1));
  }
  if (errors.empty()) {
    return {};
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back(), errors.size()};
}

Calibration fit(std::span<const CalibrationSample> samples, const DeviceSpec& device, const Calibration& start) {
  if (samples.size() < min_samples) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("calibration has {} measurements: at least {} are needed", samples.size(), min_samples));
  }
  for (const CalibrationSample& sample : samples) {
    if (!(sample.measured_us > 0)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("calibration has a measurement of {} µs for {}: leave it out", sample.measured_us, text(sample)));
    }
  }
  Calibration best = start;
  double best_cost = cost(samples, device, best, start);
  for (double step = 0.2; step > 1e-3;) {
    if (!improve(samples, device, start, step, best, best_cost)) {
      step /= 2;
    }
  }
  return best;
}

std::string write_calibration(const Calibration& calibration, std::string_view device) {
  std::string out = fmt::format("device = \"{}\"\n", device);
  for (const CalibrationField& field : calibration_fields) {
    out += fmt::format("{} = {}\n", field.name, calibration.*field.member);
  }
  return out;
}

Calibration read_calibration(std::string_view text, std::string_view device) {
  CalibrationReader reader(device);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    line = trimmed(line.substr(0, line.find('#')));
    if (!line.empty() && end == std::string_view::npos) {
      throw Error(ErrorCode::invalid_argument,
                  "the last line of the calibration has no end: the file is cut off, calibrate again");
    }
    if (!line.empty()) {
      reader.read_line(line);
    }
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return reader.complete();
}

}  // namespace thresher::planner
