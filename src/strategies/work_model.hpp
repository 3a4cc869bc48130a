#pragma once
/// How much work a planned call is, in units that no device and no calibration enters: what the predictor reads.

namespace thresher::strategies {

struct WorkModel {};

}  // namespace thresher::strategies
