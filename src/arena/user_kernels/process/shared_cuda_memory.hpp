#pragma once
/// GPU memory that this process and a kernel's process share. This process writes and reads it in its own context,
/// without help from the kernel's. Inputs can be delayed until the batch that reads them, in memory that is not shared.
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <span>

#include "arena/rig/memory.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"
#include "arena/user_kernels/process/shared_piece.hpp"
#include "runtime/exported_memory.hpp"
#include "runtime/memory.hpp"

namespace thresher::arena::user_kernels {

class SharedCudaMemory final : public Memory {
 public:
  SharedCudaMemory(KernelProcess& process, int ordinal) : process_(process), ordinal_(ordinal) {}

  [[nodiscard]] DeviceId device() const override { return {DeviceKind::cuda, ordinal_}; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  [[nodiscard]] std::size_t available_bytes() override;

  /// From now on writes to `place` are delayed until put_in; reads here see them at once. `place` is a whole buffer,
  /// and stays delayed as long as it is allocated.
  void delay_input(std::span<std::byte> place);
  /// Puts in the delayed input of these places, and waits until it is there.
  void put_in(std::span<const std::span<std::byte>> places);
  /// The process's form of the address (wire.hpp); throws Error(internal) for an address of other memory.
  [[nodiscard]] std::uintptr_t place(std::uintptr_t address) const;

 private:
  struct Shared {
    runtime::ExportedMemory memory;
    SharedPiece piece;
  };
  /// The delayed writes to a place, in memory of this process alone until they are put in.
  struct Held {
    std::span<std::byte> place;
    runtime::DeviceBuffer kept;
    bool is_in = false;
  };

  Shared& share(std::size_t bytes);
  /// Stops sharing pieces without allocations.
  void shrink();
  /// Null for memory without delayed input.
  [[nodiscard]] Held* held(const void* address);
  /// Where writes to `to` must go.
  [[nodiscard]] void* writable(void* to);
  [[nodiscard]] const void* readable(const void* from);

  KernelProcess& process_;
  int ordinal_;
  std::list<Shared> shared_;
  std::map<void*, std::size_t> taken_;                     // bytes by address
  std::map<const std::byte*, Held, std::greater<>> held_;  // by start address
};

}  // namespace thresher::arena::user_kernels
