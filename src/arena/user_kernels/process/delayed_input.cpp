#include "arena/user_kernels/process/delayed_input.hpp"

#include <algorithm>
#include <cstring>

namespace thresher::arena::user_kernels {

DelayedInput::DelayedInput(std::span<std::byte> place) : place_(place), kept_(place.size()) {
  (void)take_back();
  std::fill(place_.begin(), place_.end(), std::byte{0});
}

std::span<std::byte> DelayedInput::take_back() {
  if (is_in_) {
    std::copy(place_.begin(), place_.end(), kept_.begin());
    is_in_ = false;
  }
  return kept_;
}

void DelayedInput::upload(std::size_t offset, std::span<const std::byte> from) {
  std::copy(from.begin(), from.end(), take_back().subspan(offset).begin());
}

void DelayedInput::fill(std::size_t offset, std::byte byte, std::size_t bytes) {
  const std::span<std::byte> part = take_back().subspan(offset, bytes);
  std::fill(part.begin(), part.end(), byte);
}

void DelayedInput::download(std::size_t offset, std::span<std::byte> to) const {
  const std::span<const std::byte> from = is_in_ ? std::span<const std::byte>(place_) : std::span(kept_);
  std::copy_n(from.subspan(offset).begin(), to.size(), to.begin());
}

void DelayedInput::put_in() {
  if (!is_in_) {
    std::memcpy(place_.data(), kept_.data(), kept_.size());
    is_in_ = true;
  }
}

}  // namespace thresher::arena::user_kernels
