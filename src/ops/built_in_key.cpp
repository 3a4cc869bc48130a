#include "ops/built_in_cubins.hpp"
#include "runtime/cubin_cache.hpp"

namespace thresher::ops {

std::string built_in_key(const runtime::Program& program) { return runtime::cache_key(program, "built in"); }

}  // namespace thresher::ops
