#include "arena/rig/memory.hpp"

#include <gtest/gtest.h>

#include "arena/data/device_set.hpp"

namespace thresher::arena {
namespace {

TEST(GuardedBuffer, IsAlignedAndUndamaged) {
  HostMemory memory;
  for (const std::size_t bytes : {0U, 1U, 255U, 4096U}) {
    GuardedBuffer buffer(memory, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    buffer.fill(0x11);
    EXPECT_FALSE(buffer.damage().has_value());
  }
}

TEST(GuardedBuffer, OneByteBesideEitherEdgeIsSeen) {
  HostMemory memory;
  GuardedBuffer buffer(memory, 100);
  auto* bytes = static_cast<std::uint8_t*>(buffer.data());
  bytes[-1] ^= 1U;
  EXPECT_FALSE(buffer.damage()->after);
  EXPECT_EQ(buffer.damage()->distance, 1U);
  bytes[-1] ^= 1U;
  bytes[100] ^= 1U;
  EXPECT_EQ(describe(*buffer.damage(), "c"), "writes past the end of c: 1 bytes, the nearest 1 byte away");
  bytes[100] ^= 1U;
  bytes[100 + GuardedBuffer::zone_bytes(100) - 1] ^= 1U;
  EXPECT_EQ(buffer.damage()->distance, GuardedBuffer::zone_bytes(100));
}

TEST(GuardedBuffer, ZonesAreAsLongAsWhatTheyGuardWithinBounds) {
  HostMemory memory;
  for (const auto& [bytes, zone] : {std::pair<std::size_t, std::size_t>{0, 8 << 10},
                                    {100, 8 << 10},
                                    {(20 << 10) + 1, (20 << 10) + 256},
                                    {1 << 20, 64 << 10}}) {
    EXPECT_EQ(GuardedBuffer::zone_bytes(bytes), zone);
    const GuardedBuffer buffer(memory, bytes);
    auto* const data = static_cast<std::uint8_t*>(buffer.data());
    for (std::uint8_t* const edge : {data - zone, data + bytes + zone - 1}) {
      *edge ^= 1U;
      EXPECT_EQ(buffer.damage()->distance, zone) << bytes;
      *edge ^= 1U;
    }
    EXPECT_FALSE(buffer.damage().has_value());
  }
}

TEST(HostMemory, SaysWhatIsAvailable) {
  HostMemory memory;
  EXPECT_GT(memory.available_bytes(), std::size_t{1} << 20);
  EXPECT_LT(memory.available_bytes(), std::size_t{1} << 50);
}

}  // namespace
}  // namespace thresher::arena
