#include "arena/contestants/toolchain.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include "cpu/product.hpp"
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
  return {.thresher = std::string(version()),
          .compiler = compiler(),
          .build_type = THRESHER_BUILD_TYPE,
          .flags = THRESHER_CXX_FLAGS,
          .onednn = cpu::onednn_version(),
          .sqlite = sqlite3_libversion()};
}

}  // namespace thresher::arena
