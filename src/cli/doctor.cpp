// `thresher doctor`: what was found on this machine, what was not, and what to do about it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "cli/cli.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/nvml.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

void line(const char* what, const std::string& found) { fmt::print("{:<13}{}\n", what, found); }

/// What was found and where, or what is wrong and what to do.
void library_line(const char* what, const std::string& path, const std::string& version, const std::string& problem) {
  line(what, problem.empty() ? fmt::format("{} ({})", version, path) : problem);
}

void report_cpu() {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  line("CPU", fmt::format("{}, {} threads, {:.1f} GiB of memory, last-level cache {}", Device::cpu().name(),
                          std::thread::hardware_concurrency(), memory / gib,
                          cache > 0 ? fmt::format("{:.1f} MiB", static_cast<double>(cache) / 1048576.0) : "unknown"));
}

void report_gpus() {
  const runtime::DriverStatus& driver = runtime::driver_status();
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
  library_line("NVRTC", nvrtc.library_path, runtime::version_text(nvrtc.version), nvrtc.problem);
  const runtime::CublasLtStatus& cublaslt = runtime::cublaslt_status();
  library_line("cuBLASLt", cublaslt.library_path, std::to_string(cublaslt.version), cublaslt.problem);
  const runtime::NvmlStatus& nvml = runtime::nvml_status();
  library_line("NVML", nvml.library_path, nvml.driver_version, nvml.problem);
}

void doctor() {
  line("Thresher", version());
  report_cpu();
  report_gpus();
  report_libraries();
  line("default", fmt::format("operations run on {}", Device::best().name()));
}

}  // namespace

void add_doctor(CLI::App& app, Context&) {
  app.add_subcommand("doctor", "Says what was found on this machine, what was not, and what to do")->callback(doctor);
}

}  // namespace thresher::cli
