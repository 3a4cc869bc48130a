#include "arena/user_kernels/host_contestant.hpp"

#include <fmt/format.h>

#include "arena/user_kernels/compile/host_build.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// A .cpp file, compiled with the host's compiler into a shared object that another process loads.
class CompiledContestant final : public HostContestant {
 public:
  CompiledContestant(ContestantSpec spec, Kernel kernel, Device device, std::vector<std::string> server)
      : HostContestant(std::move(spec), std::move(kernel), std::move(device)), server_(std::move(server)) {}

 private:
  [[nodiscard]] const BuildRecord& record() const override { return build().record(); }

  [[nodiscard]] ProcessOptions process() const override {
    ProcessOptions options{server_, "the kernel's process", call_limit_s()};
    options.readable = build().folder();
    return options;
  }

  [[nodiscard]] Writer load() const override {
    return Writer(Ask::load_library).put(build().object().string()).put(kernel().entry);
  }

  /// Compiles on first use. This process never loads the result.
  [[nodiscard]] const HostBuild& build() const {
    if (!build_) {
      build_.emplace(kernel());
    }
    return *build_;
  }

  std::vector<std::string> server_;
  mutable std::optional<HostBuild> build_;
};

}  // namespace

Answer HostContestant::feasible(const Problem& problem, Memory& memory) const {
  if (device_.kind() != DeviceKind::cpu) {
    return {false,
            fmt::format("{} runs on the CPU, this tournament is held on {}: use --device cpu", file(), device_.name())};
  }
  return BaseContestant::feasible(problem, memory);
}

Answer HostContestant::compile(const Problem&) const {
  if (!compiled_) {
    try {
      const KernelProcess loads(timed(process()), load());
      compiled_ = Answer{true, fmt::format("{} by {}", file(), by_whom(record())), evidence_of(record())};
    } catch (const Error& error) {
      const char* const what = error.code() == ErrorCode::compile ? "does not compile" : "cannot be loaded";
      compiled_ = Answer{false, fmt::format("{} {}: {}", file(), what, in_a_sentence(error.what()))};
    }
  }
  return *compiled_;
}

MachineCode HostContestant::machine_code(const Problem&) const {
  return {{}, "the audit reads GPU machine code, and this kernel is for the CPU"};
}

Rig& HostContestant::rig(Rig& own) const {
  if (!rig_) {
    rig_ = std::make_unique<ProcessRig>(own, timed(process()), load());
  }
  return *rig_;
}

std::unique_ptr<Runner> HostContestant::prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const {
  const std::int64_t workspace_bytes = evaluate(kernel().workspace_bytes, problem);
  return rig_->bind(Calls(problem, memory, sets, static_cast<std::size_t>(workspace_bytes),
                          kernel().language == Language::python ? Receiver::python : Receiver::c));
}

std::string HostContestant::file() const { return std::filesystem::path(kernel().source).filename().string(); }

std::unique_ptr<Contestant> make_host_contestant(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                 const std::vector<std::string>& server) {
  return std::make_unique<CompiledContestant>(spec, kernel, device, server);
}

}  // namespace thresher::arena::user_kernels
