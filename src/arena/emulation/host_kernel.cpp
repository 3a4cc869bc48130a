#include "arena/emulation/host_kernel.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "runtime/cubin_cache.hpp"
#include "runtime/host_compiler.hpp"
#include "strategies/host/compiled_in.hpp"
#include "strategies/host/sources.hpp"

namespace thresher::arena {
namespace {

strategies::HostKernel compiled_now(const strategies::DeviceProgram& program, const std::string& expression) {
  const std::span<const EmbeddedFile> headers = strategies::host_sources();
  const std::string symbol = "thresher_host_kernel";
  const std::string text = fmt::format(
      "{}#include \"strategies/host/kernel.hpp\"\n"
      "extern \"C\" void {}(const void* params) {{\n"
      "  thresher::strategies::call(&{}, params);\n"
      "}}\n",
      program.text, symbol, expression);
  void* const function = runtime::load_host_program(
      {.title = program.title, .text = text, .headers = {headers.begin(), headers.end()}, .symbol = symbol},
      runtime::CubinCache::default_directory());
  return reinterpret_cast<strategies::HostKernel>(function);
}

}  // namespace

strategies::HostKernel host_kernel(const strategies::DeviceProgram& program, const std::string& expression) {
  if (const strategies::HostKernel kernel = strategies::find_compiled_in(expression)) {
    return kernel;
  }
  static std::mutex mutex;
  static std::map<std::string, strategies::HostKernel> loaded;
  const std::lock_guard lock(mutex);
  const auto known = loaded.find(expression);
  return known != loaded.end() ? known->second
                               : loaded.emplace(expression, compiled_now(program, expression)).first->second;
}

}  // namespace thresher::arena
