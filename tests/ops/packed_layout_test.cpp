// Packed weights of a layout that no strategy makes any more; there need be no GPU.
#include <gtest/gtest.h>

#include "ops/packed_product.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

ops::PackedContent nvfp4_content(const char* layout) {
  ops::PackedContent content;
  content.layout = layout;
  content.format = Format::nvfp4;
  content.n = 32;
  content.k = 64;
  content.has_b2 = true;
  return content;
}

std::string refusal(const char* layout) {
  try {
    (void)ops::restore_product(Device::cuda(0), nvfp4_content(layout));
    return "taken";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PackedLayout, AnOldOneIsRefusedByName) {
  EXPECT_EQ(refusal("nvfp4-exact-sm90-1"),
            "they were packed in the layout nvfp4-exact-sm90-1, which this Thresher does not read on " +
                Device::cuda(0).name() + ": pack them again");
  EXPECT_EQ(refusal("nvfp4-exact-sm90-2"), "they take 0 bytes, expected 9216 for [32, 64]");
}

}  // namespace
}  // namespace thresher
