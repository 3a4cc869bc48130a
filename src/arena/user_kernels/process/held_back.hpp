#pragma once
/// Inputs that a kernel's process is not given before the call that reads them.
#include <cstddef>
#include <span>
#include <vector>

namespace thresher::arena::user_kernels {

/// A place in shared memory, with what is uploaded there. The process finds it there from put_in on; until then it lies
/// in this process's own memory, and in its place is what was there before.
class DelayedInput {
 public:
  /// Takes away what lies there.
  explicit DelayedInput(std::span<std::byte> place);
  DelayedInput(const DelayedInput&) = delete;
  DelayedInput& operator=(const DelayedInput&) = delete;

  [[nodiscard]] std::span<std::byte> place() const { return place_; }
  [[nodiscard]] std::size_t offset(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - place_.data());
  }
  void upload(std::size_t offset, std::span<const std::byte> from);
  void fill(std::size_t offset, std::byte byte, std::size_t bytes);
  /// What was uploaded or, once it is put in, what has become of it.
  void download(std::size_t offset, std::span<std::byte> to) const;
  void put_in();

 private:
  /// What lies there, of which a part is about to be exchanged.
  std::span<std::byte> take_back();

  std::span<std::byte> place_;
  std::vector<std::byte> kept_;
  bool is_in_ = true;
};

}  // namespace thresher::arena::user_kernels
