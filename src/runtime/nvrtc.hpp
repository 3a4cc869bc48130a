#pragma once
/// Device code compiled at run time, on any machine that has NVRTC: no GPU, no nvcc and no include path is needed.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/embedded_file.hpp"

namespace thresher::runtime {

/// Whether NVRTC was found, its path, and the remedy if not.
struct NvrtcStatus {
  std::string library_path;
  int version = 0;      ///< e.g. 13000
  std::string problem;  ///< empty when usable
};

/// Loads NVRTC on the first call. Never throws.
const NvrtcStatus& nvrtc_status() noexcept;
/// Compiles an empty kernel. Empty when that works, otherwise one sentence with the reason and the remedy.
std::string nvrtc_trial();

/// The input of a compilation.
struct Program {
  std::string title;                  ///< names it in messages, e.g. "two_pass dequantize"
  std::string text;                   ///< the translation unit
  std::vector<EmbeddedFile> headers;  ///< every included file, direct or indirect
  std::vector<std::string> kernels;   ///< name expressions, e.g. "thresher::strategies::scale<Layout{4, 2}>"
  std::vector<std::string> options;   ///< in addition to those of every program (see standard_options)
  std::string arch = "sm_90a";
};

/// ptxas's report on one kernel.
struct ResourceReport {
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int static_shared_bytes = 0;
  int barriers = 0;
  bool operator==(const ResourceReport&) const = default;
};

struct CompiledKernel {
  std::string expression;    ///< as in Program::kernels
  std::string lowered_name;  ///< the name in the cubin
  ResourceReport resources;
  bool operator==(const CompiledKernel&) const = default;
};

struct Cubin {
  std::vector<std::byte> image;
  std::vector<CompiledKernel> kernels;  ///< in the order of Program::kernels
  std::string arch;
  std::string toolchain;  ///< "NVRTC 13.0"
  std::string log;        ///< the compiler's output, resource reports included, without timings
};

/// Language standard, ptxas reporting and warnings; compiled into every program.
std::span<const std::string_view> standard_options() noexcept;

/// The name of the compiler as Cubin::toolchain has it; throws as `compile` when there is none.
std::string nvrtc_toolchain();

/// Compiles, without any cache. Throws Error(unsupported) when NVRTC or a part of it is missing or does not know the
/// architecture. Throws Error(compile) with the log when the program does not compile. Throws it too when ptxas reports
/// a serialised or waiting wgmma ("Potential Performance Loss", "wait is injected").
Cubin compile(const Program& program);

/// The resource report of each function in a ptxas log, by lowered name.
struct NamedReport {
  std::string lowered_name;
  ResourceReport resources;
};
std::vector<NamedReport> parse_resource_log(std::string_view log);

/// The log without the lines on compile time, so that equal code has equal logs.
std::string without_times(std::string_view log);

/// The file with NVRTC's built-in functions, "libnvrtc-builtins.so.13.0", that a failure's log says it could not open;
/// empty without such a line.
std::string missing_builtins(std::string_view log);

/// The first line of a log that reports a serialised or waiting wgmma; empty when there is none.
std::string_view performance_failure(std::string_view log) noexcept;

}  // namespace thresher::runtime
