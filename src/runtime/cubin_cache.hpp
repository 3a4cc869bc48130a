#pragma once
/// Compiled programs kept on disk. Several processes may share a cache; a truncated or damaged entry counts as absent.
#include <filesystem>
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
  /// Returns false when the entry could not be written (a full or read-only disk): the cache is a convenience.
  bool store(const std::string& key, const Cubin& cubin) const;

 private:
  [[nodiscard]] std::filesystem::path entry_path(const std::string& key) const;
  std::filesystem::path directory_;
};

/// Name of a program compiled by `toolchain`: a fingerprint of its text, headers, kernels, options and architecture.
std::string cache_key(const Program& program, const std::string& toolchain);

/// The bytes of an entry and back; nothing when `bytes` is not a whole, undamaged entry for `key`.
std::string serialise(const std::string& key, const Cubin& cubin);
std::optional<Cubin> deserialise(const std::string& key, std::string_view bytes);

/// Compiled, from the cache where it is there. `was_cached` tells which, when given.
Cubin compile_cached(const Program& program, const CubinCache& cache, bool* was_cached = nullptr);

}  // namespace thresher::runtime
