// A .cpp file, compiled with the host's compiler into a shared object that another process loads.
#include <fmt/format.h>

#include <optional>

#include "arena/dual_gemm/task.hpp"
#include "arena/user_kernels/base_contestant.hpp"
#include "arena/user_kernels/compile/host_build.hpp"
#include "arena/user_kernels/process/process_rig.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

class HostContestant final : public BaseContestant {
 public:
  HostContestant(ContestantSpec spec, Kernel kernel, Device device, std::vector<std::string> server)
      : BaseContestant(std::move(spec), std::move(kernel)), device_(std::move(device)), server_(std::move(server)) {}

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    if (device_.kind() != DeviceKind::cpu) {
      return {false, fmt::format("{} runs on the CPU, this tournament is held on {}: use --device cpu", file(),
                                 device_.name())};
    }
    return BaseContestant::feasible(problem, memory);
  }

  /// With a process that loads it and does no more.
  [[nodiscard]] Answer compile(const Problem&) const override {
    if (!compiled_) {
      try {
        const KernelProcess loads(process(), load());
        compiled_ = Answer{true, fmt::format("{} by {}", file(), by_whom(build().record())),
                           evidence_of(build().record())};
      } catch (const Error& error) {
        const char* const what = error.code() == ErrorCode::compile ? "does not compile" : "cannot be loaded";
        compiled_ = Answer{false, fmt::format("{} {}: {}", file(), what, error.what())};
      }
    }
    return *compiled_;
  }

  [[nodiscard]] MachineCode machine_code(const Problem&) const override {
    return {{}, "the audit reads GPU machine code, and this kernel is for the CPU"};
  }

  [[nodiscard]] Rig& rig(Rig& own) const override {
    if (!rig_) {
      rig_ = std::make_unique<ProcessRig>(own, process(), load());
    }
    return *rig_;
  }
  void start_anew() const override { rig_.reset(); }
  [[nodiscard]] runtime::Confined confined() const override { return rig_ ? rig_->confined() : runtime::Confined{}; }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const std::int64_t workspace_bytes = evaluate(kernel().workspace_bytes, shape_of(dual_gemm(problem)));
    return rig_->bind(Calls(problem, memory, sets, static_cast<std::size_t>(workspace_bytes)));
  }

 private:
  [[nodiscard]] std::string file() const { return fs::path(kernel().source).filename().string(); }

  /// Compiled when it is first asked for. Nothing of it is ever loaded here.
  [[nodiscard]] const HostBuild& build() const {
    if (!build_) {
      build_.emplace(kernel());
    }
    return *build_;
  }

  [[nodiscard]] ProcessOptions process() const {
    ProcessOptions options{server_, "the kernel's process", kernel().time_limit_s};
    options.readable = build().folder();
    return options;
  }

  [[nodiscard]] Writer load() const {
    return Writer(Ask::load_library).put(build().object().string()).put(kernel().entry);
  }

  Device device_;
  std::vector<std::string> server_;
  mutable std::optional<HostBuild> build_;
  mutable std::optional<Answer> compiled_;
  mutable std::unique_ptr<ProcessRig> rig_;
};

}  // namespace

std::unique_ptr<Contestant> make_host_contestant(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                 const std::vector<std::string>& server) {
  return std::make_unique<HostContestant>(spec, kernel, device, server);
}

}  // namespace thresher::arena::user_kernels
