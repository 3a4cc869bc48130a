// Inputs come to lie where a kernel's process finds them when they are put in, and are read here as if they lay there.
#include "arena/user_kernels/process/delayed_input.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace thresher::arena::user_kernels {
namespace {

constexpr std::byte old{1}, fresh{2};

struct Place {
  Place() { bytes.fill(old); }
  [[nodiscard]] bool is_all(std::byte value) const {
    return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == value; });
  }
  std::array<std::byte, 16> bytes{};
};

std::vector<std::byte> read(const DelayedInput& back) {
  std::vector<std::byte> bytes(back.place().size());
  back.download(0, bytes);
  return bytes;
}

TEST(DelayedInput, TakesAwayWhatLiesThere) {
  Place place;
  DelayedInput back(place.bytes);
  EXPECT_TRUE(place.is_all(std::byte{0}));
  EXPECT_EQ(read(back), std::vector(16, old));
  back.put_in();
  EXPECT_TRUE(place.is_all(old));
}

TEST(DelayedInput, WhatIsUploadedIsNotThereBeforeItIsPutIn) {
  Place place;
  DelayedInput back(place.bytes);
  back.put_in();
  back.upload(0, std::vector(16, fresh));
  EXPECT_TRUE(place.is_all(old));
  EXPECT_EQ(read(back), std::vector(16, fresh));
  back.put_in();
  EXPECT_TRUE(place.is_all(fresh));
}

TEST(DelayedInput, APartIsExchangedAmongWhatLiesThere) {
  Place place;
  DelayedInput back(place.bytes);
  back.put_in();
  back.upload(4, std::vector(2, fresh));
  back.fill(8, fresh, 1);
  back.put_in();
  std::array<std::byte, 16> expected{};
  expected.fill(old);
  expected[4] = expected[5] = expected[8] = fresh;
  EXPECT_EQ(place.bytes, expected);
}

// Else nobody would see that a kernel writes to its inputs.
TEST(DelayedInput, WhatBecomesOfItOnceItIsInIsRead) {
  Place place;
  DelayedInput back(place.bytes);
  back.put_in();
  place.bytes[3] = fresh;
  EXPECT_EQ(read(back)[3], fresh);
  back.put_in();  // it is in
  EXPECT_EQ(place.bytes[3], fresh);
}

}  // namespace
}  // namespace thresher::arena::user_kernels
