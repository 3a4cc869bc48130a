#include "planner/predict.hpp"
#include "strategies/attention/tile_work.hpp"

namespace thresher::planner {

Prediction predict(const AttentionProblem& problem, const AttentionConfig& config, const DeviceSpec& device,
                   const Calibration& calibration, Clocks clocks) {
  return predict(
      {{tiled_kernel(problem, strategies::attention::TileWork{.query_rows = config.query_rows,
                                                              .key_step = config.key_step,
                                                              .stages = config.stages,
                                                              .split_keys = config.split_keys,
                                                              .multicast = config.multicast,
                                                              .pairs_tiles = config.persistent,
                                                              .dependent_launch = config.dependent_launch})}},
      device, calibration, clocks);
}

}  // namespace thresher::planner
