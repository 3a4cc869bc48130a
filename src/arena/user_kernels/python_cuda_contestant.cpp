// A .py file on a GPU: a function on torch's tensors there, which may launch anything, by Triton or otherwise.
#include <fmt/format.h>

#include <optional>

#include "arena/user_kernels/base_contestant.hpp"
#include "arena/user_kernels/process/python_cuda_rig.hpp"
#include "arena/user_kernels/python_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

class PythonCudaContestant final : public BaseContestant {
 public:
  PythonCudaContestant(ContestantSpec spec, Kernel kernel, Device device)
      : BaseContestant(std::move(spec), std::move(kernel)), device_(std::move(device)) {}

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    if (kernel().framework != "torch") {
      return {false,
              fmt::format("{} takes arrays of {}, which lie on the CPU, and this tournament is held on {}: write "
                          "it for framework = \"torch\", or use --device cpu",
                          file(), kernel().framework, device_.name())};
    }
    return BaseContestant::feasible(problem, memory);
  }

  /// Starts a process that only opens the GPU and loads it.
  [[nodiscard]] Answer compile(const Problem&) const override {
    if (!compiled_) {
      try {
        const KernelProcess loads(timed(files().process_for_gpu()), files().load_for_gpu(ordinal()));
        compiled_ =
            Answer{true, fmt::format("{} by {}", file(), by_whom(files().record())), evidence_of(files().record())};
      } catch (const Error& error) {
        compiled_ = Answer{false, fmt::format("{} cannot be loaded: {}", file(), in_a_sentence(error.what()))};
      }
    }
    return *compiled_;
  }

  [[nodiscard]] MachineCode machine_code(const Problem&) const override {
    return {{}, "the audit reads what Thresher compiles, and this kernel is compiled by its own process"};
  }

  [[nodiscard]] Rig& rig(Rig& own) const override {
    if (!rig_) {
      rig_ = std::make_unique<PythonCudaRig>(own, timed(files().process_for_gpu()), files().load_for_gpu(ordinal()));
    }
    return *rig_;
  }
  void start_anew() const override { rig_.reset(); }
  void leave() const override {
    start_anew();
    if (files_) {
      files_->end_original();
    }
  }
  [[nodiscard]] runtime::Confined confined() const override { return rig_ ? rig_->confined() : runtime::Confined{}; }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const std::int64_t workspace_bytes = evaluate(kernel().workspace_bytes, problem);
    return rig_->bind(Calls(problem, memory, sets, static_cast<std::size_t>(workspace_bytes), Receiver::python));
  }

 private:
  [[nodiscard]] int ordinal() const { return device_.id().ordinal; }
  [[nodiscard]] std::string file() const { return std::filesystem::path(kernel().source).filename().string(); }
  [[nodiscard]] const PythonFiles& files() const {
    if (!files_) {
      files_.emplace(kernel());
    }
    return *files_;
  }

  Device device_;
  mutable std::optional<PythonFiles> files_;
  mutable std::optional<Answer> compiled_;
  mutable std::unique_ptr<PythonCudaRig> rig_;
};

}  // namespace

std::unique_ptr<Contestant> make_python_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                        const Device& device) {
  return std::make_unique<PythonCudaContestant>(spec, kernel, device);
}

}  // namespace thresher::arena::user_kernels
