#include "ops/cuda_programs.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/made_once.hpp"
#include "ops/built_in_cubins.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

const runtime::CubinCache& disk_cache() {
  static const runtime::CubinCache cache(runtime::CubinCache::default_directory());
  return cache;
}

LoadedProgram load_compiled(int ordinal, const runtime::Program& input) {
  bool was_cached = false;
  runtime::Cubin cubin = runtime::compile_cached(input, disk_cache(), &was_cached);
  runtime::Module module(ordinal, cubin.image);
  return {std::move(cubin), was_cached ? CodeOrigin::disk_cache : CodeOrigin::compiled, std::move(module)};
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
  // Headers are the same for every program, so all of these tell two apart. A fingerprint would take as long as a plan.
  using Key = std::tuple<int, std::string, std::vector<std::string>, std::vector<std::string>, std::optional<Arch>>;
  // Never destroyed: modules must not be unloaded after the driver has shut down.
  static auto& loaded = *new MadeOnce<Key, LoadedProgram>;
  return loaded.get({ordinal, program.text, program.kernels, program.options, program.only_arch}, [&] {
    const runtime::Program input = compiler_input(program, runtime::device_properties(ordinal).arch());
    std::optional<LoadedProgram> built_in = load_built_in(ordinal, input);
    return built_in ? std::move(*built_in) : load_compiled(ordinal, input);
  });
}

CompiledProgram compile_program(const strategies::DeviceProgram& program, const std::string& arch) {
  const runtime::Program input = compiler_input(program, arch);
  if (std::optional<runtime::Cubin> built_in = find_built_in(input)) {
    return {std::move(*built_in), CodeOrigin::built_in};
  }
  bool was_cached = false;
  runtime::Cubin cubin = runtime::compile_cached(input, disk_cache(), &was_cached);
  return {std::move(cubin), was_cached ? CodeOrigin::disk_cache : CodeOrigin::compiled};
}

CodeOrigin warm_program(const strategies::DeviceProgram& program, const std::string& arch) {
  return compile_program(program, arch).origin;
}

}  // namespace thresher::ops
