#pragma once
/// Inputs that a kernel's process does not see before the call that reads them.
#include <cstddef>
#include <span>
#include <vector>

namespace thresher::arena::user_kernels {

/// A range of shared memory with its delayed upload. The process sees the upload from put_in on. Until then it is in
/// this process's own memory, and the range keeps its earlier content.
class DelayedInput {
 public:
  /// Takes the present content out of the range.
  explicit DelayedInput(std::span<std::byte> place);
  DelayedInput(const DelayedInput&) = delete;
  DelayedInput& operator=(const DelayedInput&) = delete;

  [[nodiscard]] std::span<std::byte> place() const { return place_; }
  [[nodiscard]] std::size_t offset(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - place_.data());
  }
  void upload(std::size_t offset, std::span<const std::byte> from);
  void fill(std::size_t offset, std::byte byte, std::size_t bytes);
  /// Reads the upload or, after put_in, the present content.
  void download(std::size_t offset, std::span<std::byte> to) const;
  void put_in();

 private:
  /// Takes the content back; a part of it will be replaced.
  std::span<std::byte> take_back();

  std::span<std::byte> place_;
  std::vector<std::byte> kept_;
  bool is_in_ = true;
};

}  // namespace thresher::arena::user_kernels
