#pragma once
/// Parts of a workspace: their offsets are determined when planning and used in every run.
#include <cstddef>
#include <cstdint>

namespace thresher::cpu {

inline constexpr std::size_t workspace_alignment = 64;

constexpr std::size_t round_up_bytes(std::size_t bytes) noexcept {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

class WorkspaceLayout {
 public:
  /// The offset of a new part.
  std::size_t add(std::size_t part_bytes) noexcept {
    const std::size_t offset = bytes_;
    bytes_ += round_up_bytes(part_bytes);
    return offset;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

template <typename T>
T* part(void* workspace, std::size_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset);
}

}  // namespace thresher::cpu
