#pragma once
/// A kernel in Python as its process finds it: copies of the kernel, as it was read with the pitch, and of what runs
/// it.
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
  /// Throws Error(unsupported) when there is no Python that can be used, Error(io).
  explicit PythonFiles(const Kernel& kernel);

  [[nodiscard]] const BuildRecord& record() const { return record_; }
  /// The process that is told `load`: of a kernel for the CPU, which may start no other and no program. A copy of one
  /// that has imported the kernel's framework, which takes seconds, and has neither read the kernel nor opened a GPU:
  /// it begins when it is first asked for. There is one process at a time.
  [[nodiscard]] ProcessOptions process() const;
  [[nodiscard]] Writer load() const;
  /// The same for a GPU, where Triton has programs compile what it launches: in a folder that it may write to, and that
  /// is emptied for each process, since what one finds there another has written that knew inputs and outputs.
  [[nodiscard]] ProcessOptions process_for_gpu() const;
  [[nodiscard]] Writer load_for_gpu(int ordinal) const;
  /// Ends what the processes are copies of, once they have ended.
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
