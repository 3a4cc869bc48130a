#pragma once
/// The files of a Python kernel's process: copies of the kernel, as read with the pitch, and of its runner.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arena/pitches/kernel.hpp"
#include "arena/user_kernels/compile/build_record.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"
#include "runtime/process.hpp"

namespace thresher::arena::user_kernels {

class PythonFiles {
 public:
  /// Throws Error(unsupported) when no usable Python exists, Error(io).
  explicit PythonFiles(const Kernel& kernel);

  [[nodiscard]] const BuildRecord& record() const { return record_; }
  /// The process that receives `load`, for a CPU kernel, which may start no process and no program. It is a copy of a
  /// template that has imported the kernel's framework, which takes seconds. The template has neither read the kernel
  /// nor opened a GPU; it starts on first use. One process exists at a time.
  [[nodiscard]] ProcessOptions process() const;
  [[nodiscard]] Writer load() const;
  /// The same for a GPU, where Triton runs compilers for its launches. It may write to one folder. The folder is
  /// emptied for each process: an earlier process, which knew inputs and outputs, could have left data there.
  [[nodiscard]] ProcessOptions process_for_gpu() const;
  [[nodiscard]] Writer load_for_gpu(int ordinal) const;
  /// Ends the template of the processes, after they have ended.
  void end_original() const { original_.reset(); }

 private:
  [[nodiscard]] runtime::Confinement confinement() const;
  [[nodiscard]] runtime::Confinement confinement_for_gpu() const;
  [[nodiscard]] ProcessOptions copy_of(const std::vector<std::string>& modules,
                                       const std::function<runtime::Confinement()>& confinement) const;

  const Kernel& kernel_;
  runtime::TemporaryFolder folder_;
  std::filesystem::path server_;
  std::filesystem::path copy_;
  std::filesystem::path compiled_;
  BuildRecord record_;
  mutable std::shared_ptr<runtime::ProcessTemplate> original_;
};

}  // namespace thresher::arena::user_kernels
