#pragma once
/// The file with the planner's measured parameters for one kind of card.
#include <filesystem>
#include <string>
#include <string_view>

#include "planner/calibration.hpp"

namespace thresher::arena {

/// $THRESHER_CALIBRATION, else thresher/calibration-DEVICE.toml in the user's state folder.
[[nodiscard]] std::filesystem::path calibration_file(std::string_view device);

struct LoadedCalibration {
  planner::Calibration calibration;
  std::string source;  ///< the file, or "built in"
};

/// Reads `file`; when that is empty, calibration_file(device) if it exists, else the built-in one. Throws Error(io) or
/// Error(invalid_argument) naming the file.
[[nodiscard]] LoadedCalibration load_calibration(const std::string& file, std::string_view device);

}  // namespace thresher::arena
