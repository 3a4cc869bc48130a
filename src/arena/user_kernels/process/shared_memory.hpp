#pragma once
/// Memory of this process that a kernel's process sees too. Only what is allocated is ever shared, so a kernel that
/// writes all over it takes nobody's memory but its own; what lies in it is worth no more than the kernel's word, and
/// is copied before it is looked at.
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "arena/rig/memory.hpp"
#include "arena/user_kernels/process/held_back.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"
#include "arena/user_kernels/process/shared_piece.hpp"

namespace thresher::arena::user_kernels {

class SharedMemory final : public Memory {
 public:
  explicit SharedMemory(KernelProcess& process) : process_(process) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() override;

  [[nodiscard]] DeviceId device() const override { return {}; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  [[nodiscard]] std::size_t available_bytes() override;

  /// From now on what lies there, and what is uploaded there, is put in when the caller says so, and read here as if it
  /// were in. `place` is all of a buffer, and stays held back as long as that is allocated.
  [[nodiscard]] DelayedInput& hold_back(std::span<std::byte> place);
  /// The address as the process understands it (wire.hpp); throws Error(internal) for one that is not from here.
  [[nodiscard]] std::uintptr_t place(std::uintptr_t address) const;

 private:
  SharedPiece& share(std::size_t bytes);
  /// Null for memory that the process finds as it is here.
  [[nodiscard]] DelayedInput* held(const void* address);
  /// Unshares what nothing lies in any more.
  void shrink();
  void unmap(const SharedPiece& piece) noexcept;

  KernelProcess& process_;
  std::vector<SharedPiece> pieces_;
  std::map<void*, std::size_t> taken_;                             // bytes by address
  std::map<const std::byte*, DelayedInput, std::greater<>> held_;  // by where they begin
};

}  // namespace thresher::arena::user_kernels
