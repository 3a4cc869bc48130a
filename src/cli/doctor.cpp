// `thresher doctor`: lists the tools and libraries of this machine, and how to add missing ones.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <thread>

#include "arena/audit/disassembler.hpp"
#include "arena/ledger/ledger.hpp"
#include "cli/cli.hpp"
#include "core/printable.hpp"
#include "cpu/instructions.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/host_compiler.hpp"
#include "runtime/nvidia_wheels.hpp"
#include "runtime/nvml.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

void line(const char* what, const std::string& found) { fmt::print("{:<13}{}\n", what, printable(found)); }

/// Prints the library's path and version, or the problem and its remedy.
void library_line(const char* what, const std::string& path, const std::string& version, const std::string& problem) {
  line(what, problem.empty() ? fmt::format("{} ({})", version, path) : problem);
}

void report_cpu() {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  line("CPU", fmt::format("{}, {} threads, {:.1f} GiB of memory, last-level cache {}", Device::cpu().name(),
                          std::thread::hardware_concurrency(), memory / gib,
                          cache > 0 ? fmt::format("{:.1f} MiB", static_cast<double>(cache) / 1048576.0) : "unknown"));
  line("instructions", cpu::vector_instructions());
}

void report_gpus() {
  const runtime::DriverStatus& driver = runtime::driver_status();
  if (!driver.built_with_cuda) {
    line("GPU support", driver.problem);
    return;
  }
  line("GPU support", "in this build");
  library_line("CUDA driver", driver.library_path, runtime::version_text(driver.version), driver.problem);
  for (int ordinal = 0; ordinal < driver.devices; ++ordinal) {
    try {
      line("GPU", fmt::format("{}: {}", ordinal, Device::cuda(ordinal).name()));
    } catch (const Error& error) {
      line("GPU", fmt::format("{}: {}", ordinal, error.what()));
    }
  }
}

void report_libraries() {
  const runtime::NvrtcStatus& nvrtc = runtime::nvrtc_status();
  library_line("NVRTC", nvrtc.library_path, runtime::version_text(nvrtc.version),
               nvrtc.problem.empty() ? runtime::nvrtc_trial() : nvrtc.problem);
  const runtime::CublasLtStatus& cublaslt = runtime::cublaslt_status();
  library_line("cuBLASLt", cublaslt.library_path, std::to_string(cublaslt.version), cublaslt.problem);
  const runtime::NvmlStatus& nvml = runtime::nvml_status();
  library_line("NVML", nvml.library_path, nvml.driver_version, nvml.problem);
}

/// Why nothing was loaded from a folder of THRESHER_LIBRARY_PATH.
std::string passed_over(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return "is not there";
  }
  return std::filesystem::is_directory(folder, error) ? "has none of these libraries that can be used" : "is no folder";
}

/// Reports a folder that is named for a library but does not contain it.
void report_named_folders() {
  for (const std::filesystem::path& folder :
       runtime::path_list(runtime::process_environment, "THRESHER_LIBRARY_PATH")) {
    const auto is_from_there = [&](const std::string& library) {
      std::error_code error;
      return std::filesystem::equivalent(std::filesystem::path(library).parent_path(), folder, error) && !error;
    };
    if (!is_from_there(runtime::driver_status().library_path) && !is_from_there(runtime::nvrtc_status().library_path) &&
        !is_from_there(runtime::cublaslt_status().library_path) &&
        !is_from_there(runtime::nvml_status().library_path)) {
      line("library path",
           fmt::format("{}, which THRESHER_LIBRARY_PATH names, {}", folder.string(), passed_over(folder)));
    }
  }
}

void report_programs() {
  const runtime::HostCompiler compiler = runtime::find_host_compiler();
  library_line("compiler", compiler.path.string(), compiler.version, compiler.problem);
  const arena::Disassembler tools = arena::find_disassembler();
  line("disassembler", tools.found() ? (tools.nvdisasm.empty() ? tools.cuobjdump : tools.nvdisasm).string()
                                     : "none: " + arena::how_to_get_a_disassembler());
}

/// The folder or file, or the error that prevents its use.
std::string kept_in(const std::filesystem::path& folder) {
  std::filesystem::path there = folder;
  std::error_code error;
  while (there.has_relative_path() && !std::filesystem::exists(there, error)) {
    there = there.parent_path();
  }
  return ::access(there.c_str(), W_OK) == 0 ? folder.string()
                                            : fmt::format("{} cannot be written: nothing is kept", folder.string());
}

std::string kept_in_folder(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error)
             ? fmt::format("{} is no folder: nothing is kept", folder.string())
             : kept_in(folder);
}

void report_places() {
  const std::filesystem::path cache = runtime::CubinCache::default_directory();
  line("cache", cache.empty() ? "none: set THRESHER_CACHE or HOME" : kept_in_folder(cache));
  const std::filesystem::path ledger = arena::default_ledger();
  std::error_code error;
  line("ledger", ledger.empty()                           ? "none: set THRESHER_LEDGER or HOME"
                 : std::filesystem::exists(ledger, error) ? kept_in(ledger)
                                                          : kept_in(ledger) + ", not there yet");
}

void doctor() {
  line("Thresher", version());
  report_cpu();
  report_gpus();
  report_libraries();
  report_named_folders();
  report_programs();
  report_places();
  line("default", fmt::format("operations run on {}", Device::best().name()));
}

}  // namespace

void add_doctor(CLI::App& app, Context&) {
  app.add_subcommand("doctor", "Says what was found on this machine, what was not, and what to do")->callback(doctor);
}

}  // namespace thresher::cli
