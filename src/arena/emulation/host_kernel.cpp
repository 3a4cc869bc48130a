#include "arena/emulation/host_kernel.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "kernels/host/compiled_in.hpp"
#include "kernels/host/sources.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/host_compiler.hpp"

namespace thresher::arena {
namespace {

kernels::HostKernel compiled_now(const kernels::DeviceProgram& program) {
  const std::span<const EmbeddedFile> headers = kernels::host_sources();
  const std::string symbol = "thresher_host_kernel";
  const std::string text = fmt::format(
      "{}#include \"kernels/host/kernel.hpp\"\n"
      "extern \"C\" void {}(const void* params) {{\n"
      "  thresher::kernels::call(&{}, params);\n"
      "}}\n",
      program.text, symbol, program.kernels.front());
  void* const function = runtime::load_host_program(
      {.title = program.title, .text = text, .headers = {headers.begin(), headers.end()}, .symbol = symbol},
      runtime::CubinCache::default_directory());
  return reinterpret_cast<kernels::HostKernel>(function);
}

}  // namespace

kernels::HostKernel host_kernel(const kernels::DeviceProgram& program) {
  const std::string& expression = program.kernels.front();
  if (const kernels::HostKernel kernel = kernels::find_compiled_in(expression)) {
    return kernel;
  }
  static std::mutex mutex;
  static std::map<std::string, kernels::HostKernel> loaded;
  const std::lock_guard lock(mutex);
  const auto known = loaded.find(expression);
  return known != loaded.end() ? known->second : loaded.emplace(expression, compiled_now(program)).first->second;
}

}  // namespace thresher::arena
