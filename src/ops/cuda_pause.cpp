#include "ops/cuda_pause.hpp"

#include <cstdint>

#include "ops/cuda_programs.hpp"
#include "strategies/pause_program.hpp"

namespace thresher::ops {

CudaPause::CudaPause(int ordinal)
    : kernel_(load_program(ordinal, strategies::pause_program()).kernel(strategies::pause_kernel())) {}

void CudaPause::enqueue(Stream stream, double microseconds) const {
  const auto nanoseconds = static_cast<std::uint64_t>(microseconds * 1e3);
  runtime::LaunchConfig config;
  config.stream = stream;
  kernel_.launch_with(config, nanoseconds);
}

}  // namespace thresher::ops
