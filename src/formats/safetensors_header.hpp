#pragma once
/// The header of a safetensors file: 8 bytes of little-endian length, that many bytes of JSON, then the data.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::formats {

/// Element types as safetensors names them; f4 has two elements per byte.
enum class Dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f4,
};

/// "F16", "F8_E4M3", …
[[nodiscard]] std::string_view name(Dtype dtype) noexcept;
[[nodiscard]] std::uint64_t bits(Dtype dtype) noexcept;

/// One tensor of a file. Its bytes lie in [begin, end) of the data that follows the header.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::u8;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return end - begin; }
  bool operator==(const StoredTensor&) const = default;
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< by ascending `begin`
  Metadata metadata;
  bool operator==(const SafetensorsHeader&) const = default;
};

/// The length of the JSON. Throws Error(invalid_argument) naming `file` when `first_bytes` has fewer than 8 bytes.
/// Throws too when the length exceeds the file or 100 MB.
[[nodiscard]] std::uint64_t safetensors_header_length(std::span<const std::byte> first_bytes, std::uint64_t file_bytes,
                                                      std::string_view file);

/// Checks everything. The JSON holds only well-formed tensors and a metadata of strings, no name twice. Each type is
/// known, and each size follows from type and shape. Together the tensors cover the `data_bytes` after the header
/// without a gap or an overlap. Throws Error(invalid_argument) naming `file` and the tensor.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                                         std::string_view file);

/// Length and JSON, together padded with spaces to a multiple of `alignment` bytes, itself a multiple of 8. `tensors`
/// are as parse_safetensors_header gives them.
[[nodiscard]] std::string make_safetensors_header(const SafetensorsHeader& header, std::size_t alignment = 8);

/// Bytes of a tensor. Throws Error(invalid_argument) naming `file` and the tensor when an extent is negative, the size
/// overflows 64 bits or f4 elements do not fill whole bytes.
[[nodiscard]] std::uint64_t stored_bytes(const StoredTensor& tensor, std::string_view file);

/// "F16 [2, 3]" for error messages; of many extents the first, and their number.
[[nodiscard]] std::string type_and_shape(const StoredTensor& tensor);

}  // namespace thresher::formats
