#include "arena/user_kernels/process/shared_piece.hpp"

#include <iterator>

#include "arena/user_kernels/line/wire.hpp"

namespace thresher::arena::user_kernels {

void* SharedPiece::take(std::size_t wanted) {
  for (const auto& [offset, count] : free_) {
    if (count >= wanted) {
      const std::size_t begin = offset;
      const std::size_t rest = count - wanted;
      free_.erase(begin);
      if (rest > 0) {
        free_.emplace(begin + wanted, rest);
      }
      return base_ + begin;
    }
  }
  return nullptr;
}

void SharedPiece::give_back(void* address, std::size_t count) {
  auto here = free_.emplace(static_cast<std::size_t>(static_cast<std::byte*>(address) - base_), count).first;
  if (const auto next = std::next(here); next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here != free_.begin()) {
    if (const auto before = std::prev(here); before->first + before->second == here->first) {
      before->second += here->second;
      free_.erase(here);
    }
  }
}

std::uintptr_t SharedPiece::place(std::uintptr_t address) const {
  return place_of(number_, address - reinterpret_cast<std::uintptr_t>(base_));
}

}  // namespace thresher::arena::user_kernels
