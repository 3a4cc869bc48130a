#include "arena/user_kernels/process/held_back.hpp"

#include <algorithm>
#include <cstring>

namespace thresher::arena::user_kernels {

HeldBack::HeldBack(std::span<std::byte> place) : place_(place), kept_(place.size()) {
  (void)take_back();
  std::fill(place_.begin(), place_.end(), std::byte{0});
}

std::span<std::byte> HeldBack::take_back() {
  if (is_in_) {
    std::copy(place_.begin(), place_.end(), kept_.begin());
    is_in_ = false;
  }
  return kept_;
}

void HeldBack::upload(std::size_t offset, std::span<const std::byte> from) {
  std::copy(from.begin(), from.end(), take_back().subspan(offset).begin());
}

void HeldBack::fill(std::size_t offset, std::byte byte, std::size_t bytes) {
  const std::span<std::byte> part = take_back().subspan(offset, bytes);
  std::fill(part.begin(), part.end(), byte);
}

void HeldBack::download(std::size_t offset, std::span<std::byte> to) const {
  const std::span<const std::byte> from = is_in_ ? std::span<const std::byte>(place_) : std::span(kept_);
  std::copy_n(from.subspan(offset).begin(), to.size(), to.begin());
}

void HeldBack::put_in() {
  if (!is_in_) {
    std::memcpy(place_.data(), kept_.data(), kept_.size());
    is_in_ = true;
  }
}

}  // namespace thresher::arena::user_kernels
