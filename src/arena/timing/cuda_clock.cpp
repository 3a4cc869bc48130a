#include "arena/timing/cuda_clock.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "runtime/driver.hpp"
#include "runtime/nvml.hpp"

namespace thresher::arena {
namespace {

/// The number of kept graphs: three roles in two kinds of rotation, and some places in it.
constexpr std::size_t max_graphs = 24;

/// Time in which the host enqueues events and graph while the GPU is kept busy, so that no gap is measured.
constexpr double enqueueing_us = 60;

using WatchTime = std::chrono::steady_clock::time_point;

double microseconds_since(WatchTime start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Telemetry gpu_telemetry(int ordinal) {
  const runtime::GpuState state = runtime::gpu_state(ordinal);
  return {state.multiprocessor_clock_mhz, state.power_w, state.temperature_c, state.throttle_reasons};
}

CudaClock::CudaClock(int ordinal)
    : ordinal_(ordinal), stream_(ordinal), pause_(ordinal), start_(ordinal), end_(ordinal) {}

const runtime::Graph& CudaClock::captured(Runner& runner, const Batch& batch) {
  const Key key{runner.id(), batch.calls, batch.first_set, batch.num_sets};
  const auto found =
      std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, found);
    return graphs_.front().second;
  }
  if (std::none_of(graphs_.begin(), graphs_.end(),
                   [&](const auto& entry) { return std::get<0>(entry.first) == runner.id(); })) {
    runner.run(stream_.get(), batch.set_of(0));  // a user kernel's lazy initialization may not happen in a capture
    stream_.synchronize();
  }
  runtime::Graph graph = runtime::Graph::capture(ordinal_, [&](Stream stream) {
    for (std::size_t call = 0; call < batch.calls; ++call) {
      runner.run(stream, batch.set_of(call));
    }
  });
  graphs_.emplace_front(key, std::move(graph));
  if (graphs_.size() > max_graphs) {
    graphs_.pop_back();
  }
  return graphs_.front().second;
}

void CudaClock::get_ready(Runner& runner, const Batch& batch) {
  (void)captured(runner, batch);
  pause_.enqueue(stream_.get(), 0);  // loads its code, which happens at the first launch
  runtime::synchronize_device(ordinal_);
}

Reading CudaClock::measure(Runner& runner, const Batch& batch) {
  // NVML at times takes longer than the batch; in a thread of its own it does not delay the watch.
  std::future<Telemetry> telemetry;
  const Reading reading =
      time(runner, batch, [&] { telemetry = std::async(std::launch::async, gpu_telemetry, ordinal_); });
  telemetry_ = telemetry.get();
  return reading;
}

Reading CudaClock::time(Runner& runner, const Batch& batch, const std::function<void()>& meanwhile) {
  const runtime::Graph& graph = captured(runner, batch);
  runtime::synchronize_device(ordinal_);
  pause_.enqueue(stream_.get(), enqueueing_us);
  const WatchTime watch_start = std::chrono::steady_clock::now();
  start_.record(stream_.get());
  graph.launch(stream_.get());
  end_.record(stream_.get());
  meanwhile();
  runtime::synchronize_device(ordinal_);
  const double watch_us = microseconds_since(watch_start);
  const auto calls = static_cast<double>(batch.calls);
  return {end_.elapsed_us_since(start_) / calls, watch_us / calls};
}

void CudaClock::rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double CudaClock::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace thresher::arena
