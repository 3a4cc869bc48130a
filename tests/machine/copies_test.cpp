#include "machine/kernels/copies.hpp"

#include <algorithm>
#include <numeric>

#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

struct BoxCase {
  const char* name;
  ElementType element;
  Swizzle swizzle;
  std::vector<u64> extent;
  std::vector<u32> box;
  std::vector<i32> at;
  u64 padding_bytes = 0;  // between rows of dimension 1
};

class Copies : public Primitive {
 protected:
  TensorMapDescription describe(const BoxCase& c) {
    TensorMapDescription d;
    d.element = c.element;
    d.swizzle = c.swizzle;
    d.rank = static_cast<u32>(c.extent.size());
    u64 stride = c.extent[0] * element_bytes(c.element) + c.padding_bytes;
    for (u32 i = 0; i < d.rank; ++i) {
      d.extent[i] = c.extent[i];
      d.box[i] = c.box[i];
      if (i > 0) {
        d.stride_bytes[i] = stride;
        stride *= c.extent[i];
      }
    }
    bytes_ = d.rank == 1 ? c.extent[0] * element_bytes(c.element) : stride;
    return d;
  }

  /// Byte offset in the tensor of byte `b` of the box's row-major image, or −1 outside.
  static i64 place_in_tensor(const TensorMapDescription& d, const std::vector<i32>& at, u32 b) {
    const u32 element = element_bytes(d.element);
    i64 place = at[0] + static_cast<i64>(b / element % d.box[0]);
    if (place < 0 || place >= static_cast<i64>(d.extent[0])) {
      return -1;
    }
    i64 offset = place * element + b % element;
    u32 rest = b / element / d.box[0];
    for (u32 i = 1; i < d.rank; ++i) {
      place = at[i] + static_cast<i64>(rest % d.box[i]);
      rest /= d.box[i];
      if (place < 0 || place >= static_cast<i64>(d.extent[i])) {
        return -1;
      }
      offset += place * static_cast<i64>(d.stride_bytes[i]);
    }
    return offset;
  }

  template <int rank>
  void moves(const KernelRef& kernel, const BoxCase& c) {
    SCOPED_TRACE(c.name);
    TensorMapDescription d = describe(c);
    std::vector<u8> values(bytes_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<u8>(i * 37 % 251 + 1);
    }
    u32 box_bytes = element_bytes(c.element);
    for (const u32 extent : c.box) {
      box_bytes *= extent;
    }
    const std::string tag = c.name;
    const auto in = input("in " + tag, values);
    auto image = output<u8>("image " + tag, box_bytes);
    auto out = input_output("out " + tag, std::vector<u8>(bytes_, 0xEE));
    BoxParams params{};
    d.address = in.address;
    params.in = rig().encode(d);
    d.address = out.address;
    params.out = rig().encode(d);
    params.image = {image.address};
    params.bytes = box_bytes;
    std::vector<i32> to = c.at;  // a store must not begin before the tensor; a box begins at a multiple of 16 bytes
    std::replace_if(to.begin(), to.end(), [](i32 coordinate) { return coordinate < 0; }, 1);
    const auto chunk = static_cast<i32>(16 / element_bytes(c.element));
    to[0] = (to[0] + chunk - 1) / chunk * chunk;
    std::copy(c.at.begin(), c.at.end(), params.at);
    std::copy(to.begin(), to.end(), params.to);
    launch(blocks_of(64, box_bytes + 16), kernel, params);
    fetch(image);
    fetch(out);
    std::vector<u8> expected_out(bytes_, 0xEE);
    const u32 mask = (1U << static_cast<u32>(c.swizzle)) - 1U;
    for (u32 b = 0; b < box_bytes; ++b) {
      const i64 from = place_in_tensor(d, c.at, b);
      const u32 place = b ^ ((b >> 7 & mask) << 4);
      const u8 value = from < 0 ? u8{0} : values[static_cast<std::size_t>(from)];
      ASSERT_EQ(image.host[place], value) << "byte " << b;
      if (const i64 stored = place_in_tensor(d, to, b); stored >= 0) {
        expected_out[static_cast<std::size_t>(stored)] = value;
      }
    }
    EXPECT_EQ(out.host, expected_out);
  }

 private:
  u64 bytes_ = 0;
};

TEST_F(Copies, MoveBoxesOfOneDimension) {
  moves<1>(RIG_KERNEL("copies.hpp", boxes<1>), {"inside", ElementType::uint8, Swizzle::none, {512}, {256}, {32}});
  moves<1>(RIG_KERNEL("copies.hpp", boxes<1>), {"both edges", ElementType::fp32, Swizzle::none, {20}, {64}, {-8}});
}

TEST_F(Copies, MoveSwizzledBoxes) {
  const auto kernel = RIG_KERNEL("copies.hpp", boxes<2>);
  moves<2>(kernel, {"none", ElementType::fp16, Swizzle::none, {40, 19}, {24, 5}, {8, 3}});
  moves<2>(kernel, {"32 bytes", ElementType::fp16, Swizzle::b32, {40, 19}, {16, 11}, {16, 3}});
  moves<2>(kernel, {"64 bytes", ElementType::fp32, Swizzle::b64, {36, 33}, {16, 17}, {4, 9}});
  moves<2>(kernel, {"128 bytes", ElementType::bf16, Swizzle::b128, {200, 70}, {64, 64}, {64, 3}, 16});
  moves<2>(kernel, {"right and lower edge", ElementType::bf16, Swizzle::b128, {72, 70}, {64, 64}, {64, 41}});
  moves<2>(kernel, {"left and upper edge", ElementType::uint8, Swizzle::b128, {208, 30}, {128, 40}, {-16, -9}});
  moves<2>(kernel, {"outside", ElementType::uint8, Swizzle::b64, {64, 8}, {64, 8}, {0, 8}});
  moves<2>(kernel, {"256 rows", ElementType::uint32, Swizzle::b32, {8, 300}, {8, 256}, {0, 44}});
}

TEST_F(Copies, MoveBoxesOfMoreDimensions) {
  moves<3>(RIG_KERNEL("copies.hpp", boxes<3>),
           {"three", ElementType::fp16, Swizzle::b128, {64, 9, 5}, {64, 4, 3}, {0, 7, -1}});
  moves<4>(RIG_KERNEL("copies.hpp", boxes<4>),
           {"four", ElementType::uint16, Swizzle::none, {16, 3, 4, 5}, {8, 2, 2, 3}, {8, 2, 1, 3}, 16});
  moves<5>(RIG_KERNEL("copies.hpp", boxes<5>),
           {"five", ElementType::fp32, Swizzle::b32, {16, 3, 2, 3, 2}, {8, 2, 2, 2, 1}, {4, -1, 1, 2, 1}});
}

TEST_F(Copies, BulkThroughTwoBarriers) {
  constexpr u32 bytes = 208;
  constexpr u32 pieces = 7;
  std::vector<u8> values(bytes * pieces);
  std::iota(values.begin(), values.end(), static_cast<u8>(9));
  const auto in = input("in", values);
  auto out = output<u8>("out", values.size());
  launch(blocks_of(32, 2 * bytes + 16), RIG_KERNEL("copies.hpp", bulk),
         BulkParams{{in.address}, {out.address}, bytes, pieces});
  fetch(out);
  EXPECT_EQ(out.host, values);
}

TEST_F(Copies, BarriersCountArrivals) {
  constexpr u32 rounds = 8;
  auto out = output<u32>("out", 96);
  launch(blocks_of(96, 16), RIG_KERNEL("copies.hpp", counts), CountParams{{out.address}, rounds});
  fetch(out);
  u32 word = 0;
  u32 seen = 0;
  for (u32 round = 0; round < rounds; ++round) {
    word += round;
    seen = seen * 3 + word;
  }
  EXPECT_EQ(out.host, std::vector<u32>(96, seen));
}

TEST_F(Copies, SmallAsynchronousCopies) {
  std::vector<u32> values(512);
  std::iota(values.begin(), values.end(), 1000U);
  for (const u32 valid : {128U, 77U, 0U}) {
    const auto in = input("in " + std::to_string(valid), values);
    auto wide = output<u32>("wide " + std::to_string(valid), 512);
    auto narrow = output<u32>("narrow " + std::to_string(valid), 512);
    launch(blocks_of(128, 128 * 16 + 16), RIG_KERNEL("copies.hpp", small_copies<16>),
           SmallCopyParams{{in.address}, {wide.address}, valid});
    launch(blocks_of(128, 128 * 16 + 16), RIG_KERNEL("copies.hpp", small_copies<4>),
           SmallCopyParams{{in.address}, {narrow.address}, valid});
    fetch(narrow);
    std::vector<u32> expected = values;
    std::fill(expected.begin() + valid * 4, expected.end(), 0U);
    EXPECT_EQ(narrow.host, expected) << valid;
  }
}

}  // namespace
}  // namespace thresher::machine::test
