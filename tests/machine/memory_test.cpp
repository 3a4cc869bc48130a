#include "machine/kernels/memory.hpp"

#include <numeric>

#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

class Memory : public Primitive {
 protected:
  template <typename Word>
  void copies(const KernelRef& kernel, u32 count) {
    std::vector<u8> bytes(count * sizeof(Word));
    std::iota(bytes.begin(), bytes.end(), static_cast<u8>(3));
    const auto in = input("in", bytes);
    auto out = output<u8>("out", bytes.size());
    launch(blocks_of(96, static_cast<u32>(bytes.size())), kernel, CopyParams{{in.address}, {out.address}, count});
    fetch(out);
    EXPECT_EQ(out.host, in.host);
  }
};

TEST_F(Memory, CopiesBytes) { copies<u8>(RIG_KERNEL("memory.hpp", copy_words<u8>), 101); }
TEST_F(Memory, CopiesHalfWords) { copies<u16>(RIG_KERNEL("memory.hpp", copy_words<u16>), 101); }
TEST_F(Memory, CopiesWords) { copies<float>(RIG_KERNEL("memory.hpp", copy_words<float>), 97); }
TEST_F(Memory, CopiesPairs) { copies<Vector<u32, 2>>(RIG_KERNEL("memory.hpp", copy_words<Vector<u32, 2>>), 193); }
TEST_F(Memory, CopiesQuads) { copies<Vector<u32, 4>>(RIG_KERNEL("memory.hpp", copy_words<Vector<u32, 4>>), 55); }
TEST_F(Memory, CopiesVectorsOfHalves) {
  copies<Vector<u16, 8>>(RIG_KERNEL("memory.hpp", copy_words<Vector<u16, 8>>), 31);
}

TEST_F(Memory, AtomicsAddUpWhateverTheOrder) {
  // The third word never matches: which thread would win differs from run to run.
  auto words = input_output<u32>("words", {5, 0, 8, 0});
  auto longs = input_output<u64>("longs", {1, 0});
  auto floats = input_output<float>("floats", {2.0F, 0.0F});
  auto out = input_output<u32>("out", {0, 0});
  launch(blocks_of(70, 16, 3), RIG_KERNEL("memory.hpp", atomics),
         AtomicParams{{words.address}, {longs.address}, {floats.address}, {out.address}});
  fetch(words);
  fetch(longs);
  fetch(floats);
  fetch(out);
  EXPECT_EQ(words.host, (std::vector<u32>{5 + 210, 3 * 2415, 8, 0}));
  EXPECT_EQ(longs.host, (std::vector<u64>{1 + 210 * 0x100000001ULL, 630}));
  EXPECT_EQ(floats.host, (std::vector<float>{212.0F, 52.5F}));
  EXPECT_EQ(out.host, (std::vector<u32>{3 * 2415, 105}));
}

TEST_F(Memory, CompareExchangeLetsOneWin) {
  auto words = input_output<u32>("words", {0, 0, 7, 0});
  auto longs = input_output<u64>("longs", {0, 0});
  auto floats = input_output<float>("floats", {0.0F, 0.0F});
  auto out = input_output<u32>("out", {0, 0});
  launch(blocks_of(1, 16), RIG_KERNEL("memory.hpp", atomics),
         AtomicParams{{words.address}, {longs.address}, {floats.address}, {out.address}});
  fetch(words);
  EXPECT_EQ(words.host, (std::vector<u32>{1, 0, 100, 1}));
}

TEST_F(Memory, LastBlockSeesWhatAllReleased) {
  constexpr u32 blocks = 12;
  auto data = output<u32>("data", blocks * 32);
  auto arrived = input_output<u32>("arrived", {0});
  auto sum = output<u32>("sum", 1);
  LaunchShape shape = blocks_of(32);
  shape.grid = {4, 3, 1};
  launch(shape, RIG_KERNEL("memory.hpp", last_block), HandParams{{data.address}, {arrived.address}, {sum.address}});
  fetch(sum);
  EXPECT_EQ(sum.host[0], 32 * 1000 * (blocks * (blocks - 1) / 2) + blocks * 496);
}

TEST_F(Memory, ReleaseAndAcquireHandOver) {
  auto flag = input_output<u32>("flag", {0});
  auto data = output<u32>("data", 1);
  auto out = output<u32>("out", 1);
  launch(blocks_of(64), RIG_KERNEL("memory.hpp", release_acquire),
         FlagParams{{flag.address}, {data.address}, {out.address}});
  fetch(out);
  EXPECT_EQ(out.host[0], 4711U);
}

TEST_F(Memory, ThreadsKnowTheirPlace) {
  LaunchShape shape = blocks_of(96, 64);
  shape.grid = {3, 2, 2};
  auto out = output<u32>("out", std::size_t{12} * 96 * 4);
  launch(shape, RIG_KERNEL("memory.hpp", places), PlaceParams{{out.address}});
  fetch(out);
  for (u32 block = 0; block < 12; ++block) {
    for (u32 thread = 0; thread < 96; ++thread) {
      const u32* mine = &out.host[(block * 96 + thread) * 4];
      ASSERT_EQ(mine[0], block % 3 | block / 3 % 2 << 8 | block / 6 << 16);
      ASSERT_EQ(mine[1], thread | thread % 32 << 8 | thread / 32 << 16);
      ASSERT_EQ(mine[2], 64U);
      ASSERT_EQ(mine[3], 1U);
    }
  }
}

}  // namespace
}  // namespace thresher::machine::test
