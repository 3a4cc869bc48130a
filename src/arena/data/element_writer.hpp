#pragma once
/// Single elements into host tensors of 16-bit formats.
#include <cstdint>
#include <cstring>

#include "arena/data/host_tensor.hpp"
#include "formats/numbers.hpp"

namespace thresher::arena {

/// Rounds once; `tensor` is fp16 or bf16.
inline void write_element(HostTensor& tensor, std::int64_t index, float value) {
  const std::uint16_t bits =
      tensor.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
  std::memcpy(&tensor.values[static_cast<std::size_t>(index) * 2], &bits, sizeof(bits));
}

}  // namespace thresher::arena
