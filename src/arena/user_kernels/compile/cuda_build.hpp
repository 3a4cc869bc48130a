#pragma once
/// Compiles a user's .cu file: NVRTC runs in a confined process of its own, on copies of the files that the kernel
/// includes.
#include <filesystem>
#include <string>

#include "arena/pitches/kernel.hpp"
#include "arena/user_kernels/compile/build_record.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::arena::user_kernels {

struct CudaBuild {
  runtime::Cubin cubin;
  BuildRecord record;
};

/// `thresher` is the command's own program, which calls compile_confined. Throws Error(compile) with the compiler's log
/// or the forbidden include; Error(io) when the program cannot start.
[[nodiscard]] CudaBuild build_cuda(const Kernel& kernel, const std::string& arch,
                                   const std::filesystem::path& thresher);

/// The main function of that process. `folder` holds the request, and later the answer.
[[noreturn]] void compile_confined(const std::filesystem::path& folder);

}  // namespace thresher::arena::user_kernels
