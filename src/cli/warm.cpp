// `thresher warm`: compiles in advance the kernels that the library would otherwise compile on first use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "core/arch.hpp"
#include "core/printable.hpp"
#include "core/remark.hpp"
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

/// The number of programs that the cache should hold and that it holds, and the reason for a difference.
struct Kept {
  int wanted = 0;
  int kept = 0;
  std::string problem;
};

/// After the first program that cannot be kept, it compiles no more and only counts those in the cache.
std::optional<ops::CodeOrigin> warm_one(const strategies::DeviceProgram& program, const std::string& arch, Kept& kept) {
  std::optional<ops::CodeOrigin> origin;
  if (kept.problem.empty()) {
    ops::WarmedProgram warmed = ops::warm_program(program, arch);
    origin = warmed.origin;
    kept.problem = std::move(warmed.not_kept);
  } else {
    origin = ops::find_program(program, arch);
  }
  if (origin != ops::CodeOrigin::built_in) {
    ++kept.wanted;
    const bool is_kept = origin == ops::CodeOrigin::disk_cache || (origin && kept.problem.empty());
    kept.kept += is_kept ? 1 : 0;
  }
  return origin;
}

/// Prints the folder and the number of its programs. False when some are missing.
bool tell(const Kept& kept) {
  const std::string cache = printable(runtime::CubinCache::default_directory().string());
  const std::string count = fmt::format("{} of {} programs kept", kept.kept, kept.wanted);
  if (cache.empty()) {
    fmt::print("cache: none, because THRESHER_CACHE, XDG_CACHE_HOME and HOME are not set: {}\n", count);
  } else {
    fmt::print("cache: {}: {}\n", cache, count);
  }
  if (kept.problem.empty()) {
    return true;
  }
  std::fflush(stdout);
  print_note(stderr, fmt::format("thresher: {}: {}\n", printable(kept.problem), count));
  return false;
}

bool warm(std::vector<std::string> archs) {
  if (archs.empty()) {
    archs = default_archs();
  }
  Kept kept;
  std::map<std::string, int> built_in;  // programs by name
  for (const std::string& arch : archs) {
    for (const strategies::DeviceProgram& program : ops::default_programs(arch)) {
      const auto start = std::chrono::steady_clock::now();
      const std::optional<ops::CodeOrigin> origin = warm_one(program, arch, kept);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      const std::string name = fmt::format("{} for {}", program.title, arch);
      if (origin == ops::CodeOrigin::built_in) {
        ++built_in[name];
      } else if (origin) {
        fmt::print("{}: {}\n", name, words(*origin, taken.count()));
        std::fflush(stdout);  // the next line may take seconds
      }
    }
  }
  for (const auto& [name, count] : built_in) {
    fmt::print("{}: built in{}\n", name, count > 1 ? fmt::format(", in {} variants", count) : "");
  }
  return tell(kept);
}

/// The kernels need compute capability 9.0: for an older card the compiler prints pages of errors.
std::string not_supported(const std::string& arch) {
  constexpr int oldest = 90;
  int capability = 0;
  const char* const begin = arch.data() + std::min<std::size_t>(3, arch.size());
  const char* const end = arch.data() + arch.size();
  const auto [stop, error] = std::from_chars(begin, end, capability);
  const std::string_view family(stop, static_cast<std::size_t>(end - stop));
  if (arch.starts_with("sm_") && error == std::errc() && capability >= oldest &&
      (family.empty() || family == "a" || family == "f")) {
    return "";
  }
  std::vector<std::string_view> names;
  for (const Arch one : all_archs) {
    if (one != Arch::cpu) {
      names.push_back(name(one));
    }
  }
  return fmt::format("{} is not supported: expected {}, or another from sm_{} on", arch, fmt::join(names, ", "),
                     oldest);
}

}  // namespace

void add_warm(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("warm", "Compiles the default GPU programs into the cache, ahead of their first use");
  const auto archs = std::make_shared<std::vector<std::string>>();
  command
      ->add_option(
          "--arch", *archs,
          "GPU architectures such as sm_90a, or sm_100f for all of a family (default: those of this machine's GPUs)")
      ->check(CLI::Validator(not_supported, "", "architecture"));
  command->callback([archs, &context] { context.exit_status = warm(*archs) ? 0 : gate_failed; });
}

}  // namespace thresher::cli
