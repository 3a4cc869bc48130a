#pragma once
/// Compiles a user's .cpp file to a shared object, in a folder of its own.
#include <filesystem>

#include "arena/pitches/kernel.hpp"
#include "arena/user_kernels/compile/build_record.hpp"
#include "runtime/process.hpp"

namespace thresher::arena::user_kernels {

/// Runs the compiler twice, confined. The first run lists the files that the kernel includes; the second compiles
/// copies of them and can reach nothing else. The folder with the object lives as long as this object. Nothing is
/// loaded here.
class HostBuild {
 public:
  /// Throws Error(compile) with the compiler's first error, or with the forbidden include.
  explicit HostBuild(const Kernel& kernel);
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  [[nodiscard]] std::filesystem::path object() const { return folder_.path() / "out/own.so"; }
  [[nodiscard]] const BuildRecord& record() const { return record_; }

 private:
  /// Throws with the compiler's first error unless it succeeds.
  void run_compiler(std::vector<std::string> arguments, const std::filesystem::path& also_readable);
  [[nodiscard]] std::string first_error(const runtime::ProcessOutput& output) const;
  [[nodiscard]] std::vector<std::string> options(const std::filesystem::path& root, bool are_libraries) const;
  void find_included_files();
  void compile();
  [[nodiscard]] bool is_own(const std::filesystem::path& file) const;

  runtime::TemporaryFolder folder_;
  Kernel kernel_;
  std::filesystem::path origin_;  ///< the folder that the kernel lies in
  BuildRecord record_;
};

}  // namespace thresher::arena::user_kernels
