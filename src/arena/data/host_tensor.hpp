#pragma once
/// Inputs and outputs of one call as the host holds them.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arena/random.hpp"
#include "thresher/tensor.hpp"

namespace thresher::arena {

/// An owned, contiguous tensor with its scales.
struct HostTensor {
  std::string name;  ///< "a", "b1", "c", …
  Format format = Format::fp16;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
  std::vector<std::uint8_t> scales;  ///< in `scale_layout`, as bytes; empty where the format has none
  ScaleLayout scale_layout = ScaleLayout::row_major;
  std::vector<float> global_scales{};  ///< empty (1), one, or one per matrix of a stack
  /// A contestant may prepack it before its calls, and its block scales are those of weights.
  bool is_weight = false;
  /// Offsets, counts or ids: they say which other data are used. They cannot be rotated, negated or set to 0 as data
  /// can.
  bool is_index = false;

  [[nodiscard]] std::int64_t rows() const { return shape.front(); }
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::size_t bytes() const {
    return values.size() + scales.size() + global_scales.size() * sizeof(float);
  }
  [[nodiscard]] OperandRole role() const { return is_weight ? OperandRole::weights : OperandRole::tokens; }
  /// Refers to this object. A holder of a const object does not write through the view.
  [[nodiscard]] Tensor view() const;
};

/// A zero-filled tensor.
[[nodiscard]] HostTensor make_host_tensor(std::string name, Format format, std::vector<std::int64_t> shape,
                                          ScaleLayout layout = ScaleLayout::row_major,
                                          OperandRole role = OperandRole::tokens);

/// Copies a row's scales from a row of another matrix, in whatever scale layout each has. Both have scales with the
/// same number of columns.
void copy_row_scales(const HostTensor& from, std::int64_t row, HostTensor& to, std::int64_t to_row);

/// The same tensor with its rows (in a stack, its matrices) rotated by `shift`: new data of the same distribution at
/// the cost of a copy. Scales rotate with their rows, per-block scales by whole blocks. An index tensor stays
/// unchanged.
[[nodiscard]] HostTensor rotate_rows(const HostTensor& tensor, std::int64_t shift);

/// Gives every element a random sign: new data, of the same distribution where that is symmetric, without repeated
/// rows. An index tensor stays unchanged.
void flip_signs(HostTensor& tensor, Random& random);
/// The same for values of a format, which begin with a whole element.
void flip_signs(std::span<std::uint8_t> values, Format format, Random& random);

/// Negates one element: the one of greatest magnitude among random ones.
void negate_one_element(HostTensor& tensor, Random& random);

}  // namespace thresher::arena
