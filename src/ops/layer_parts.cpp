#include "ops/layer_parts.hpp"

#include <cmath>

#include "core/integers.hpp"

namespace thresher::ops {
namespace {

ScaleLayout layout_of_scales(Format format, RowOrder order) {
  return order == RowOrder::neighbors && may_lie(ScaleLayout::column_major, format, OperandRole::tokens)
             ? ScaleLayout::column_major
             : ScaleLayout::row_major;
}

bool has_given_scale(Format format) { return format == Format::fp8_tensor || format == Format::nvfp4; }

/// The product ahead of down, of two matrices or of one.
template <class Product>
Product first_product(const GatedMlpProblem& problem) noexcept {
  return {.m = problem.tokens,
          .n = problem.intermediate_size,
          .k = problem.hidden_size,
          .a = problem.x,
          .b = problem.gate_up,
          .out = problem.intermediate,
          .activation = problem.activation};
}

}  // namespace

DualGemmProblem gate_up_problem(const GatedMlpProblem& problem) noexcept {
  return first_product<DualGemmProblem>(problem);
}

GemmProblem up_problem(const GatedMlpProblem& problem) noexcept { return first_product<GemmProblem>(problem); }

GemmProblem down_problem(const GatedMlpProblem& problem) noexcept {
  return {.m = problem.tokens,
          .n = problem.hidden_size,
          .k = problem.intermediate_size,
          .a = problem.intermediate,
          .b = problem.down,
          .out = problem.out};
}

void check_intermediate(Format format, float scale, std::int64_t columns) {
  const FormatTraits& traits = format_traits(format);
  if (!traits.is_operand || !traits.is_output) {
    refuse("problem.intermediate is {}, expected fp16, bf16, nvfp4 or one of FP8", traits.name);
  }
  if (columns % traits.n_multiple != 0) {
    refuse("problem.intermediate_size is {}, expected a multiple of {} for an intermediate in {}", columns,
           traits.n_multiple, traits.name);
  }
  if (!std::isfinite(scale) || scale <= 0) {
    refuse("problem.intermediate_scale is {}, expected a finite number above 0", scale);
  }
  if (scale != 1.0F && !has_given_scale(format)) {
    refuse("problem.intermediate_scale is {}, expected 1 for {}, which is given no scale", scale, traits.name);
  }
}

void check_layer_elements(std::string_view rows_argument, std::int64_t rows, std::string_view columns_argument,
                          std::int64_t columns) {
  constexpr std::int64_t max_elements = std::int64_t{1} << 56;
  if (columns > 0 && rows > max_elements / columns) {
    refuse("{} times problem.{} is {} times {}, expected at most {} elements", rows_argument, columns_argument, rows,
           columns, max_elements);
  }
}

Intermediate::Intermediate(const Device& device, Format format, float scale, std::int64_t max_rows,
                           std::int64_t columns, std::vector<strategies::WorkspacePiece>& pieces, RowOrder order)
    : format_(format), layout_(layout_of_scales(format, order)), columns_(columns), device_(device.id()) {
  const auto added = [&](const char* name, std::size_t bytes) {
    return pieces[strategies::add_piece(pieces, name, bytes)];
  };
  // Rows of 4-bit values have an even length.
  values_ =
      added("intermediate", static_cast<std::size_t>(size_product(size_product(max_rows, columns), bits(format)) / 8));
  scales_ = added("scales of the intermediate", scale_bytes(format, OperandRole::tokens, max_rows, columns, layout_));
  if (has_given_scale(format)) {
    given_scale_.emplace(Tensor::contiguous(&scale, Format::fp32, {1}), device);
  }
}

Tensor Intermediate::tensor(std::int64_t rows, void* workspace) const {
  Tensor tensor = Tensor::contiguous(part_of(workspace, values_), format_, {rows, columns_}, device_);
  if (format_traits(format_).has_scales()) {
    tensor.scales.data = part_of(workspace, scales_);
    tensor.scales.layout = layout_;
    tensor.describe_scales(OperandRole::tokens);
  }
  if (given_scale_) {
    tensor.global_scale = static_cast<const float*>(given_scale_->tensor().data);
  }
  return tensor;
}

}  // namespace thresher::ops
