#pragma once
/// Memory of this process that a kernel's process sees too. Only allocated memory is ever shared, so a kernel that
/// overwrites it all damages only its own. Its content is as untrusted as the kernel, and is copied before it is
/// checked.
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "arena/rig/memory.hpp"
#include "arena/user_kernels/process/delayed_input.hpp"
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

  /// From now on the content of `place`, and uploads to it, are delayed until put_in; reads here see them at once.
  /// `place` is a whole buffer, and stays delayed as long as it is allocated.
  [[nodiscard]] DelayedInput& delay_input(std::span<std::byte> place);
  /// The process's form of the address (wire.hpp); throws Error(internal) for an address of other memory.
  [[nodiscard]] std::uintptr_t place(std::uintptr_t address) const;

 private:
  SharedPiece& share(std::size_t bytes);
  /// Null for memory without delayed input.
  [[nodiscard]] DelayedInput* held(const void* address);
  /// Stops sharing pieces without allocations.
  void shrink();
  void unmap(const SharedPiece& piece) noexcept;

  KernelProcess& process_;
  std::vector<SharedPiece> pieces_;
  std::map<void*, std::size_t> taken_;                             // bytes by address
  std::map<const std::byte*, DelayedInput, std::greater<>> held_;  // by start address
};

}  // namespace thresher::arena::user_kernels
