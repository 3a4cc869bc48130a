#pragma once
/// Non-owning tensor views.
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "thresher/format.hpp"

namespace thresher {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// The memory that a pointer belongs to.
struct DeviceId {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;
  bool operator==(const DeviceId&) const = default;
};

inline constexpr int max_rank = 4;

/// The scales that multiply the values of a tensor block by block. The defaults are NVFP4's.
struct Scales {
  /// The values under one scale: `rows` of the tensor, `columns` along K.
  struct Block {
    std::int64_t rows = 1;
    std::int64_t columns = 16;
    bool operator==(const Block&) const = default;
  };
  const void* data = nullptr;  ///< on the tensor's device; null for a tensor without scales
  Format format = Format::fp8_e4m3;
  Block block{};
  ScaleLayout layout = ScaleLayout::row_major;
  /// For an output in fp8_row or fp8_block: the scales that the call writes are rounded up to powers of two.
  bool powers_of_two = false;

  /// `data` for formats of one byte.
  [[nodiscard]] const std::uint8_t* codes() const noexcept { return static_cast<const std::uint8_t*>(data); }
};

/// The values under one scale of a tensor [rows, k] in `format`; {0, 0} without scales.
[[nodiscard]] Scales::Block scale_block_of(Format format, OperandRole role, std::int64_t k) noexcept;

/// Whether the scales of such a tensor may have this layout: row-major always, blocked for nvfp4, column-major for
/// tokens in fp8_block.
[[nodiscard]] bool may_lie(ScaleLayout layout, Format format, OperandRole role) noexcept;

/// A non-owning view. `data` has no const, so that one type serves inputs and outputs; inputs are only read. `shape`
/// and `strides` count elements (for nvfp4 e2m1 values, not bytes); the last dimension of a 2-D operand is K (or N for
/// an output) and must be contiguous. Only the first `rank` entries are meaningful.
struct Tensor {
  void* data = nullptr;
  Format format = Format::fp16;
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{};
  std::array<std::int64_t, max_rank> strides{};
  DeviceId device{};

  Scales scales{};  ///< if the format's traits say that it has scales
  /// One float32 on the tensor's device that multiplies every value of a tensor in nvfp4 or fp8_tensor. A stack of
  /// matrices has one per matrix. Null means 1.
  const float* global_scale = nullptr;

  /// A contiguous row-major view. For read-only memory, as of const weights, take const_cast<void*>.
  static Tensor contiguous(void* data, Format format, std::initializer_list<std::int64_t> shape, DeviceId device = {});
  /// The same; at most max_rank extents.
  static Tensor contiguous(void* data, Format format, std::span<const std::int64_t> shape, DeviceId device = {});
  /// A contiguous NVFP4 view [rows, k].
  static Tensor nvfp4(void* data, const std::uint8_t* scales, std::int64_t rows, std::int64_t k,
                      const float* global_scale = nullptr, ScaleLayout layout = ScaleLayout::row_major,
                      DeviceId device = {});
  /// A contiguous view [rows, k] in fp8_tensor, fp8_row or fp8_block; `scales` are all of them, or the one of
  /// fp8_tensor.
  static Tensor fp8(void* data, Format format, OperandRole role, const float* scales, std::int64_t rows, std::int64_t k,
                    ScaleLayout layout = ScaleLayout::row_major, DeviceId device = {});

  /// Fills in scale format and block size from format and role.
  void describe_scales(OperandRole role) noexcept;

  [[nodiscard]] std::int64_t elements() const noexcept;
  [[nodiscard]] bool is_contiguous() const noexcept;
};

/// Bytes of the scales of an NVFP4 tensor [rows, k] in `layout`, padding included.
[[nodiscard]] std::size_t scale_bytes(std::int64_t rows, std::int64_t k, ScaleLayout layout) noexcept;
/// The same for any format; 0 without scales.
[[nodiscard]] std::size_t scale_bytes(Format format, OperandRole role, std::int64_t rows, std::int64_t k,
                                      ScaleLayout layout) noexcept;
/// Bytes of the scales of a matrix, or of a stack of matrices [count, rows, k], one behind the other; 0 without scales.
[[nodiscard]] std::size_t scale_bytes(const Tensor& matrix) noexcept;
/// The maximum number of global scales: one, or one per matrix of a stack.
[[nodiscard]] constexpr std::size_t global_scales(const Tensor& tensor) noexcept {
  return tensor.rank == 3 ? static_cast<std::size_t>(tensor.shape[0]) : 1;
}

}  // namespace thresher
