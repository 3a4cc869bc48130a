#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arena/user_kernels/compile/host_toolchain.hpp"
#include "arena/user_kernels/compile/python_interpreter.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

void require_package(const Kernel& kernel, const char* package, const char* what_for) {
  const PythonInterpreter& python = python_interpreter();
  if (std::find(python.importable.begin(), python.importable.end(), package) == python.importable.end()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} needs {}{}, which {} cannot import: install it there, or name another Python in "
                            "THRESHER_PYTHON",
                            std::filesystem::path(kernel.source).filename().string(), package, what_for,
                            python.program.string()));
  }
}

bool is_given_bf16(const Kernel& kernel, const Suite& suite) {
  return std::any_of(suite.problems.begin(), suite.problems.end(), [&](const Problem& problem) {
    if (problem.operation().name() != kernel.operation) {
      return false;
    }
    const std::string formats = problem.operation().formats_text(problem);
    const bool is_entered = kernel.formats.empty() ||
                            std::find(kernel.formats.begin(), kernel.formats.end(), formats) != kernel.formats.end();
    return is_entered && formats.find(name(Format::bf16)) != std::string::npos;
  });
}

}  // namespace

void check_tools(const Kernel& kernel, const Device& device, std::span<const Suite> suites) {
  switch (kernel.language) {
    case Language::cuda: return;  // without a compiler the match reports it, and no contestant failed
    case Language::host: (void)host_toolchain(); return;
    case Language::python: break;
  }
  if (kernel.framework == "torch" || device.kind() == DeviceKind::cuda) {
    require_package(kernel, "torch", "");
    return;
  }
  require_package(kernel, "numpy", "");
  if (std::any_of(suites.begin(), suites.end(), [&](const Suite& suite) { return is_given_bf16(kernel, suite); })) {
    require_package(kernel, "ml_dtypes", " for bf16");
  }
}

}  // namespace thresher::arena::user_kernels
