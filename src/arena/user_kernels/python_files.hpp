#pragma once
/// A kernel in Python as its process finds it: copies of the kernel, as it was read with the pitch, and of what runs
/// it.
#include <filesystem>
#include <string>

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
  /// The process that is told `load`: of a kernel for the CPU, which may not start another.
  [[nodiscard]] ProcessOptions process() const;
  [[nodiscard]] Writer load() const;
  /// The same for a GPU, where Triton has programs compile what it launches: in a folder that it may write to.
  [[nodiscard]] ProcessOptions process_for_gpu(int ordinal) const;
  [[nodiscard]] Writer load_for_gpu(int ordinal) const;

 private:
  const Kernel& kernel_;
  runtime::TemporaryFolder folder_;
  std::filesystem::path server_;
  std::filesystem::path copy_;
  std::filesystem::path compiled_;
  BuildRecord record_;
};

}  // namespace thresher::arena::user_kernels
