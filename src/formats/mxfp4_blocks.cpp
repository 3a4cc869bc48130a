// MXFP4 weights as gpt-oss keeps them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/mxfp4.hpp"
#include "formats/stacks.hpp"
#include "formats/weight_parts.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

LocatedTensor part(const Checkpoint& checkpoint, const std::string& name, std::size_t dimensions, const char* shape) {
  if (!checkpoint.has(name)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no tensor {}; it has {}", checkpoint.title(),
                                                         quoted_name(name), checkpoint.listing(name)));
  }
  const LocatedTensor found = checkpoint.find(name);
  if (found.tensor->dtype != Dtype::u8 || found.tensor->shape.size() != dimensions) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}, but must be U8 {}", described_with_type(found), shape));
  }
  return found;
}

}  // namespace

Stack load_mxfp4_blocks(const Checkpoint& checkpoint, std::string_view name) {
  const std::string base(name);
  const char* const sign = checkpoint.has(base + ".blocks") ? "." : "_";
  const LocatedTensor blocks =
      part(checkpoint, base + sign + "blocks", 4, "[experts, rows, K/32, 16], two e2m1 a byte");
  const LocatedTensor scales = part(checkpoint, base + sign + "scales", 3, "[experts, rows, K/32]");
  const std::vector<std::int64_t>& shape = blocks.tensor->shape;
  if (shape[3] != mxfp4_block_bytes) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}, but must have {} bytes in its last dimension, {} values",
                                                         described_with_type(blocks), mxfp4_block_bytes, mxfp4_block));
  }
  if (!std::equal(scales.tensor->shape.begin(), scales.tensor->shape.end(), shape.begin())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}, but must be U8 [{}, {}, {}] beside {}", described_with_type(scales), shape[0],
                            shape[1], shape[2], described(blocks)));
  }
  refuse_parts_beside(checkpoint, base, std::array{base + sign + "blocks", base + sign + "scales", base + "_bias"});
  Stack stack;
  stack.source_ = described(blocks);
  stack.shape_ = {shape[0], shape[1], size_product(shape[2], mxfp4_block)};
  stack.hold(hold_mxfp4(blocks.read(), scales.read(), static_cast<std::size_t>(shape[0]), described(scales)));
  return stack;
}

}  // namespace thresher::formats
