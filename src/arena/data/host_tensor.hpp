#pragma once
/// Inputs and outputs of one call as the host holds them.
#include <cstdint>
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
  std::vector<std::uint8_t> scales;  ///< their bytes, in `scale_layout`; none where the format has none
  ScaleLayout scale_layout = ScaleLayout::row_major;
  std::vector<float> global_scales{};  ///< none (1), one, or one for each matrix of a stack
  /// A contestant may arrange it ahead of its calls, and scales of blocks are those of weights.
  bool is_weight = false;
  /// Offsets, counts or ids: it says which of the other data are used, and is nothing that could be turned, negated or
  /// set to 0 as data can.
  bool is_index = false;

  [[nodiscard]] std::int64_t rows() const { return shape.front(); }
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::size_t bytes() const {
    return values.size() + scales.size() + global_scales.size() * sizeof(float);
  }
  [[nodiscard]] OperandRole role() const { return is_weight ? OperandRole::weights : OperandRole::tokens; }
  /// Refers to this object. Whoever holds it const does not write through the view.
  [[nodiscard]] Tensor view() const;
};

/// Room for a tensor, its bytes 0.
[[nodiscard]] HostTensor make_host_tensor(std::string name, Format format, std::vector<std::int64_t> shape,
                                          ScaleLayout layout = ScaleLayout::row_major,
                                          OperandRole role = OperandRole::tokens);

/// Gives a row the scales of another matrix's row, wherever they lie in either. Both have scales, of as many columns
/// each.
void copy_row_scales(const HostTensor& from, std::int64_t row, HostTensor& to, std::int64_t to_row);

/// The same tensor with its rows (of a stack its matrices) turned by `shift`: new data at the cost of a copy, drawn
/// from the same distribution. Scales turn with their rows, those of blocks of rows by whole blocks. An index stays as
/// it is.
[[nodiscard]] HostTensor rotate_rows(const HostTensor& tensor, std::int64_t shift);

/// Gives every element a random sign: new data, drawn from the same distribution where that is symmetric, and no row
/// comes again. An index stays as it is.
void flip_signs(HostTensor& tensor, Random& random);

/// Negates one element: the one of the greatest magnitude among random ones.
void negate_one_element(HostTensor& tensor, Random& random);

}  // namespace thresher::arena
