#include "ops/byte_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace thresher::ops {
namespace {

std::pair<std::uint64_t, std::uint64_t> sums_of(const std::vector<std::byte>& bytes) {
  const WordSums sums = byte_sums(bytes);
  return {sums.first, sums.second};
}

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * i + i / 7);
  }
  return bytes;
}

TEST(ByteSums, EachChangedByteChangesBoth) {
  const std::vector<std::byte> bytes = some_bytes(45);  // the last word is not whole
  const auto [first, second] = sums_of(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{0x10};
    EXPECT_NE(sums_of(damaged).first, first) << i;
    EXPECT_NE(sums_of(damaged).second, second) << i;
  }
}

TEST(ByteSums, WordsThatChangedPlacesChangeBoth) {
  const std::vector<std::byte> bytes = some_bytes(64);
  const auto [first, second] = sums_of(bytes);
  for (std::size_t word = 1; word < 8; ++word) {
    std::vector<std::byte> swapped = bytes;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + static_cast<std::ptrdiff_t>(8 * word));
    EXPECT_NE(sums_of(swapped).first, first) << word;
    EXPECT_NE(sums_of(swapped).second, second) << word;
  }
}

/// What files hold: a change would make those of users unreadable.
TEST(ByteSums, AreWhatTheyWere) {
  EXPECT_EQ(sums_of({}), (std::pair<std::uint64_t, std::uint64_t>{0, 0}));
  EXPECT_EQ(sums_of(some_bytes(45)),
            (std::pair<std::uint64_t, std::uint64_t>{3280853001484941853U, 3379988146661469514U}));
}

}  // namespace
}  // namespace thresher::ops
