#pragma once
/// A piece of memory that a judge shares with a kernel's process at once, with its free ranges.
#include <cstddef>
#include <cstdint>
#include <map>

namespace thresher::arena::user_kernels {

class SharedPiece {
 public:
  /// The piece is `bytes` at `base`, and the process knows it by `number`.
  SharedPiece(std::uint32_t number, void* base, std::size_t bytes)
      : number_(number), base_(static_cast<std::byte*>(base)), bytes_(bytes), free_{{0, bytes}} {}

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_free() const { return free_.size() == 1 && free_.begin()->second == bytes_; }
  [[nodiscard]] bool holds(const void* address) const { return address >= base_ && address < base_ + bytes_; }
  /// Null where there is no room.
  [[nodiscard]] void* take(std::size_t wanted);
  void give_back(void* address, std::size_t count);
  /// The process's form of the address (wire.hpp), which lies in this piece.
  [[nodiscard]] std::uintptr_t place(std::uintptr_t address) const;

  /// The alignment of allocations, and the unit of their size.
  static constexpr std::size_t alignment = 256;
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes == 0 ? 1 : (bytes + alignment - 1) / alignment) * alignment;
  }

 private:
  std::uint32_t number_;
  std::byte* base_;
  std::size_t bytes_;
  std::map<std::size_t, std::size_t> free_;  // bytes by their offset
};

}  // namespace thresher::arena::user_kernels
