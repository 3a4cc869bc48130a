#include "ops/cuda_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/made_once.hpp"
#include "ops/built_in_cubins.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

const runtime::CubinCache& disk_cache() {
  static const runtime::CubinCache cache(runtime::CubinCache::default_directory());
  return cache;
}

CodeOrigin origin_of(const runtime::CachedCompilation& made) {
  return made.was_cached ? CodeOrigin::disk_cache : CodeOrigin::compiled;
}

CompiledProgram compiled(const runtime::Program& input) {
  runtime::CachedCompilation made = runtime::compile_cached(input, disk_cache());
  runtime::warn_not_kept(made.not_kept);
  return {std::move(made.cubin), origin_of(made)};
}

LoadedProgram load_compiled(int ordinal, const runtime::Program& input) {
  CompiledProgram made = compiled(input);
  runtime::Module module(ordinal, made.cubin.image);
  return {std::move(made.cubin), made.origin, std::move(module)};
}

/// Nothing when the library holds no code for this program, or the driver is older than that code and NVRTC can compile
/// code that fits it.
std::optional<LoadedProgram> load_built_in(int ordinal, const runtime::Program& input) {
  std::optional<runtime::Cubin> cubin = find_built_in(input);
  if (!cubin) {
    return std::nullopt;
  }
  try {
    runtime::Module module(ordinal, cubin->image);
    return LoadedProgram{std::move(*cubin), CodeOrigin::built_in, std::move(module)};
  } catch (const Error&) {
    if (!runtime::nvrtc_status().problem.empty()) {
      throw;
    }
    return std::nullopt;
  }
}

// Headers are the same for every program, so all of these tell two apart. A fingerprint would take as long as a plan.
using ProgramKey =
    std::tuple<int, std::string, std::vector<std::string>, std::vector<std::string>, std::optional<Arch>>;

ProgramKey key_of(int ordinal, const strategies::DeviceProgram& program) {
  return {ordinal, program.text, program.kernels, program.options, program.only_arch};
}

OnceMap<ProgramKey, LoadedProgram>& loaded_programs() {
  // Never destroyed: modules must not be unloaded after the driver has shut down.
  static auto& loaded = *new OnceMap<ProgramKey, LoadedProgram>;
  return loaded;
}

}  // namespace

runtime::Kernel LoadedProgram::kernel(const std::string& expression) const {
  const auto found =
      std::find_if(cubin.kernels.begin(), cubin.kernels.end(),
                   [&](const runtime::CompiledKernel& kernel) { return kernel.expression == expression; });
  if (found == cubin.kernels.end()) {
    throw Error(ErrorCode::internal, "a device program was compiled without its kernel " + expression);
  }
  return module.kernel(found->lowered_name);
}

const LoadedProgram& load_program(int ordinal, const strategies::DeviceProgram& program) {
  return loaded_programs().get(key_of(ordinal, program), [&] {
    const runtime::Program input = compiler_input(program, runtime::device_properties(ordinal).arch());
    std::optional<LoadedProgram> built_in = load_built_in(ordinal, input);
    return built_in ? std::move(*built_in) : load_compiled(ordinal, input);
  });
}

void load_programs(int ordinal, std::vector<const strategies::DeviceProgram*> programs) {
  std::set<ProgramKey> seen;
  std::erase_if(programs, [&](const strategies::DeviceProgram* program) {
    ProgramKey key = key_of(ordinal, *program);
    return loaded_programs().is_known(key) || !seen.insert(std::move(key)).second;
  });
  if (programs.size() < 2) {
    return;
  }
  std::atomic<std::size_t> next = 0;
  const auto load_some = [&] {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      try {
        (void)load_program(ordinal, *programs[i]);
      } catch (const std::exception&) {  // the next load throws it again
      }
    }
  };
  const std::size_t workers = std::min<std::size_t>(programs.size(), std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  threads.reserve(workers);
  try {
    for (std::size_t i = 1; i < workers; ++i) {
      threads.emplace_back(load_some);
    }
  } catch (const std::system_error&) {  // the threads that exist do it all
  }
  load_some();
}

std::optional<runtime::Cubin> find_built_in(const runtime::Program& program) {
  const std::string key = built_in_key(program);
  for (const BuiltInCubin& cubin : built_in_cubins()) {
    if (cubin.key == key) {
      return runtime::deserialise(key, cubin.entry);
    }
  }
  return std::nullopt;
}

CompiledProgram compile_program(const strategies::DeviceProgram& program, const std::string& arch) {
  const runtime::Program input = compiler_input(program, arch);
  std::optional<runtime::Cubin> built_in = find_built_in(input);
  return built_in ? CompiledProgram{std::move(*built_in), CodeOrigin::built_in} : compiled(input);
}

WarmedProgram warm_program(const strategies::DeviceProgram& program, const std::string& arch) {
  const runtime::Program input = compiler_input(program, arch);
  if (find_built_in(input)) {
    return {CodeOrigin::built_in, {}};
  }
  runtime::CachedCompilation made = runtime::compile_cached(input, disk_cache());
  return {origin_of(made), std::move(made.not_kept)};
}

std::optional<CodeOrigin> find_program(const strategies::DeviceProgram& program, const std::string& arch) {
  const runtime::Program input = compiler_input(program, arch);
  if (find_built_in(input)) {
    return CodeOrigin::built_in;
  }
  return runtime::find_cached(input, disk_cache()) ? std::optional(CodeOrigin::disk_cache) : std::nullopt;
}

std::string missing_program(const strategies::PlannedCall& call, const std::string& arch,
                            const std::string& compiler_problem) {
  for (const strategies::DeviceProgram& program : programs_of(call)) {
    if (!find_program(program, arch)) {
      return fmt::format("a program of strategy {} is not built in and cannot be compiled: {}", call.strategy,
                         compiler_problem);
    }
  }
  return "";
}

CallObstacle program_obstacle(const Device& device) {
  const std::string problem = device.kind() == DeviceKind::cuda ? runtime::nvrtc_status().problem : "";
  if (problem.empty()) {
    return {};
  }
  return [problem, arch = runtime::device_properties(device.id().ordinal).arch()](const strategies::PlannedCall& call) {
    return missing_program(call, arch, problem);
  };
}

}  // namespace thresher::ops
