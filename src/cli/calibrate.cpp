// `thresher calibrate`: fits the planner to this machine's GPU.
#include "planner/calibrate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "arena/predictions/calibration_file.hpp"
#include "arena/predictions/calibration_samples.hpp"
#include "arena/text_file.hpp"
#include "cli/options.hpp"
#include "cli/planner_commands.hpp"
#include "core/printable.hpp"
#include "core/remark.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

struct CalibrateArguments {
  std::string device = "best";
  std::string output;
  double seconds = 1;
};

void print_errors(const char* whose, const planner::PredictionError& error) {
  fmt::print("{:42}  median {:4.1f} %, worst {:4.1f} % over {} times\n", whose, 100 * error.median, 100 * error.worst,
             error.samples);
}

/// Checks the output before minutes of measurement.
std::filesystem::path output_of(const CalibrateArguments& arguments, const DeviceSpec& device) {
  const std::filesystem::path path =
      arguments.output.empty() ? arena::calibration_file(device.name) : std::filesystem::path(arguments.output);
  if (path.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "no file is named for the calibration: name one with --output or THRESHER_CALIBRATION, or set HOME");
  }
  return path;
}

void calibrate(const CalibrateArguments& arguments) {
  const auto rig = arena::make_rig(arguments.device);
  const DeviceSpec& device = arena::calibrated_device(*rig);
  const std::filesystem::path path = output_of(arguments, device);
  const auto say = [](const std::string& what, std::size_t number, std::size_t total) {
    print_note(stderr, fmt::format("{:>3} of {}  {}\n", number + 1, total, what));
  };
  const std::vector<planner::CalibrationSample> samples = arena::measure_calibration(*rig, arguments.seconds, say);
  const planner::Calibration fitted = planner::fit(samples, device);
  for (const planner::CalibrationSample& sample : samples) {
    fmt::print("{:>8.1f} us measured  {:>8.1f} us predicted  {}\n", sample.measured_us,
               planner::predicted_us(sample, device, fitted), planner::text(sample));
  }
  print_errors("error of the built-in parameters:", planner::prediction_error(samples, device, {}));
  print_errors("of the fitted ones:", planner::prediction_error(samples, device, fitted));
  print_errors("of a fit to half, on the times it never saw:", arena::unseen_error(samples, device));
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path());
  }
  arena::write_text(path, planner::write_calibration(fitted, device.name), "the calibration");
  fmt::print("calibration: {}\n", printable(path.string()));
}

}  // namespace

void add_calibrate(CLI::App& app, Context&) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measures known contestants on the GPU and fits the planner's parameters to their times");
  command->add_option("--device", arguments->device, "gpu, cuda:N or best")->capture_default_str();
  command->add_option("--output", arguments->output,
                      "File to write; the one that plan, judge and tournament read if not given");
  add_seconds(*command, arguments->seconds, "Time for one contestant on one problem");
  command->callback([arguments] { calibrate(*arguments); });
}

}  // namespace thresher::cli
