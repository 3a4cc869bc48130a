#pragma once
/// Packed weights in host memory, as a file keeps them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

/// The layout of weights that were left as they are, which every device packs for itself.
inline constexpr const char* matrices_layout = "matrices";

/// One matrix: contiguous values, and where its format has them its scales and global scale.
struct HostMatrix {
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
  ScaleLayout scale_layout = ScaleLayout::row_major;
  std::vector<float> global_scale;  ///< one or none
};

struct PackedContent {
  std::string layout;  ///< matrices_layout, or the name that one kind of device gives its own, version included
  Numerics numerics = Numerics::exact;
  Format format = Format::fp16;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::array<HostMatrix, 2> matrices;  ///< gate and up; a layout of a device's own keeps their global scales alone
  std::vector<std::byte> packed;       ///< a layout of a device's own
};

/// A copy of the matrix, whose memory is the host's.
[[nodiscard]] HostMatrix host_matrix(const Tensor& tensor);
/// The matrix of a content in matrices_layout; refers to `content`.
[[nodiscard]] Tensor view(const PackedContent& content, std::size_t matrix);

/// Both throw as include/thresher/packed_file.hpp says.
void write_packed_file(const std::string& path, const PackedContent& content);
[[nodiscard]] PackedContent read_packed_file(const std::string& path);

}  // namespace thresher::ops
