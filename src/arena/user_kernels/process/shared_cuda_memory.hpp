#pragma once
/// Memory of a GPU that this process and a kernel's share. What lies in it this process writes and reads in its own
/// context, so that the kernel's is asked for none of it; and inputs are held back from the process until the batch
/// that reads them, in memory that it does not share.
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

  /// From now on what is written there is put in when the caller says so, and read here as if it were in. `place` is
  /// all of a buffer, and stays held back as long as that is allocated.
  void hold_back(std::span<std::byte> place);
  /// Puts in what is held back of these places, if it is, and comes back when it is there.
  void put_in(std::span<const std::span<std::byte>> places);
  /// The address as the process understands it (wire.hpp); throws Error(internal) for one that is not from here.
  [[nodiscard]] std::uintptr_t place(std::uintptr_t address) const;

 private:
  struct Shared {
    runtime::ExportedMemory memory;
    SharedPiece piece;
  };
  /// What is written to a place, in memory of this process alone while it is not in.
  struct Held {
    std::span<std::byte> place;
    runtime::DeviceBuffer kept;
    bool is_in = false;
  };

  Shared& share(std::size_t bytes);
  /// Unshares what nothing lies in any more.
  void shrink();
  /// Null for memory that the process finds as it is here.
  [[nodiscard]] Held* held(const void* address);
  /// Where to write what is meant for `to`.
  [[nodiscard]] void* writable(void* to);
  [[nodiscard]] const void* readable(const void* from);

  KernelProcess& process_;
  int ordinal_;
  std::list<Shared> shared_;
  std::map<void*, std::size_t> taken_;                     // bytes by address
  std::map<const std::byte*, Held, std::greater<>> held_;  // by where they begin
};

}  // namespace thresher::arena::user_kernels
