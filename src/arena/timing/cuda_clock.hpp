#pragma once
/// The clock of a GPU: events around a graph of the batch's calls, with NVML's telemetry read while it runs.
#include <cstdint>
#include <functional>
#include <list>
#include <string_view>
#include <tuple>
#include <utility>

#include "arena/timing/clock.hpp"
#include "ops/cuda_pause.hpp"
#include "runtime/stream.hpp"

namespace thresher::arena {

/// The GPU's present state, as NVML reports it.
[[nodiscard]] Telemetry gpu_telemetry(int ordinal);

class CudaClock final : public Clock {
 public:
  explicit CudaClock(int ordinal);

  [[nodiscard]] std::string_view name() const override { return "CUDA events around a graph"; }
  /// Captures the batch the first time; later measurements of the same batch launch the same graph. The watch runs
  /// until the whole GPU is idle, so that work on another stream shows. Throws Error(device) when the runner allocates,
  /// synchronizes or enqueues nothing on the clock's stream.
  [[nodiscard]] Reading measure(Runner& runner, const Batch& batch) override;
  /// Captures the batch now and waits until the GPU is idle, so that its next measurement only launches.
  void get_ready(Runner& runner, const Batch& batch);
  /// Like `measure`, without telemetry; calls `meanwhile` while the batch runs.
  [[nodiscard]] Reading time(Runner& runner, const Batch& batch, const std::function<void()>& meanwhile = [] {});
  void rest(double seconds) override;
  [[nodiscard]] double now_s() override;
  /// NVML's state in the middle of the last measurement.
  [[nodiscard]] Telemetry telemetry() override { return telemetry_; }
  /// Events have a resolution of half a microsecond, and the first and last call of a batch overlap nothing.
  [[nodiscard]] double shortest_batch_us() const override { return 2000; }

 private:
  /// The runner and the batch's fields.
  using Key = std::tuple<std::uint64_t, std::size_t, std::size_t, std::size_t>;
  const runtime::Graph& captured(Runner& runner, const Batch& batch);

  int ordinal_;
  runtime::OwnedStream stream_;
  ops::CudaPause pause_;
  runtime::Event start_;
  runtime::Event end_;
  std::list<std::pair<Key, runtime::Graph>> graphs_;  // the latest first
  Telemetry telemetry_;
};

}  // namespace thresher::arena
