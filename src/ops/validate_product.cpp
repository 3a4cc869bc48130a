#include "ops/validate_product.hpp"

#include <tuple>

#include "core/integers.hpp"
#include "ops/tensor_checks.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher::ops {
namespace {

using strategies::gemm::Product;
using strategies::gemm::ProductRows;

/// One matrix for each expert. Those with scales lie one behind the other without gaps.
void check_stack(std::string_view argument, const Tensor& tensor, const TensorShape& shape, DeviceId device,
                 OperandRole role) {
  const FormatTraits& traits = format_traits(tensor.format);
  check_place(argument, tensor, tensor.format, shape, device, element_alignment(tensor.format));
  if (tensor.elements() == 0) {
    return;
  }
  check_strides(argument, tensor, traits.bits < 8 ? 2 : 1);
  check_no_overlap(argument, tensor);
  if (traits.has_scales() && !tensor.is_contiguous()) {
    refuse("{} is {} with the strides [{}, {}, {}], expected a contiguous tensor, whose scales are too", argument,
           traits.name, tensor.strides[0], tensor.strides[1], tensor.strides[2]);
  }
  check_scales(argument, tensor, role);
}

void check_stack_of_weights(std::string_view argument, const Tensor& tensor, DeviceId device) {
  if (tensor.rank != 3) {
    refuse("{} has {} dimensions, expected 3: [experts, n, k]", argument, tensor.rank);
  }
  if (tensor.shape[0] < 0 || tensor.shape[1] < 0 || tensor.shape[2] < 0) {
    refuse("{} is [{}, {}, {}], expected extents of 0 or more", argument, tensor.shape[0], tensor.shape[1],
           tensor.shape[2]);
  }
  check_operand_format(argument, tensor.format);
  check_stack(argument, tensor, {tensor.shape[0], tensor.shape[1], tensor.shape[2]}, device, OperandRole::weights);
}

void check_bias(std::string_view argument, const Tensor& bias, const TensorShape& shape, DeviceId device) {
  check_unscaled_output(argument, bias.format);
  check_place(argument, bias, bias.format, shape, device, static_cast<std::size_t>(bits(bias.format)) / 8);
  if (bias.elements() > 0) {
    check_strides(argument, bias, 1);
  }
}

void validate_fused(const GroupedWeights& weights) {
  const Tensor& fused = weights.b1;
  if (weights.b2.rank > 0 || weights.bias2.rank > 0) {
    refuse("weights.order is {}, which is of one tensor of gate and up, but {} is given too: leave one of them out",
           name(*weights.order), weights.b2.rank > 0 ? "b2" : "bias2");
  }
  if (weights.up_global_scale != nullptr && fused.format != Format::nvfp4 && fused.format != Format::fp8_tensor) {
    refuse("weights.up_global_scale is given, but b1 (gate and up) is {}: expected none", name(fused.format));
  }
  if (fused.shape[1] % 2 != 0) {
    refuse("b1 (gate and up) has {} rows for each expert, expected an even number: half of them gate, half up",
           fused.shape[1]);
  }
  if (const std::int64_t of_a_scale = format_traits(fused.format).weight_rows_per_scale;
      of_a_scale > 1 && (weights.order == GateUpOrder::interleaved || fused.shape[1] / 2 % of_a_scale != 0)) {
    refuse("b1 (gate and up) is {} with {} {} rows, but {} rows share a scale: give two tensors", name(fused.format),
           fused.shape[1] / 2, weights.order == GateUpOrder::interleaved ? "interleaved" : "gate", of_a_scale);
  }
  if (format_traits(fused.format).has_scales() && fused.scales.layout != ScaleLayout::row_major) {
    refuse("b1 (gate and up) has {} scales, expected row-major ones in one tensor of both: give two tensors",
           name(fused.scales.layout));
  }
}

void validate_two(const GroupedWeights& weights, DeviceId device) {
  const Tensor& gate = weights.b1;
  const Tensor& up = weights.b2;
  if (up.format != gate.format) {
    refuse("b2 (up) is {}, expected {}, as b1 (gate)", name(up.format), name(gate.format));
  }
  check_stack("b2 (up)", up, {gate.shape[0], gate.shape[1], gate.shape[2]}, device, OperandRole::weights);
  if (format_traits(gate.format).has_scales() && up.scales.layout != gate.scales.layout) {
    refuse("b2 (up) has {} scales, expected {} ones, as b1 (gate)", name(up.scales.layout), name(gate.scales.layout));
  }
}

void validate_biases(const GroupedWeights& weights, DeviceId device) {
  const bool has_second = weights.matrices() == 2 && !weights.order;
  if (weights.bias2.rank > 0 && (!has_second || !weights.has_bias())) {
    refuse("bias2 is given {}, expected it beside bias1 and b2 alone", has_second ? "without bias1" : "without b2");
  }
  if (!weights.has_bias()) {
    return;
  }
  check_bias("bias1", weights.bias1, {weights.b1.shape[0], weights.b1.shape[1]}, device);
  if (has_second) {
    if (weights.bias2.rank == 0) {
      refuse("bias1 is given without bias2, expected both or neither");
    }
    check_bias("bias2", weights.bias2, {weights.b1.shape[0], weights.b1.shape[1]}, device);
  }
}

bool has_slots(const ProductProblem& problem) { return problem.layout == ProductRows::masked; }

std::string_view layout_name(const ProductProblem& problem) { return name(problem.grouped().layout); }

/// Tensors that the layout has no use for are mistakes.
void refuse_given(const char* argument, const Tensor& tensor, const char* why) {
  if (tensor.rank > 0) {
    refuse("{} is given, but {}", argument, why);
  }
}

void check_row_count(const ProductProblem& problem, const Tensor& c) {
  const int rank = has_slots(problem) ? 3 : 2;
  if (c.rank != rank) {
    refuse("c has {} dimensions, expected {} with {} rows", c.rank, rank, layout_name(problem));
  }
  const std::int64_t rows = c.shape[has_slots(problem) ? 1 : 0];
  if (rows < 0 || rows > problem.rows) {
    refuse("c has {} rows{}, expected 0 to {}, which the plan was made for", rows,
           has_slots(problem) ? " in a slot" : "", problem.rows);
  }
}

/// A or C of a dense product.
void check_dense(const char* argument, const Tensor& tensor, Format format, std::int64_t rows, std::int64_t columns,
                 const RunPlace& place) {
  check_matrix(argument, tensor, format, rows, columns, place.device, OperandRole::tokens);
  check_alignment(argument, tensor, place.alignment);
}

/// A or C: rows of one matrix, or of one a slot.
void check_rows(const char* argument, const Tensor& tensor, Format format, std::int64_t experts, std::int64_t rows,
                std::int64_t columns, std::size_t alignment, DeviceId device) {
  if (tensor.rank == 3) {
    if (tensor.format != format) {
      refuse("{} is {}, but the problem says {}", argument, name(tensor.format), name(format));
    }
    check_stack(argument, tensor, {experts, rows, columns}, device, OperandRole::tokens);
  } else {
    check_matrix(argument, tensor, format, rows, columns, device, OperandRole::tokens);
  }
  check_alignment(argument, tensor, alignment);
}

void check_tokens(const ProductProblem& problem, const Tensor& a, std::int64_t rows, const RunPlace& place) {
  const int rank = has_slots(problem) ? 3 : 2;
  if (a.rank != rank) {
    refuse("a has {} dimensions, expected {} with {} rows", a.rank, rank, layout_name(problem));
  }
  const bool is_gathered = problem.layout == ProductRows::gathered;
  if (is_gathered && (a.shape[0] < 0 || a.shape[0] > problem.tokens)) {
    refuse("a has {} rows, expected 0 to {}, the tokens that the plan was made for", a.shape[0], problem.tokens);
  }
  check_rows("a", a, problem.a, problem.experts, is_gathered ? a.shape[0] : rows, problem.k, place.alignment,
             place.device);
}

void check_row_ids(const ProductProblem& problem) {
  if (has_slots(problem) && size_product(problem.experts, problem.rows) > max_extent) {
    refuse("problem.experts times problem.rows (the capacity of a slot) is {} times {}, expected at most {}",
           problem.experts, problem.rows, max_extent);
  }
  check_extent("row_ids_divisor", problem.row_ids_divisor, 1);
  if (problem.layout == ProductRows::gathered) {
    check_extent("tokens", problem.tokens, 0);
    if (size_product(problem.tokens, problem.row_ids_divisor) > max_extent + 1) {
      refuse("problem.tokens times problem.row_ids_divisor is {} times {}, expected at most {}: ids are int32",
             problem.tokens, problem.row_ids_divisor, max_extent + 1);
    }
  }
}

}  // namespace

void validate(const ProductProblem& problem) {
  if (strategies::gemm::product_of(problem) == Product::gemm) {
    check_unscaled_output("problem.out", problem.out);
  }
  check_operand_format("problem.a", problem.a);
  check_operand_format("problem.b", problem.b);
  if (!problem.is_dense()) {
    check_extent("experts", problem.experts, 1);
  }
  check_extent(problem.is_dense() ? "m" : "rows", problem.rows, 0);
  check_extent("n", problem.n, 0);
  check_extent("k", problem.k, 0);
  if (!problem.is_dense()) {
    check_extent("expected_rows", problem.expected_rows, 0);
  }
  check_output(problem.out, problem.n);
  check_depth(problem.k, problem.a, problem.b);
  if (!problem.is_dense()) {
    check_row_ids(problem);
  }
  if (problem.activation) {
    check_activation(*problem.activation);
  }
}

void validate_pair(const Tensor& b1_gate, const Tensor& b2_up, DeviceId device) {
  check_operand_format("b1 (gate)", b1_gate.format);
  check_matrix("b1 (gate)", b1_gate, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], device, OperandRole::weights);
  check_matrix("b2 (up)", b2_up, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], device, OperandRole::weights);
}

void validate_weights(const GemmWeights& weights, DeviceId device) {
  const Tensor& b = weights.b;
  check_operand_format("b", b.format);
  check_matrix("b", b, b.format, b.shape[0], b.shape[1], device, OperandRole::weights);
  if (format_traits(b.format).has_scales() && b.elements() > 0 && !b.is_contiguous()) {
    refuse("b is {} with the row stride {}, expected a contiguous matrix, whose scales are too", name(b.format),
           b.strides[0]);
  }
  if (weights.bias.rank > 0) {
    check_bias("bias", weights.bias, {b.shape[0]}, device);
  }
}

void validate_weights(const GroupedWeights& weights, DeviceId device) {
  check_stack_of_weights(weights.order         ? "b1 (gate and up)"
                         : weights.b2.rank > 0 ? "b1 (gate)"
                                               : "b1",
                         weights.b1, device);
  if (weights.order) {
    validate_fused(weights);
  } else if (weights.b2.rank > 0) {
    validate_two(weights, device);
  }
  if (weights.up_global_scale != nullptr && !weights.order) {
    refuse(
        "weights.up_global_scale is given without weights.order, expected it with one tensor of gate and up alone: "
        "set b2.global_scale");
  }
  validate_biases(weights, device);
}

void validate_weights(const ProductProblem& problem, const Tensor& b1_gate, const Tensor& b2_up, DeviceId device) {
  check_matrix("b1 (gate)", b1_gate, problem.b, problem.n, problem.k, device, OperandRole::weights);
  check_matrix("b2 (up)", b2_up, problem.b, problem.n, problem.k, device, OperandRole::weights);
}

void check_same_device(const Device& packed_for, const Device& device) {
  if (packed_for.id() != device.id()) {
    refuse("the weights were packed for {}, not for {}: pack them again", packed_for.name(), device.name());
  }
}

void check_bias(const ProductProblem& problem, bool has_bias) {
  if (has_bias != problem.bias) {
    refuse("the weights have {} bias, but problem.bias is {}", has_bias ? "a" : "no", problem.bias);
  }
}

void validate_weights(const ProductProblem& problem, const WeightsShape& weights) {
  if (weights.format != problem.b) {
    refuse("the weights are {}, but the problem says {}", name(weights.format), name(problem.b));
  }
  const bool is_dual = problem.matrices() == 2;
  if (is_dual && weights.matrices == 1 && weights.n == 2 * problem.n) {
    refuse(
        "b1 is [{}, {}, {}], the rows of gate and up, but weights.order is missing: say {}, {} or {}, for a wrong "
        "order gives wrong numbers and no error",
        weights.experts, weights.n, weights.k, name(GateUpOrder::gate_first), name(GateUpOrder::up_first),
        name(GateUpOrder::interleaved));
  }
  if (weights.matrices != problem.matrices()) {
    refuse("the weights are {}, but the problem has {} activation: expected {}",
           weights.matrices == 2 ? "gate and up" : "one matrix an expert",
           is_dual              ? "an"
           : problem.activation ? "the ungated"
                                : "no",
           is_dual ? "gate and up" : "one matrix an expert");
  }
  for (const auto& [argument, is, wanted] :
       {std::tuple{"experts", weights.experts, problem.experts}, std::tuple{"rows an expert (n)", weights.n, problem.n},
        std::tuple{"columns (k)", weights.k, problem.k}}) {
    if (is != wanted) {
      refuse("the weights have {} {}, but the problem says {}", is, argument, wanted);
    }
  }
  check_bias(problem, weights.has_bias);
}

void check_apart(const Tensor& c, NamedTensors tensors, const RunPlace& place, std::string_view output) {
  for (const auto& [argument, tensor] : tensors) {
    if (tensor->rank > 0 && tensor->data != nullptr) {
      check_not_overlapping(c, argument, *tensor, output);
      check_outside_workspace(argument, *tensor, place.workspace, place.workspace_bytes);
    }
  }
}

void validate_tokens(const ProductProblem& problem, const Tensor& a, const RunPlace& place) {
  if (a.rank == 2 && (a.shape[0] < 0 || a.shape[0] > problem.rows)) {
    refuse("a has {} rows, expected 0 to {}, which the plan was made for", a.shape[0], problem.rows);
  }
  check_dense("a", a, problem.a, a.shape[0], problem.k, place);
  check_workspace(place.workspace, place.workspace_bytes);
  check_outside_workspace("a", a, place.workspace, place.workspace_bytes);
}

void validate_run(const ProductProblem& problem, const Tensor& a, const Tensor& c, const GroupedWeights& weights,
                  const RunPlace& place) {
  validate_tokens(problem, a, place);
  check_dense("c", c, problem.out, a.shape[0], problem.n, place);
  check_scales_not_overlapping(c);
  check_not_overlapping(c, "a", a);
  check_outside_workspace("c", c, place.workspace, place.workspace_bytes);
  if (problem.matrices() == 2) {
    check_apart(c, {{"b1 (gate)", &weights.b1}, {"b2 (up)", &weights.b2}}, place);
  } else {
    check_apart(c, {{"b", &weights.b1}, {"bias", &weights.bias1}}, place);
  }
}

void validate_run(const ProductProblem& problem, const GroupedTensors& tensors, const GroupedWeights& weights,
                  const RunPlace& place) {
  const bool is_masked = has_slots(problem);
  const DeviceId device = place.device;
  const Tensor& c = tensors.c;
  const char* const groups_name = is_masked ? "counts" : "offsets";
  const Tensor& groups = is_masked ? tensors.counts : tensors.offsets;
  check_row_count(problem, c);
  const std::int64_t rows = c.shape[is_masked ? 1 : 0];
  check_tokens(problem, tensors.a, rows, place);
  check_rows("c", c, problem.out, problem.experts, rows, problem.n, place.alignment, device);
  refuse_given(is_masked ? "offsets" : "counts", is_masked ? tensors.offsets : tensors.counts,
               is_masked ? "slots have counts" : "these rows have offsets: counts are for slots");
  check_list(groups_name, groups, Format::int32, {problem.experts + (is_masked ? 0 : 1)}, device);
  if (problem.layout == ProductRows::gathered) {
    check_list("row_ids", tensors.row_ids, Format::int32, {rows}, device);
  } else {
    refuse_given("row_ids", tensors.row_ids, "only gathered rows have ids");
  }
  if (problem.row_weights) {
    check_list("row_weights", tensors.row_weights, Format::fp32,
               is_masked ? TensorShape{problem.experts, rows} : TensorShape{rows}, device);
  } else {
    refuse_given("row_weights", tensors.row_weights, "problem.row_weights is false");
  }
  check_workspace(place.workspace, place.workspace_bytes);
  check_scales_not_overlapping(c);
  check_apart(c,
              {{"a", &tensors.a},
               {groups_name, &groups},
               {"row_ids", &tensors.row_ids},
               {"row_weights", &tensors.row_weights},
               {"b1", &weights.b1},
               {"b2 (up)", &weights.b2},
               {"bias1", &weights.bias1},
               {"bias2", &weights.bias2}},
              place);
  check_outside_workspace("c", c, place.workspace, place.workspace_bytes);
}

}  // namespace thresher::ops
