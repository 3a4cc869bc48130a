#include "machine/emulator/engine/tensor_map.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "thresher/error.hpp"

namespace thresher::emulator {
namespace {

using machine::TensorMap;
using machine::TensorMapDescription;

static_assert(sizeof(TensorMapDescription) <= sizeof(TensorMap) - 8);

constexpr std::uint64_t seal = 0x7468726573686572ULL;

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::invalid_argument, "Tensor map: " + what); }

}  // namespace

TensorMap encode_tensor_map(const TensorMapDescription& description) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  const std::uint32_t element = machine::element_bytes(description.element);
  if (description.rank < 1 || description.rank > 5) {
    refuse("rank " + number(description.rank) + " is not in 1…5");
  }
  if (description.address % 16 != 0) {
    refuse("address " + number(description.address) + " is not a multiple of 16");
  }
  for (std::uint32_t d = 0; d < description.rank; ++d) {
    if (description.extent[d] == 0 || description.extent[d] > 1ULL << 32) {
      refuse("extent[" + number(d) + "] = " + number(description.extent[d]) + " is not in 1…2^32");
    }
    if (description.box[d] == 0 || description.box[d] > 256) {
      refuse("box[" + number(d) + "] = " + number(description.box[d]) + " is not in 1…256");
    }
    if (d > 0 && (description.stride_bytes[d] % 16 != 0 || description.stride_bytes[d] >= 1ULL << 40)) {
      refuse("stride_bytes[" + number(d) + "] = " + number(description.stride_bytes[d]) +
             " is not a multiple of 16 below 2^40");
    }
  }
  const std::uint32_t row = description.box[0] * element;
  if (row % 16 != 0) {
    refuse("a box row of " + number(row) + " bytes is not a multiple of 16");
  }
  if (description.swizzle != machine::Swizzle::none && row != swizzle_span_bytes(description.swizzle)) {
    refuse("a box row of " + number(row) + " bytes does not fill the swizzle's span of " +
           number(swizzle_span_bytes(description.swizzle)));
  }
  TensorMap map{};
  std::memcpy(map.opaque, &description, sizeof description);
  map.opaque[15] = seal;
  return map;
}

bool decode_tensor_map(const TensorMap& map, TensorMapDescription& description) {
  std::memcpy(&description, map.opaque, sizeof description);
  return map.opaque[15] == seal;
}

Box::Box(const TensorMapDescription& map, const std::int32_t* at)
    : map_(map), row_bytes_(map.box[0] * machine::element_bytes(map.element)) {
  for (std::uint32_t d = 0; d < map.rank; ++d) {
    at_[d] = at[d];
    rows_ *= d == 0 ? 1 : map.box[d];
  }
}

BoxRow Box::row(std::uint32_t index) const {
  const std::uint32_t element = machine::element_bytes(map_.element);
  BoxRow row;
  row.shared = index * row_bytes_;
  std::uint64_t address = map_.address;
  for (std::uint32_t d = 1; d < map_.rank; ++d) {
    const std::int64_t place = at_[d] + index % map_.box[d];
    index /= map_.box[d];
    if (place < 0 || static_cast<std::uint64_t>(place) >= map_.extent[d]) {
      return row;
    }
    address += static_cast<std::uint64_t>(place) * map_.stride_bytes[d];
  }
  const std::int64_t first = std::max<std::int64_t>(at_[0], 0);
  const std::int64_t end = std::min<std::int64_t>(at_[0] + map_.box[0], static_cast<std::int64_t>(map_.extent[0]));
  if (end > first) {
    row.address = address + static_cast<std::uint64_t>(first) * element;
    row.first = static_cast<std::uint32_t>(first - at_[0]) * element;
    row.bytes = static_cast<std::uint32_t>(end - first) * element;
  }
  return row;
}

}  // namespace thresher::emulator
