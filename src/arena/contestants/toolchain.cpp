#include "arena/contestants/toolchain.hpp"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>
#include <sqlite3.h>

#include "thresher/version.hpp"

namespace thresher::arena {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

Toolchain toolchain() {
  const dnnl_version_t* dnnl = dnnl_version();
  return {.thresher = std::string(version()),
          .compiler = compiler(),
          .build_type = THRESHER_BUILD_TYPE,
          .flags = THRESHER_CXX_FLAGS,
          .onednn = fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch),
          .sqlite = sqlite3_libversion()};
}

}  // namespace thresher::arena
