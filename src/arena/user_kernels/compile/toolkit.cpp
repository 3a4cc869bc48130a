#include "arena/user_kernels/compile/toolkit.hpp"

#include <vector>

#include "runtime/nvidia_wheels.hpp"

namespace thresher::arena::user_kernels {

std::filesystem::path toolkit_headers() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    for (const fs::path& root : runtime::path_list(runtime::process_environment, variable)) {
      folders.push_back(root / "include");
    }
  }
  folders.insert(folders.end(), {"/usr/local/cuda/include", "/opt/cuda/include", "/usr/include"});
  for (const auto& wheels : {runtime::own_wheel_folders("include"), runtime::nvidia_wheel_folders("include")}) {
    folders.insert(folders.end(), wheels.begin(), wheels.end());
  }
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / "cuda_fp16.h", ignored)) {
      return folder;
    }
  }
  return {};
}

}  // namespace thresher::arena::user_kernels
