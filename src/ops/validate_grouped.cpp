#include "ops/validate_grouped.hpp"

#include <cstdint>
#include <utility>

#include "core/grouped_weights.hpp"
#include "core/integers.hpp"
#include "ops/tensor_checks.hpp"

namespace thresher::ops {
namespace {

/// One matrix for each expert. Those with scales lie one behind the other without gaps.
void check_stack(std::string_view argument, const Tensor& tensor, const Shape& shape, DeviceId device,
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

void check_bias(std::string_view argument, const Tensor& bias, std::int64_t experts, std::int64_t columns,
                DeviceId device) {
  check_unscaled_output(argument, bias.format);
  check_place(argument, bias, bias.format, {experts, columns}, device, static_cast<std::size_t>(bits(bias.format)) / 8);
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
  check_bias("bias1", weights.bias1, weights.b1.shape[0], weights.b1.shape[1], device);
  if (has_second) {
    if (weights.bias2.rank == 0) {
      refuse("bias1 is given without bias2, expected both or neither");
    }
    check_bias("bias2", weights.bias2, weights.b1.shape[0], weights.b1.shape[1], device);
  }
}

const char* groups_name(const GroupedProblem& problem) {
  return problem.layout == RowLayout::slots ? "counts" : "offsets";
}

/// Tensors that the layout has no use for are mistakes.
void refuse_given(const char* argument, const Tensor& tensor, const char* why) {
  if (tensor.rank > 0) {
    refuse("{} is given, but {}", argument, why);
  }
}

void check_row_count(const GroupedProblem& problem, const Tensor& c) {
  const bool has_slots = problem.layout == RowLayout::slots;
  if (c.rank != (has_slots ? 3 : 2)) {
    refuse("c has {} dimensions, expected {} with {} rows", c.rank, has_slots ? 3 : 2, name(problem.layout));
  }
  const std::int64_t rows = c.shape[has_slots ? 1 : 0];
  if (rows < 0 || rows > problem.rows) {
    refuse("c has {} rows{}, expected 0 to {}, which the plan was made for", rows, has_slots ? " in a slot" : "",
           problem.rows);
  }
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

void check_tokens(const GroupedProblem& problem, const GroupedTensors& tensors, std::int64_t rows,
                  std::size_t alignment, DeviceId device) {
  const Tensor& a = tensors.a;
  const int rank = problem.layout == RowLayout::slots ? 3 : 2;
  if (a.rank != rank) {
    refuse("a has {} dimensions, expected {} with {} rows", a.rank, rank, name(problem.layout));
  }
  const bool is_gathered = problem.layout == RowLayout::gathered;
  if (is_gathered && (a.shape[0] < 0 || a.shape[0] > problem.tokens)) {
    refuse("a has {} rows, expected 0 to {}, the tokens that the plan was made for", a.shape[0], problem.tokens);
  }
  check_rows("a", a, problem.a, problem.experts, is_gathered ? a.shape[0] : rows, problem.k, alignment, device);
}

void check_list(const char* argument, const Tensor& list, Format format, const Shape& shape, DeviceId device) {
  check_place(argument, list, format, shape, device, sizeof(std::int32_t));
  if (!list.is_contiguous()) {
    refuse("{} is not contiguous, expected elements one behind the other", argument);
  }
}

}  // namespace

void validate(const GroupedProblem& problem) {
  check_operand_format("problem.a", problem.a);
  check_operand_format("problem.b", problem.b);
  check_extent("experts", problem.experts, 1);
  check_extent("rows", problem.rows, 0);
  check_extent("n", problem.n, 0);
  check_extent("k", problem.k, 0);
  check_extent("expected_rows", problem.expected_rows, 0);
  check_output(problem.out, problem.n);
  check_depth(problem.k, problem.a, problem.b);
  if (problem.layout == RowLayout::slots && size_product(problem.experts, problem.rows) > max_extent) {
    refuse("problem.experts times problem.rows (the capacity of a slot) is {} times {}, expected at most {}",
           problem.experts, problem.rows, max_extent);
  }
  check_extent("row_ids_divisor", problem.row_ids_divisor, 1);
  if (problem.layout == RowLayout::gathered) {
    check_extent("tokens", problem.tokens, 0);
    if (size_product(problem.tokens, problem.row_ids_divisor) > max_extent + 1) {
      refuse("problem.tokens times problem.row_ids_divisor is {} times {}, expected at most {}: ids are int32",
             problem.tokens, problem.row_ids_divisor, max_extent + 1);
    }
  }
  if (problem.activation) {
    check_activation(*problem.activation);
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

WeightsShape shape_of(const GroupedWeights& weights) {
  const Tensor& b1 = weights.b1;
  return {.experts = b1.shape[0],
          .n = b1.shape[1] / (weights.order ? 2 : 1),
          .k = b1.shape[2],
          .format = b1.format,
          .matrices = weights.matrices(),
          .has_bias = weights.has_bias()};
}

void validate_weights(const GroupedProblem& problem, const WeightsShape& weights) {
  if (weights.format != problem.b) {
    refuse("the weights are {}, but the problem says {}", name(weights.format), name(problem.b));
  }
  if (problem.activation && weights.matrices == 1 && weights.n == 2 * problem.n) {
    refuse(
        "b1 is [{}, {}, {}], the rows of gate and up, but weights.order is missing: say {}, {} or {}, for a wrong "
        "order gives wrong numbers and no error",
        weights.experts, weights.n, weights.k, name(GateUpOrder::gate_first), name(GateUpOrder::up_first),
        name(GateUpOrder::interleaved));
  }
  if (weights.matrices != (problem.activation ? 2 : 1)) {
    refuse("the weights are {}, but the problem has {} activation: expected {}",
           weights.matrices == 2 ? "gate and up" : "one matrix an expert", problem.activation ? "an" : "no",
           problem.activation ? "gate and up" : "one matrix an expert");
  }
  for (const auto& [argument, is, wanted] :
       {std::tuple{"experts", weights.experts, problem.experts}, std::tuple{"rows an expert (n)", weights.n, problem.n},
        std::tuple{"columns (k)", weights.k, problem.k}}) {
    if (is != wanted) {
      refuse("the weights have {} {}, but the problem says {}", is, argument, wanted);
    }
  }
  if (weights.has_bias != problem.bias) {
    refuse("the weights have {} bias, but problem.bias is {}", weights.has_bias ? "a" : "no", problem.bias);
  }
}

void validate_run(const GroupedProblem& problem, const GroupedTensors& tensors, const GroupedWeights& weights,
                  const void* workspace, std::size_t workspace_bytes, std::size_t alignment, DeviceId device) {
  const bool has_slots = problem.layout == RowLayout::slots;
  const Tensor& c = tensors.c;
  check_row_count(problem, c);
  const std::int64_t rows = c.shape[has_slots ? 1 : 0];
  check_tokens(problem, tensors, rows, alignment, device);
  check_rows("c", c, problem.out, problem.experts, rows, problem.n, alignment, device);
  refuse_given(has_slots ? "offsets" : "counts", has_slots ? tensors.offsets : tensors.counts,
               has_slots ? "slots have counts" : "these rows have offsets: counts are for slots");
  check_list(groups_name(problem), has_slots ? tensors.counts : tensors.offsets, Format::int32,
             {problem.experts + (has_slots ? 0 : 1)}, device);
  if (problem.layout == RowLayout::gathered) {
    check_list("row_ids", tensors.row_ids, Format::int32, {rows}, device);
  } else {
    refuse_given("row_ids", tensors.row_ids, "only gathered rows have ids");
  }
  if (problem.row_weights) {
    check_list("row_weights", tensors.row_weights, Format::fp32, has_slots ? Shape{problem.experts, rows} : Shape{rows},
               device);
  } else {
    refuse_given("row_weights", tensors.row_weights, "problem.row_weights is false");
  }
  check_workspace(workspace, workspace_bytes);
  check_scales_not_overlapping(c);
  for (const auto& [argument, tensor] :
       {std::pair{"a", &tensors.a}, std::pair{groups_name(problem), has_slots ? &tensors.counts : &tensors.offsets},
        std::pair{"row_ids", &tensors.row_ids}, std::pair{"row_weights", &tensors.row_weights},
        std::pair{"b1", &weights.b1}, std::pair{"b2 (up)", &weights.b2}, std::pair{"bias1", &weights.bias1},
        std::pair{"bias2", &weights.bias2}}) {
    if (tensor->rank > 0 && tensor->data != nullptr) {
      check_not_overlapping(c, argument, *tensor);
      check_outside_workspace(argument, *tensor, workspace, workspace_bytes);
    }
  }
  check_outside_workspace("c", c, workspace, workspace_bytes);
}

}  // namespace thresher::ops
