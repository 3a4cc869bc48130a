#pragma once
/// Non-owning tensor views, element formats and scale layouts.
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace thresher {

/// Element formats. `nvfp4` is e2m1, two values a byte, low nibble first, with one e4m3 scale for each 16 along K.
enum class Format : std::uint8_t { fp32, fp16, bf16, fp8_e4m3, nvfp4, int32, uint8 };

/// "fp16", "bf16", … as used in suites, on the command line and in the ledger.
[[nodiscard]] std::string_view name(Format format) noexcept;
/// Bits an element: 4 for nvfp4 (its scales not counted).
[[nodiscard]] int bits(Format format) noexcept;

/// Where the e4m3 scales of an NVFP4 tensor [rows, K] lie, with C = K/16 scales a row.
enum class ScaleLayout : std::uint8_t {
  row_major,  ///< [rows, C]
  /// Blackwell's and cuBLAS's: rows padded to 128 and C to 4 with zeros; scale (r, c) lies at byte
  /// ((r/128)*ceil(C/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4.
  blocked,
};

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// Which memory a pointer belongs to.
struct DeviceId {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;
  bool operator==(const DeviceId&) const = default;
};

inline constexpr int max_rank = 4;

/// A non-owning view. `shape` and `strides` count elements (for nvfp4 e2m1 values, not bytes); the last dimension of
/// a 2-D operand is K (or N for an output) and must be contiguous. Only the first `rank` entries are meaningful.
struct Tensor {
  void* data = nullptr;
  Format format = Format::fp16;
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{};
  std::array<std::int64_t, max_rank> strides{};
  DeviceId device{};

  /// NVFP4 only: e4m3 scales in `scale_layout`, on the tensor's device.
  const std::uint8_t* scales = nullptr;
  ScaleLayout scale_layout = ScaleLayout::row_major;
  /// NVFP4 only: one float32 on the tensor's device that multiplies every value; null means 1.
  const float* global_scale = nullptr;

  /// A contiguous row-major view.
  static Tensor contiguous(void* data, Format format, std::initializer_list<std::int64_t> shape, DeviceId device = {});
  /// The same; at most max_rank extents.
  static Tensor contiguous(void* data, Format format, std::span<const std::int64_t> shape, DeviceId device = {});
  /// A contiguous NVFP4 view [rows, k].
  static Tensor nvfp4(void* data, const std::uint8_t* scales, std::int64_t rows, std::int64_t k,
                      const float* global_scale = nullptr, ScaleLayout layout = ScaleLayout::row_major,
                      DeviceId device = {});

  [[nodiscard]] std::int64_t elements() const noexcept;
  [[nodiscard]] bool is_contiguous() const noexcept;
};

/// Bytes of the scales of an NVFP4 tensor [rows, k] in `layout`, padding included.
[[nodiscard]] std::size_t scale_bytes(std::int64_t rows, std::int64_t k, ScaleLayout layout) noexcept;

}  // namespace thresher
