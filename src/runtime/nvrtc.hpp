#pragma once
/// Device code compiled at run time, on any machine that has NVRTC: no GPU, no nvcc and no include path is needed.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/embedded_file.hpp"

namespace thresher::runtime {

/// Whether NVRTC was found, where, and what to do if not.
struct NvrtcStatus {
  std::string library_path;
  int version = 0;      ///< e.g. 13000
  std::string problem;  ///< empty when usable
};

/// Loads NVRTC on the first call. Never throws.
const NvrtcStatus& nvrtc_status() noexcept;
/// Compiles an empty kernel. Empty when that works, else one sentence that says why it does not and what to do.
std::string nvrtc_trial();

/// What to compile.
struct Program {
  std::string title;                  ///< names it in messages, e.g. "two_pass dequantise"
  std::string text;                   ///< the translation unit
  std::vector<EmbeddedFile> headers;  ///< every file it includes, directly or not
  std::vector<std::string> kernels;   ///< name expressions, e.g. "thresher::strategies::scale<Layout{4, 2}>"
  std::vector<std::string> options;   ///< beyond the ones that every program gets (see standard_options)
  std::string arch = "sm_90a";
};

/// What ptxas says of one kernel.
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
  std::string lowered_name;  ///< as the cubin calls it
  ResourceReport resources;
  bool operator==(const CompiledKernel&) const = default;
};

struct Cubin {
  std::vector<std::byte> image;
  std::vector<CompiledKernel> kernels;  ///< in the order of Program::kernels
  std::string arch;
  std::string toolchain;  ///< "NVRTC 13.0"
  std::string log;        ///< the compiler's own words, resource reports included, without how long it took
};

/// Language standard, ptxas reporting and warnings; compiled into every program.
std::span<const std::string_view> standard_options() noexcept;

/// The name of the compiler as Cubin::toolchain has it; throws as `compile` when there is none.
std::string nvrtc_toolchain();

/// Compiles, without any cache. Throws Error(unsupported) when NVRTC or a part of it is missing or does not know the
/// architecture, and Error(compile) with the log when the program does not compile or ptxas reports a serialised or
/// waiting matrix instruction ("Potential Performance Loss", "wait is injected").
Cubin compile(const Program& program);

/// The resource report of each function in a ptxas log, by lowered name.
struct NamedReport {
  std::string lowered_name;
  ResourceReport resources;
};
std::vector<NamedReport> parse_resource_log(std::string_view log);

/// The log without its lines that tell how long the compiler took: equal code has equal logs.
std::string without_times(std::string_view log);

/// The file with NVRTC's built-in functions, "libnvrtc-builtins.so.13.0", that it could not open as the log of a
/// failure says; empty when it says no such thing.
std::string missing_builtins(std::string_view log);

/// The first line of a log that tells of a serialised or waiting matrix instruction; empty when there is none.
std::string_view performance_failure(std::string_view log) noexcept;

}  // namespace thresher::runtime
