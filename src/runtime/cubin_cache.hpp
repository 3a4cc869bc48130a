#pragma once
/// Compiled programs kept on disk. Several processes may share a cache; a truncated or damaged entry counts as absent.
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/nvrtc.hpp"

namespace thresher::runtime {

class CubinCache {
 public:
  /// An empty path keeps nothing.
  explicit CubinCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// THRESHER_CACHE, otherwise XDG_CACHE_HOME/thresher, otherwise ~/.cache/thresher; empty when none of them is set.
  static std::filesystem::path default_directory();

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  [[nodiscard]] std::optional<Cubin> find(const std::string& key) const;
  /// Empty when the entry is kept, otherwise one sentence with the reason (no folder, a full or read-only disk). A
  /// failure is no error: the cache is a convenience.
  [[nodiscard]] std::string store(const std::string& key, const Cubin& cubin) const;

 private:
  std::filesystem::path directory_;
};

/// Name of a program compiled by `toolchain`: a fingerprint of its text, headers, kernels, options and architecture.
std::string cache_key(const Program& program, const std::string& toolchain);

/// Converts an entry to bytes and back; empty when `bytes` is not a complete, undamaged entry for `key`.
std::string serialise(const std::string& key, const Cubin& cubin);
std::optional<Cubin> deserialise(const std::string& key, std::string_view bytes);

/// A program's machine code, and the result of the cache.
struct CachedCompilation {
  Cubin cubin;
  bool was_cached = false;
  std::string not_kept;  ///< why the cache does not hold it now, one sentence; empty when it does
};

/// The compiler for programs that are not in the cache.
struct Compiler {
  std::string toolchain;
  std::function<Cubin(const Program&)> compile;
};

/// Returns the cached entry, or compiles and stores it. If another process compiles the same program, waits for it for
/// up to `patience`, and then compiles it too. Without a compiler, uses NVRTC.
CachedCompilation compile_cached(const Program& program, const CubinCache& cache);
CachedCompilation compile_cached(const Program& program, const CubinCache& cache, const Compiler& compiler,
                                 std::chrono::milliseconds patience);
/// The result of compile_cached if it needs no compilation.
std::optional<Cubin> find_cached(const Program& program, const CubinCache& cache);

}  // namespace thresher::runtime
