#pragma once
/// A user's .cu file on its way to machine code: NVRTC runs in a confined process of its own, on copies of the files
/// that the kernel includes.
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

/// `thresher` is the command's own program, which ends up in compile_confined. Throws Error(compile) with the
/// compiler's log, or with the file that may not be included; Error(io) when the program cannot be started.
[[nodiscard]] CudaBuild build_cuda(const Kernel& kernel, const std::string& arch,
                                   const std::filesystem::path& thresher);

/// The life of that process. `folder` holds what is asked, and what is answered afterwards.
[[noreturn]] void compile_confined(const std::filesystem::path& folder);

}  // namespace thresher::arena::user_kernels
