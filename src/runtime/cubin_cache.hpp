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

  /// THRESHER_CACHE, else XDG_CACHE_HOME/thresher, else ~/.cache/thresher; empty when none of them is set.
  static std::filesystem::path default_directory();

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  [[nodiscard]] std::optional<Cubin> find(const std::string& key) const;
  /// Empty when the entry is kept, else one sentence that says why not (no folder, a full or read-only disk): the cache
  /// is a convenience.
  [[nodiscard]] std::string store(const std::string& key, const Cubin& cubin) const;

 private:
  std::filesystem::path directory_;
};

/// Name of a program compiled by `toolchain`: a fingerprint of its text, headers, kernels, options and architecture.
std::string cache_key(const Program& program, const std::string& toolchain);

/// The bytes of an entry and back; nothing when `bytes` is not a whole, undamaged entry for `key`.
std::string serialise(const std::string& key, const Cubin& cubin);
std::optional<Cubin> deserialise(const std::string& key, std::string_view bytes);

/// A program's machine code, and what the cache did with it.
struct CachedCompilation {
  Cubin cubin;
  bool was_cached = false;
  std::string not_kept;  ///< why the cache does not hold it now, one sentence; empty when it does
};

/// Who compiles what is not in the cache.
struct Compiler {
  std::string toolchain;
  std::function<Cubin(const Program&)> compile;
};

/// From the cache where it is there, else compiled and kept. While another process compiles the same program, waits for
/// it for up to `patience`, and then compiles it all the same. Without a compiler, by NVRTC.
CachedCompilation compile_cached(const Program& program, const CubinCache& cache);
CachedCompilation compile_cached(const Program& program, const CubinCache& cache, const Compiler& compiler,
                                 std::chrono::milliseconds patience);
/// What compile_cached would find without compiling.
std::optional<Cubin> find_cached(const Program& program, const CubinCache& cache);

}  // namespace thresher::runtime
