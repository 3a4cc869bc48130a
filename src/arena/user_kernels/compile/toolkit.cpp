#include "arena/user_kernels/compile/toolkit.hpp"

#include <cstdlib>

namespace thresher::arena::user_kernels {

std::filesystem::path toolkit_headers() {
  namespace fs = std::filesystem;
  const auto holds_headers = [](const fs::path& folder) {
    std::error_code ignored;
    return fs::is_regular_file(folder / "cuda_fp16.h", ignored);
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const root = std::getenv(variable);
    if (root != nullptr && holds_headers(fs::path(root) / "include")) {
      return fs::path(root) / "include";
    }
  }
  for (const char* folder : {"/usr/local/cuda/include", "/opt/cuda/include", "/usr/include"}) {
    if (holds_headers(folder)) {
      return folder;
    }
  }
  return {};
}

}  // namespace thresher::arena::user_kernels
