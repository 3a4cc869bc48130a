#pragma once
/// A user kernel, as the [kernel] table of a pitch describes it (docs/harness/bring-your-own.md).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arena/operation/argument.hpp"
#include "arena/operation/problem.hpp"
#include "arena/pitches/expression.hpp"

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
  std::string operation;  ///< whose problems it computes
  std::string source;     ///< the file's absolute path: compilers look for headers beside it
  std::string text;       ///< as read together with the pitch
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
[[nodiscard]] Kernel read_kernel(const ConfigTable& table, const std::string& pitch_file, const Operation& operation);

[[nodiscard]] Extents extents_of(const std::vector<Argument>& arguments);
/// The value of one of the kernel's expressions for a problem.
[[nodiscard]] std::int64_t evaluate(std::string_view text, const Problem& problem);

}  // namespace thresher::arena::user_kernels
