#pragma once
/// Keeps a stream of a GPU busy for a given time. A clock enqueues it before the measured work, so that the host's
/// launch overhead does not show between the events.
#include <cstdint>

#include "ops/cuda_programs.hpp"
#include "strategies/pause_program.hpp"

namespace thresher::ops {

class CudaPause {
 public:
  explicit CudaPause(int ordinal)
      : kernel_(load_program(ordinal, strategies::pause_program()).kernel(strategies::pause_kernel())) {}
  void enqueue(Stream stream, double microseconds) const {
    runtime::LaunchConfig config;
    config.stream = stream;
    kernel_.launch_with(config, static_cast<std::uint64_t>(microseconds * 1e3));
  }

 private:
  runtime::Kernel kernel_;
};

}  // namespace thresher::ops
