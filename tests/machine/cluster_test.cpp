#include "machine/kernels/cluster.hpp"

#include <numeric>

#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

class Clusters : public Primitive {};

TEST_F(Clusters, ReachEachOther) {
  std::vector<u32> values(64);
  std::iota(values.begin(), values.end(), 50000U);
  const auto in = input("in", values);
  auto out = output<u32>("out", std::size_t{8} * 64 * 5);
  TensorMapDescription d;
  d.address = in.address;
  d.element = ElementType::uint32;
  d.rank = 2;
  d.extent[0] = 16;
  d.extent[1] = 4;
  d.stride_bytes[1] = 64;
  d.box[0] = 16;
  d.box[1] = 4;
  launch(blocks_of(64, 4096, 8, 4), RIG_KERNEL("cluster.hpp", neighbours),
         ClusterParams{{in.address}, rig().encode(d), {out.address}});
  fetch(out);
  for (u32 block = 0; block < 8; ++block) {
    const u32 rank = block % 4;
    const u32 previous = (rank + 3) % 4;
    const u32 next = (rank + 1) % 4;
    for (u32 thread = 0; thread < 64; ++thread) {
      const u32* mine = &out.host[(block * 64 + thread) * 5];
      // Box r starts a row above row r; word 4·thread of all boxes is in box thread/16.
      const u32 box = thread / 16;
      const u32 word = thread % 16 * 4;
      const i32 row = static_cast<i32>(box) - 1 + static_cast<i32>(word / 16);
      const u32 boxed = row >= 0 && row < 4 ? values[static_cast<u32>(row) * 16 + word % 16] : 0;
      ASSERT_EQ(mine[0], previous * 100 + thread);
      ASSERT_EQ(mine[1], (previous * 100 + thread) * 100 + thread);
      ASSERT_EQ(mine[2], boxed) << thread;
      ASSERT_EQ(mine[3], values[thread % 32 / 16 * 32 + thread % 16]);
      ASSERT_EQ(mine[4], next * 1000 + thread + rank * 16 + 4);
    }
  }
}

TEST_F(Clusters, WaitForEarlierGridsReturnsInAnOrdinaryLaunch) {
  auto out = output<u32>("out", 32);
  launch(blocks_of(32), RIG_KERNEL("cluster.hpp", dependent), WaveParams{{out.address}});
  fetch(out);
  EXPECT_EQ(out.host[31], 32U);
}

}  // namespace
}  // namespace thresher::machine::test
