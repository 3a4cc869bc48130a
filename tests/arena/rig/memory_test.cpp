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
  bytes[100 + GuardedBuffer::zone_bytes - 1] ^= 1U;
  EXPECT_EQ(buffer.damage()->distance, GuardedBuffer::zone_bytes);
}

TEST(HostMemory, SaysWhatIsAvailable) {
  HostMemory memory;
  EXPECT_GT(memory.available_bytes(), std::size_t{1} << 20);
  EXPECT_LT(memory.available_bytes(), std::size_t{1} << 50);
}

}  // namespace
}  // namespace thresher::arena
