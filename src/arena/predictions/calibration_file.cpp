#include "arena/predictions/calibration_file.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "core/input_file.hpp"
#include "core/user_folder.hpp"
#include "planner/calibrate.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

std::filesystem::path calibration_file(std::string_view device) {
  if (const char* chosen = std::getenv("THRESHER_CALIBRATION"); chosen != nullptr && *chosen != '\0') {
    return chosen;
  }
  const std::filesystem::path folder = state_folder();
  return folder.empty() ? folder : folder / fmt::format("calibration-{}.toml", device);
}

LoadedCalibration load_calibration(const std::string& file, std::string_view device) {
  std::filesystem::path path = file;
  if (file.empty()) {
    std::error_code error;
    path = calibration_file(device);
    if (!std::filesystem::exists(path, error)) {
      return {{}, "built in"};
    }
  }
  const InputFile read = read_input_file(path);
  if (!read.bytes) {
    throw Error(ErrorCode::io, fmt::format("calibration {}: {}", path.string(), read.obstacle));
  }
  try {
    return {planner::read_calibration(*read.bytes, device), path.string()};
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace thresher::arena
