// Parameter files that commands write for each other. A wrong line of a calibration is rejected; a wrong line of a
// tuning cache is skipped. Both are written again as they were parsed.
#include "fuzzed.hpp"
#include "ops/tuning.hpp"
#include "planner/calibrate.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  planner::Calibration calibration;
  if (fuzz::understood([&] { calibration = planner::read_calibration(text, "H200"); })) {
    const std::string written = planner::write_calibration(calibration, "H200");
    fuzz::require(planner::write_calibration(planner::read_calibration(written, "H200"), "H200") == written);
  }
  const std::string tuning = ops::Tuning::parse(text).text();
  fuzz::require(ops::Tuning::parse(tuning).text() == tuning);
  return 0;
}
