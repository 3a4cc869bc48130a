// `thresher warm`: compiles what the library would compile by itself later, so that nobody waits for it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "core/printable.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/driver.hpp"

namespace thresher::cli {
namespace {

/// The architectures of this machine's GPUs; Hopper's where there is none.
std::vector<std::string> default_archs() {
  std::vector<std::string> archs;
  for (int ordinal = 0; ordinal < runtime::driver_status().devices; ++ordinal) {
    const std::string arch = runtime::device_properties(ordinal).arch();
    if (std::find(archs.begin(), archs.end(), arch) == archs.end()) {
      archs.push_back(arch);
    }
  }
  return archs.empty() ? std::vector<std::string>{"sm_90a"} : archs;
}

std::string words(ops::CodeOrigin origin, double seconds) {
  switch (origin) {
    case ops::CodeOrigin::built_in: break;
    case ops::CodeOrigin::disk_cache: return "already in the cache";
    case ops::CodeOrigin::compiled: return fmt::format("compiled in {:.2f} s", seconds);
  }
  return "";
}

void warm(std::vector<std::string> archs) {
  if (archs.empty()) {
    archs = default_archs();
  }
  std::map<std::string, int> built_in;  // programs by what they are called
  for (const std::string& arch : archs) {
    for (const strategies::DeviceProgram& program : ops::default_programs(arch)) {
      const auto start = std::chrono::steady_clock::now();
      const ops::CodeOrigin origin = ops::warm_program(program, arch);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      const std::string name = fmt::format("{} for {}", program.title, arch);
      if (origin == ops::CodeOrigin::built_in) {
        ++built_in[name];
      } else {
        fmt::print("{}: {}\n", name, words(origin, taken.count()));
        std::fflush(stdout);  // the next one may take seconds
      }
    }
  }
  for (const auto& [name, count] : built_in) {
    fmt::print("{}: built in{}\n", name, count > 1 ? fmt::format(", in {} variants", count) : "");
  }
  const std::string cache = runtime::CubinCache::default_directory().string();
  fmt::print("cache: {}\n",
             cache.empty() ? "none, because THRESHER_CACHE, XDG_CACHE_HOME and HOME are not set" : printable(cache));
}

}  // namespace

void add_warm(CLI::App& app, Context&) {
  CLI::App* command =
      app.add_subcommand("warm", "Compiles the default GPU programs into the cache, ahead of their first use");
  const auto archs = std::make_shared<std::vector<std::string>>();
  command->add_option(
      "--arch", *archs,
      "GPU architectures such as sm_90a, or sm_100f for all of a family (default: those of this machine's GPUs)");
  command->callback([archs] { warm(*archs); });
}

}  // namespace thresher::cli
