#include "ops/built_in_cubins.hpp"

#include "runtime/cubin_cache.hpp"

namespace thresher::ops {

std::optional<runtime::Cubin> find_built_in(const runtime::Program& program) {
  const std::string key = built_in_key(program);
  for (const BuiltInCubin& cubin : built_in_cubins()) {
    if (cubin.key == key) {
      return runtime::deserialise(key, cubin.entry);
    }
  }
  return std::nullopt;
}

}  // namespace thresher::ops
