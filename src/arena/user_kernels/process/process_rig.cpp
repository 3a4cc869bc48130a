#include "arena/user_kernels/process/process_rig.hpp"

#include "arena/timing/processor_use.hpp"
#include "arena/user_kernels/process/call_descriptions.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

class ProcessRunner final : public Runner {
 public:
  ProcessRunner(KernelProcess& process, SharedMemory& memory, Calls calls)
      : process_(process), binding_(process.next_number()), calls_(std::move(calls)) {
    for (std::size_t set = 0; set < calls_.size(); ++set) {
      sets_.outputs.push_back(calls_.outputs(set));
      sets_.inputs.emplace_back();
      for (const std::span<std::byte> place : calls_.activations(set)) {
        sets_.inputs.back().push_back(&memory.delay_input(place));
      }
    }
    tell_calls(process_, binding_, calls_, [&](std::uintptr_t address) { return memory.place(address); });
  }
  ~ProcessRunner() override { process_.ask_later(Writer(Ask::unbind).put(binding_)); }

  void run(Stream, std::size_t set) override { (void)call({.calls = 1, .first_set = set, .num_sets = calls_.size()}); }
  /// The batch's time in microseconds.
  double call(const Batch& batch) { return process_.call(binding_, batch, sets_); }
  [[nodiscard]] pid_t process() const { return process_.pid(); }
  [[nodiscard]] std::vector<std::string> guard_damage() const override { return calls_.guard_damage(); }

 private:
  KernelProcess& process_;
  std::uint32_t binding_;
  Calls calls_;
  KernelProcess::Sets sets_;
};

}  // namespace

Reading ProcessClock::measure(Runner& runner, const Batch& batch) {
  auto* const bound = dynamic_cast<ProcessRunner*>(&runner);
  if (bound == nullptr) {
    throw Error(ErrorCode::internal, "the clock of another process was asked to time something that is not there");
  }
  // It sleeps before and after, so that all waits of its threads belong to the batch.
  const ProcessorWatch waiting(bound->process());
  const double us_per_call = bound->call(batch) / static_cast<double>(batch.calls);
  return {us_per_call, us_per_call, waiting.waited()};
}

std::unique_ptr<Runner> ProcessRig::bind(Calls calls) {
  return std::make_unique<ProcessRunner>(process_, memory_, std::move(calls));
}

}  // namespace thresher::arena::user_kernels
