// Descriptions that differ in anything have maps of their own.
#include "ops/tensor_map_memo.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <vector>

namespace thresher::ops {
namespace {

using machine::TensorMap;
using machine::TensorMapDescription;

TensorMapDescription a_description() {
  return {.address = 4096,
          .element = machine::ElementType::bf16,
          .rank = 3,
          .extent = {64, 32, 16},
          .stride_bytes = {2, 128, 4096},
          .box = {64, 8, 1}};
}

class Encoder {
 public:
  /// A map that no other call gives.
  TensorMap encode() { return TensorMap{{++count_}}; }
  [[nodiscard]] machine::u64 count() const { return count_; }

 private:
  machine::u64 count_ = 0;
};

TEST(TensorMapMemo, KnowsWhatItWasAskedForBefore) {
  TensorMapMemo memo;
  Encoder encoder;
  const auto get = [&](const TensorMapDescription& description) {
    return memo.get(description, [&] { return encoder.encode(); }).opaque[0];
  };
  EXPECT_EQ(get(a_description()), 1U);
  EXPECT_EQ(get(a_description()), 1U);
  TensorMapDescription elsewhere = a_description();
  elsewhere.address += 512;
  EXPECT_EQ(get(elsewhere), 2U);
  EXPECT_EQ(get(a_description()), 1U);
  EXPECT_EQ(encoder.count(), 2U);
}

/// Some share a place, but not all do.
TEST(TensorMapMemo, KnowsMostOfFewAddressesWhateverLiesBetweenThem) {
  for (const unsigned shift : {4U, 9U, 16U, 21U, 26U, 30U}) {
    TensorMapMemo memo;
    Encoder encoder;
    for (int round = 0; round < 2; ++round) {
      for (machine::u64 index = 1; index <= 8; ++index) {
        TensorMapDescription one = a_description();
        one.address = index << shift;
        (void)memo.get(one, [&] { return encoder.encode(); });
      }
    }
    EXPECT_LE(encoder.count(), 10U) << "addresses " << (1U << shift) << " bytes apart";
  }
}

TEST(TensorMapMemo, TellsApartWhateverDiffers) {
  const std::vector<std::function<void(TensorMapDescription&)>> changes{
      [](auto& one) { one.address += std::uint64_t{1} << 40U; },
      [](auto& one) { one.element = machine::ElementType::fp16; },
      [](auto& one) { one.swizzle = machine::Swizzle::b128; },
      [](auto& one) { one.promotion = machine::Promotion::b128; },
      [](auto& one) { one.rank = 2; },
      [](auto& one) { one.extent[2] = 8; },
      [](auto& one) { one.stride_bytes[2] = 8192; },
      [](auto& one) { one.box[2] = 2; },
  };
  for (std::size_t index = 0; index < changes.size(); ++index) {
    TensorMapMemo memo;
    Encoder encoder;
    const auto encode = [&] { return encoder.encode(); };
    TensorMapDescription changed = a_description();
    changes[index](changed);
    EXPECT_EQ(memo.get(a_description(), encode).opaque[0], 1U);
    EXPECT_EQ(memo.get(changed, encode).opaque[0], 2U) << "change " << index;
  }
}

TEST(TensorMapMemo, KeepsNothingOfAFailure) {
  TensorMapMemo memo;
  Encoder encoder;
  EXPECT_THROW((void)memo.get(a_description(), []() -> TensorMap { throw std::runtime_error("no map"); }),
               std::runtime_error);
  EXPECT_EQ(memo.get(a_description(), [&] { return encoder.encode(); }).opaque[0], 1U);
}

}  // namespace
}  // namespace thresher::ops
