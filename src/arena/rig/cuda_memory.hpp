#pragma once
/// Memory of one GPU.
#include <mutex>
#include <unordered_map>

#include "arena/rig/memory.hpp"
#include "runtime/memory.hpp"

namespace thresher::arena {

class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(int ordinal) : ordinal_(ordinal) {}

  [[nodiscard]] DeviceId device() const override { return {DeviceKind::cuda, ordinal_}; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  /// The driver's free memory, less a reserve for contexts, graphs and libraries.
  [[nodiscard]] std::size_t available_bytes() override;

 private:
  int ordinal_;
  std::mutex mutex_;
  std::unordered_map<void*, runtime::DeviceBuffer> buffers_;
};

}  // namespace thresher::arena
