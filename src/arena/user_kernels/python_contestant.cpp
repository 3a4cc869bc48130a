// A .py file on the CPU. Its Python interpreter is confined from its first instruction.
#include "arena/user_kernels/host_contestant.hpp"
#include "arena/user_kernels/python_files.hpp"

namespace thresher::arena::user_kernels {
namespace {

class PythonContestant final : public HostContestant {
 public:
  using HostContestant::HostContestant;

  void leave() const override {
    start_anew();
    if (files_) {
      files_->end_original();
    }
  }

 private:
  [[nodiscard]] const BuildRecord& record() const override { return files().record(); }
  [[nodiscard]] ProcessOptions process() const override { return files().process(); }
  [[nodiscard]] Writer load() const override { return files().load(); }

  [[nodiscard]] const PythonFiles& files() const {
    if (!files_) {
      files_.emplace(kernel());
    }
    return *files_;
  }

  mutable std::optional<PythonFiles> files_;
};

}  // namespace

std::unique_ptr<Contestant> make_python_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                   const Device& device) {
  if (device.kind() == DeviceKind::cuda) {
    return make_python_cuda_contestant(spec, kernel, device);
  }
  return std::make_unique<PythonContestant>(spec, kernel, device);
}

}  // namespace thresher::arena::user_kernels
