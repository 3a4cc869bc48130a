#pragma once
/// Keeps a stream of a GPU busy for a given time. A clock enqueues it ahead of what it measures, so that the host's
/// launch overhead does not show between the events.
#include "runtime/kernel.hpp"

namespace thresher::ops {

class CudaPause {
 public:
  explicit CudaPause(int ordinal);
  void enqueue(Stream stream, double microseconds) const;

 private:
  runtime::Kernel kernel_;
};

}  // namespace thresher::ops
