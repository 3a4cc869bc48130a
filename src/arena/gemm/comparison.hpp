#pragma once
/// Two computations of one matrix of outputs, element for element, where the definition would take too long. For the
/// dual GEMM and the grouped products alike.
#include <string>
#include <vector>

#include "reference/tolerance.hpp"
#include "thresher/tensor.hpp"

namespace thresher::arena {

/// |values − exact| as a share of |exact|; what is NaN or infinite is left out.
[[nodiscard]] double distance(const std::vector<double>& values, const std::vector<double>& exact);

struct OutputComparison {
  reference::Rule rule = reference::Rule::general;
  Format out = Format::fp16;
  bool is_folded = false;     ///< numerics fast: tiles are held against the error of quantized operands
  bool has_specials = false;  ///< what becomes of infinities is for the definition to say
  double widest = 0;          ///< Rule::general: the widest bound, less the rounding to the output format
  double folding_error = 0;   ///< distance of outputs of quantized operands from exact ones

  /// One sentence about a difference that is too great, empty when there is none. Both are [rows, n]; quantized
  /// ones have their scales, but for one that was given to both, in whose unit `widest` is then.
  [[nodiscard]] std::string fault(const Tensor& c, const Tensor& trusted) const;

 private:
  [[nodiscard]] double reach(double value, double scale) const;
  [[nodiscard]] std::string fault_of_scales(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                            std::int64_t column) const;
  [[nodiscard]] std::string fault_of_elements(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                              std::int64_t last_row) const;
  [[nodiscard]] std::string fault_of_tiles(const Tensor& c, const Tensor& trusted, std::int64_t row,
                                           std::int64_t last_row) const;
};

}  // namespace thresher::arena
