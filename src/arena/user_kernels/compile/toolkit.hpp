#pragma once
/// The CUDA toolkit's headers, for kernels that include them.
#include <filesystem>

namespace thresher::arena::user_kernels {

/// The folder of cuda_fp16.h: include of $CUDA_HOME, $CUDA_PATH, /usr/local/cuda or /opt/cuda, /usr/include, or one of
/// NVIDIA's Python packages; empty when there is none.
[[nodiscard]] std::filesystem::path toolkit_headers();

}  // namespace thresher::arena::user_kernels
