#pragma once
/// Writes single elements into host tensors whose format has one value per element or is e4m3.
#include <cstdint>
#include <cstring>

#include "arena/data/host_tensor.hpp"
#include "formats/numbers.hpp"

namespace thresher::arena {

/// Rounds once, and saturates in e4m3; scales stay unchanged.
inline void write_element(HostTensor& tensor, std::int64_t index, float value) {
  if (bits(tensor.format) == 8) {
    tensor.values[static_cast<std::size_t>(index)] = formats::float_to_e4m3(value);
    return;
  }
  const std::uint16_t bits =
      tensor.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
  std::memcpy(&tensor.values[static_cast<std::size_t>(index) * 2], &bits, sizeof(bits));
}

}  // namespace thresher::arena
