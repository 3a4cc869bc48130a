#pragma once
/// A user kernel, as the [kernel] table of a pitch describes it (docs/harness/bring-your-own.md).
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arena/pitches/expression.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {
class ConfigTable;
}

namespace thresher::arena::user_kernels {

enum class Language : std::uint8_t {
  cuda,    ///< a .cu file, compiled with NVRTC
  host,    ///< a .cpp, .cc, .cxx or .c file, compiled with the host's compiler
  python,  ///< a .py file, which a Python interpreter runs
};

struct Kernel {
  std::string source;  ///< the file's absolute path: compilers look for headers beside it
  std::string text;    ///< as read together with the pitch
  Language language = Language::cuda;
  std::string entry;
  std::vector<std::string> grid;       ///< blocks: one to three expressions
  std::vector<std::int64_t> block;     ///< threads: one to three numbers
  std::string shared_bytes = "0";      ///< dynamic shared memory: an expression
  std::string workspace_bytes = "0";   ///< an expression
  std::string arch = "sm_90a";         ///< where no GPU determines it
  std::vector<std::string> options;    ///< for the compiler
  std::string framework = "numpy";     ///< the arrays that a .py file receives: NumPy's or torch's
  std::vector<std::string> formats;    ///< "fp16*fp16->fp16"; empty: all
  std::optional<double> time_limit_s;  ///< of one call, if the pitch sets it
};

/// Reads the table and the source, beside `pitch_file`. Throws Error(invalid_argument) with file, line and key.
[[nodiscard]] Kernel read_kernel(const ConfigTable& table, const std::string& pitch_file);

/// "fp16*fp16->fp16".
[[nodiscard]] std::string formats_text(const DualGemmProblem& problem);
/// Formats of operands that user kernels support.
inline constexpr std::array formats_given_outside{Format::fp16, Format::bf16, Format::nvfp4};

[[nodiscard]] Shape shape_of(const DualGemmProblem& problem);

}  // namespace thresher::arena::user_kernels
