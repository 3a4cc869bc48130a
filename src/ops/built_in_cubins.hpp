#pragma once
/// Machine code of default_programs() that was compiled when the library was built; none when NVRTC was missing then.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/nvrtc.hpp"

namespace thresher::ops {

/// One entry as runtime::serialise writes it.
struct BuiltInCubin {
  std::string_view key;
  std::string_view entry;
};

/// Generated at build time (cmake/precompile.cpp).
std::span<const BuiltInCubin> built_in_cubins();

/// The key of an entry: it was compiled from exactly this program, by any version of the compiler.
std::string built_in_key(const runtime::Program& program);

std::optional<runtime::Cubin> find_built_in(const runtime::Program& program);

}  // namespace thresher::ops
