#pragma once
/// Machine code loaded on a GPU, and launches of its kernels.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/driver.hpp"
#include "thresher/device.hpp"

namespace thresher::runtime {

struct Extent3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  bool operator==(const Extent3&) const = default;
};

struct LaunchConfig {
  Extent3 grid;     ///< blocks
  Extent3 block;    ///< threads
  Extent3 cluster;  ///< blocks of a cluster; 1, 1, 1 launches without clusters
  unsigned dynamic_shared_bytes = 0;
  /// Programmatic dependent launch (PDL): this kernel may start before the previous one on the stream has finished. The
  /// kernel must wait itself (griddepcontrol.wait) before it accesses memory that the previous one writes.
  bool dependent_launch = false;
  Stream stream;
};

/// One kernel of a loaded module. Cheap to copy; the module lives as long as any of its kernels.
class Kernel {
 public:
  /// Throws Error(invalid_argument) when the GPU does not allow that much for this kernel.
  void allow_dynamic_shared(std::size_t bytes) const;
  /// Allows clusters of more than 8 blocks.
  void allow_large_clusters() const;

  /// `arguments` holds one pointer to each kernel parameter's value, in order.
  void launch(const LaunchConfig& config, std::span<void*> arguments) const;
  /// The same within a guard of the kernel's GPU.
  void launch(const LaunchConfig& config, std::span<void*> arguments, const ContextGuard& current) const;

  /// The same from values, whose types must be exactly the kernel's parameter types.
  template <class... Arguments>
  void launch_with(const LaunchConfig& config, const Arguments&... arguments) const {
    std::array<void*, sizeof...(Arguments)> pointers{
        const_cast<void*>(static_cast<const void*>(std::addressof(arguments)))...};
    launch(config, pointers);
  }

  /// Blocks of this kernel that fit on one multiprocessor at once.
  [[nodiscard]] int blocks_per_multiprocessor(int threads, std::size_t dynamic_shared_bytes) const;
  /// Clusters of `config` that fit on the GPU at once.
  [[nodiscard]] int resident_clusters(const LaunchConfig& config) const;
  [[nodiscard]] int registers() const;
  [[nodiscard]] std::size_t static_shared_bytes() const;
  [[nodiscard]] std::size_t local_bytes() const;
  [[nodiscard]] int ordinal() const noexcept;

 private:
  friend class Module;
  Kernel(std::shared_ptr<const struct LoadedModule> owner, void* function, std::string name)
      : owner_(std::move(owner)), function_(function), name_(std::move(name)) {}
  std::shared_ptr<const struct LoadedModule> owner_;
  void* function_ = nullptr;
  std::string name_;
};

/// A cubin loaded on one GPU.
class Module {
 public:
  /// Throws Error(device) when the image does not fit this GPU or this driver.
  Module(int ordinal, std::span<const std::byte> cubin);
  /// Loads the kernel fully, so that its first launch allocates nothing. `lowered_name` is the mangled one.
  [[nodiscard]] Kernel kernel(const std::string& lowered_name) const;

 private:
  std::shared_ptr<const struct LoadedModule> module_;
};

}  // namespace thresher::runtime
