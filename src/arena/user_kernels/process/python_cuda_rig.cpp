#include "arena/user_kernels/process/python_cuda_rig.hpp"

#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "arena/random.hpp"
#include "arena/timing/cuda_clock.hpp"
#include "arena/user_kernels/process/call_descriptions.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// The outputs of two calls of a batch, the last and a random one, at the time of the process's final sign. A process
/// that signs too early is still writing them.
class Snapshot {
 public:
  Snapshot(int ordinal, Calls::Memories outputs) : ordinal_(ordinal), outputs_(std::move(outputs)) {
    for (const std::span<std::byte> output : outputs_) {
      kept_.emplace_back(ordinal, output.size(), "a copy of outputs");
    }
  }
  void take() {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      runtime::copy_async(kept_[i].data(), outputs_[i].data(), outputs_[i].size(), Stream{}, ordinal_);
    }
    runtime::synchronize(Stream{}, ordinal_);
  }
  /// Call it after waiting for the process's GPU.
  [[nodiscard]] bool still_holds() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (on_host(kept_[i].data(), outputs_[i].size()) != on_host(outputs_[i].data(), outputs_[i].size())) {
        return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::vector<std::byte> on_host(const void* data, std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    runtime::copy(copy.data(), data, bytes, ordinal_);
    return copy;
  }

  int ordinal_;
  Calls::Memories outputs_;
  std::vector<runtime::DeviceBuffer> kept_;
};

class PythonCudaRunner final : public Runner {
 public:
  PythonCudaRunner(KernelProcess& process, SharedCudaMemory& memory, std::size_t& enqueued, Calls calls)
      : process_(process),
        memory_(memory),
        enqueued_(enqueued),
        binding_(process.next_number()),
        calls_(std::move(calls)),
        random_(std::random_device()()) {
    for (std::size_t set = 0; set < calls_.size(); ++set) {
      for (const std::span<std::byte> place : calls_.activations(set)) {
        memory_.delay_input(place);
      }
    }
    tell_calls(process_, binding_, calls_, [&](std::uintptr_t address) { return memory.place(address); });
    whole_batch_.inputs.resize(calls_.size() + 1);
    whole_batch_.outputs.resize(calls_.size() + 1);
  }
  ~PythonCudaRunner() override { process_.ask_later(Writer(Ask::unbind).put(binding_)); }

  void run(Stream, std::size_t set) override {
    memory_.put_in(calls_.activations(set));
    ++enqueued_;
    (void)process_.ask_for_calls(Writer(Ask::enqueue).put(binding_).put(static_cast<std::uint32_t>(set)), enqueued_);
  }

  /// Makes the process capture a graph of the batch.
  void capture(const Batch& batch) {
    (void)process_.ask_for_calls(Writer(Ask::capture).put(binding_).put(batch), batch.calls + 1);
  }

  /// The time of the last captured batch in microseconds.
  double time(const Batch& batch) {
    for (std::size_t call = 0; call < batch.calls; ++call) {
      memory_.put_in(calls_.activations(batch.set_of(call)));
    }
    Calls::Memories outputs = calls_.outputs(batch.set_of(batch.calls - 1));
    const Calls::Memories& others = calls_.outputs(batch.set_of(random_.below(batch.calls)));
    outputs.insert(outputs.end(), others.begin(), others.end());
    Snapshot snapshot(memory_.device().ordinal, std::move(outputs));
    whole_batch_.done = [&] { snapshot.take(); };
    // For the process, the graph is one more call behind the last.
    const double us = process_.call(binding_, {1, calls_.size(), calls_.size() + 1}, whole_batch_);
    (void)process_.ask(Writer(Ask::wait));
    if (!snapshot.still_holds()) {
      process_.fail(process_.whose() +
                    " went on writing outputs after it had said that the batch was done, and was ended");
    }
    return us;
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override { return calls_.guard_damage(); }

 private:
  KernelProcess& process_;
  SharedCudaMemory& memory_;
  std::size_t& enqueued_;
  std::uint32_t binding_;
  Calls calls_;
  KernelProcess::Sets whole_batch_;
  Random random_;
};

}  // namespace

Reading PythonCudaClock::measure(Runner& runner, const Batch& batch) {
  auto* const bound = dynamic_cast<PythonCudaRunner*>(&runner);
  if (bound == nullptr) {
    throw Error(ErrorCode::internal, "the clock of another process was asked to time something that is not there");
  }
  bound->capture(batch);
  std::future<Telemetry> telemetry = std::async(std::launch::async, gpu_telemetry, ordinal_);
  const double us_per_call = bound->time(batch) / static_cast<double>(batch.calls);
  telemetry_ = telemetry.get();
  return {us_per_call, us_per_call};
}

void PythonCudaClock::rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double PythonCudaClock::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void PythonCudaRig::wait_by(Ask ask) {
  (void)process_.ask_for_calls(Writer(ask), std::max<std::size_t>(enqueued_, 1));
  enqueued_ = 0;
}

bool PythonCudaRig::hold_stream(double microseconds) {
  (void)process_.ask(Writer(Ask::hold_stream).put(microseconds));
  return true;
}

std::unique_ptr<Runner> PythonCudaRig::bind(Calls calls) {
  return std::make_unique<PythonCudaRunner>(process_, memory_, enqueued_, std::move(calls));
}

}  // namespace thresher::arena::user_kernels
