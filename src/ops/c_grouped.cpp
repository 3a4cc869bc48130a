// The C interface of the grouped products.
#include "core/integers.hpp"
#include "ops/c_common.hpp"

struct thresher_grouped : thresher::c::PlanHandle<thresher::GroupedGemm> {};

namespace {

using namespace thresher;
using namespace thresher::c;

thresher_grouped_problem default_grouped_problem() {
  auto problem = with_default_activation<thresher_grouped_problem>();
  problem.row_ids_divisor = GroupedProblem{}.row_ids_divisor;
  return problem;
}

GroupedProblem problem_of(const thresher_grouped_problem* problem) {
  const thresher_grouped_problem given =
      known(problem, "problem", offsetof(thresher_grouped_problem, activation), default_grouped_problem());
  require_unset(given.reserved, "problem.reserved");
  GroupedProblem made{.experts = given.experts,
                      .rows = given.rows,
                      .n = given.n,
                      .k = given.k,
                      .tokens = given.tokens,
                      .expected_rows = given.expected_rows,
                      .layout = enumerator(given.layout, all_row_layouts.back(), "problem.layout"),
                      .row_ids_divisor = given.row_ids_divisor,
                      .a = format_of(given.a, "problem.a"),
                      .b = format_of(given.b, "problem.b"),
                      .out = format_of(given.out, "problem.out"),
                      .bias = truth(given.bias, "problem.bias"),
                      .row_weights = truth(given.row_weights, "problem.row_weights")};
  if (made.layout != RowLayout::gathered) {
    if (given.tokens != 0) {
      refuse("problem.tokens is " + std::to_string(given.tokens) +
             ", expected 0: only gathered rows are taken from others");
    }
    if (given.row_ids_divisor > 1) {
      refuse("problem.row_ids_divisor is " + std::to_string(given.row_ids_divisor) +
             ", expected 1: only gathered rows have ids");
    }
  }
  const bool has_activation = given.activation != THRESHER_NO_ACTIVATION;
  const Activation activation =
      activation_of(has_activation ? given.activation : THRESHER_SILU, given.alpha, given.limit, given.up_offset);
  if (has_activation) {
    made.activation = activation;
  }
  return made;
}

/// [experts, rows, k].
Tensor stack_of(const thresher_grouped_weights_view& view, const void* data, std::int64_t rows, const void* scales,
                const float* global_scales) {
  Tensor stack = Tensor::contiguous(const_cast<void*>(data), format_of(view.format, "view.format"),
                                    {view.experts, rows, view.k}, id_of(view.device));
  stack.strides[1] = view.row_stride != 0 ? view.row_stride : stack.strides[1];
  stack.strides[0] = view.expert_stride != 0 ? view.expert_stride : size_product(rows, stack.strides[1]);
  return with_scales(stack, OperandRole::weights, scales, view.scale_layout, global_scales);
}

Tensor bias_of(const thresher_grouped_weights_view& view, const void* data, std::int64_t columns) {
  return data == nullptr ? Tensor{}
                         : Tensor::contiguous(const_cast<void*>(data), format_of(view.bias_format, "view.bias_format"),
                                              {view.experts, columns}, id_of(view.device));
}

/// Rejects scales of b2 without a b2. Global scales of up belong to one tensor of both as well.
void require_without_b2(const thresher_grouped_weights_view& view, bool is_fused) {
  for (const auto& [member, is_given] :
       {std::pair{"b2_scales", view.b2_scales != nullptr},
        std::pair{"b2_global_scales", view.b2_global_scales != nullptr && !is_fused}}) {
    if (view.b2 == nullptr && is_given) {
      refuse("view." + std::string(member) + " is given without view.b2: leave it null");
    }
  }
}

GroupedWeights weights_of(const thresher_grouped_weights_view* given) {
  const thresher_grouped_weights_view view =
      known(given, "view", offsetof(thresher_grouped_weights_view, b1_scales), thresher_grouped_weights_view{});
  const auto order = enumerator(view.order, thresher_gate_up{THRESHER_INTERLEAVED}, "view.order");
  const bool is_fused = order != THRESHER_SEPARATE;
  const std::int64_t rows = is_fused ? size_product(2, view.n) : view.n;
  require_unset(view.reserved, "view.reserved");
  (void)bias_format_of(view.bias1 != nullptr ? view.bias1 : view.bias2, view.bias_format, "view.bias_format");
  require_without_b2(view, is_fused);
  GroupedWeights weights;
  weights.b1 = stack_of(view, view.b1, rows, view.b1_scales, view.b1_global_scales);
  weights.bias1 = bias_of(view, view.bias1, rows);
  if (is_fused) {
    weights.order = enumerator(order - 1, all_gate_up_orders.back(), "view.order");
    weights.up_global_scale = view.b2_global_scales;
  }
  if (view.b2 != nullptr) {
    weights.b2 = stack_of(view, view.b2, view.n, view.b2_scales, view.b2_global_scales);
  }
  weights.bias2 = bias_of(view, view.bias2, view.n);
  return weights;
}

/// A or C.
Tensor rows_of(const thresher_grouped& plan, const void* data, Format format, std::int64_t rows, std::int64_t columns,
               std::int64_t row_stride) {
  const GroupedProblem& problem = plan.planned.problem();
  if (problem.layout != RowLayout::slots) {
    return matrix_of(data, format, rows, columns, row_stride, plan.device);
  }
  Tensor slots = Tensor::contiguous(const_cast<void*>(data), format, {problem.experts, rows, columns}, plan.device);
  slots.strides[1] = row_stride != 0 ? row_stride : columns;
  slots.strides[0] = size_product(rows, slots.strides[1]);
  return slots;
}

Tensor list_of(const thresher_grouped& plan, const void* data, Format format, std::int64_t count) {
  return Tensor::contiguous(const_cast<void*>(data), format, {count}, plan.device);
}

GroupedTensors tensors_of(const thresher_grouped& plan, const thresher_grouped_tensors& given) {
  const GroupedProblem& problem = plan.planned.problem();
  const bool has_slots = problem.layout == RowLayout::slots;
  const std::int64_t rows_of_a = problem.layout == RowLayout::gathered ? given.tokens : given.rows;
  GroupedTensors tensors;
  tensors.a = with_scales(rows_of(plan, given.a, problem.a, rows_of_a, problem.k, given.a_row_stride),
                          OperandRole::tokens, given.a_scales, given.a_scale_layout, given.a_global_scale);
  tensors.c = with_scales(rows_of(plan, given.c, problem.out, given.rows, problem.n, given.c_row_stride),
                          OperandRole::tokens, given.c_scales, given.c_scale_layout, given.c_global_scale);
  tensors.c.scales.powers_of_two = enumerator(given.c_scales_are_powers_of_two, 1, "c_scales_are_powers_of_two") != 0;
  (has_slots ? tensors.counts : tensors.offsets) =
      list_of(plan, given.groups, Format::int32, problem.experts + (has_slots ? 0 : 1));
  if (given.row_ids != nullptr || problem.layout == RowLayout::gathered) {
    tensors.row_ids = list_of(plan, given.row_ids, Format::int32, given.rows);
  }
  if (given.row_weights != nullptr || problem.row_weights) {
    tensors.row_weights = has_slots ? Tensor::contiguous(const_cast<float*>(given.row_weights), Format::fp32,
                                                         {problem.experts, given.rows}, plan.device)
                                    : list_of(plan, given.row_weights, Format::fp32, given.rows);
  }
  return tensors;
}

}  // namespace

void thresher_grouped_problem_init(thresher_grouped_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_grouped_problem());
}

void thresher_grouped_weights_view_init(thresher_grouped_weights_view* view, uint32_t struct_size) {
  fill(view, struct_size);
}

void thresher_grouped_tensors_init(thresher_grouped_tensors* tensors, uint32_t struct_size) {
  fill(tensors, struct_size);
}

thresher_status thresher_grouped_strategies(thresher_device device, char* names, size_t capacity) {
  return guarded([&] { copy_names(grouped_gemm_strategies(device_of(device)), names, capacity); });
}

thresher_status thresher_grouped_pack(const thresher_grouped_weights_view* view, thresher_numerics numerics,
                                      thresher_grouped_weights** weights) {
  return create(weights, "weights", [&] {
    const GroupedWeights given = weights_of(view);
    return pack(device_of(view->device), given, {.numerics = numerics_of(numerics)});
  });
}

void thresher_grouped_weights_destroy(thresher_grouped_weights* weights) { delete weights; }

thresher_status thresher_grouped_weights_info(const thresher_grouped_weights* weights, thresher_packed_info* info) {
  return give_info(weights, info, [](const PackedGroupedWeights& packed, thresher_packed_info& value) {
    value.experts = packed.experts();
    value.matrices = packed.matrices();
    value.has_bias = packed.has_bias() ? 1 : 0;
  });
}

thresher_status thresher_grouped_weights_block_bytes(const thresher_grouped_weights* weights, size_t* bytes) {
  return give_block_bytes(weights, bytes);
}

thresher_status thresher_grouped_weights_to_block(const thresher_grouped_weights* weights, void* block, size_t bytes) {
  return write_block(weights, block, bytes);
}

thresher_status thresher_grouped_weights_from_block(thresher_device device, const void* block, size_t bytes,
                                                    thresher_packed_check check, thresher_grouped_weights** weights) {
  return create(weights, "weights",
                [&] { return grouped_from_block(device_of(device), block_of(block, bytes), check_of(check)); });
}

thresher_status thresher_grouped_plan(thresher_device device, const thresher_grouped_problem* problem,
                                      const thresher_grouped_weights* weights,
                                      const thresher_dual_gemm_options* options, thresher_grouped** plan_out) {
  return plan_packed(device, weights, options, plan_out, [&] { return problem_of(problem); });
}

thresher_status thresher_grouped_plan_raw(thresher_device device, const thresher_grouped_problem* problem,
                                          const thresher_grouped_weights_view* view,
                                          const thresher_dual_gemm_options* options, thresher_grouped** plan_out) {
  return create_plan(device, plan_out, [&](const Device& on) {
    return plan(on, problem_of(problem), weights_of(view), options_of(options));
  });
}

void thresher_grouped_destroy(thresher_grouped* plan_handle) { delete plan_handle; }
size_t thresher_grouped_workspace_bytes(const thresher_grouped* plan_handle) { return workspace_bytes_of(plan_handle); }
const char* thresher_grouped_strategy(const thresher_grouped* plan_handle) { return strategy_of(plan_handle); }

thresher_status thresher_grouped_run(const thresher_grouped* plan_handle, void* stream,
                                     const thresher_grouped_tensors* tensors, void* workspace) {
  return act_on(plan_handle, [&](const thresher_grouped& plan) {
    const thresher_grouped_tensors given =
        known(tensors, "tensors", offsetof(thresher_grouped_tensors, row_ids), thresher_grouped_tensors{});
    plan.planned.run(Stream{stream}, tensors_of(plan, given), workspace);
  });
}

thresher_status thresher_grouped_run_status(const thresher_grouped* plan_handle, void* stream, const void* workspace,
                                            uint32_t* flags) {
  return give_status(plan_handle, stream, workspace, flags);
}

thresher_status thresher_grouped_run_flat(const thresher_grouped* plan_handle, void* stream, int32_t a_scale_layout,
                                          int64_t rows, int64_t tokens, const void* a, int64_t a_row_stride,
                                          const void* a_scales, const float* a_global_scale, void* c,
                                          int64_t c_row_stride, const int32_t* groups, const int32_t* row_ids,
                                          const float* row_weights, void* workspace) {
  return act_on(plan_handle, [&](const thresher_grouped& plan) {
    plan.planned.run(Stream{stream},
                     tensors_of(plan, {.struct_size = sizeof(thresher_grouped_tensors),
                                       .a_scale_layout = a_scale_layout,
                                       .rows = rows,
                                       .tokens = tokens,
                                       .a = a,
                                       .a_row_stride = a_row_stride,
                                       .a_scales = a_scales,
                                       .a_global_scale = a_global_scale,
                                       .c = c,
                                       .c_row_stride = c_row_stride,
                                       .groups = groups,
                                       .row_ids = row_ids,
                                       .row_weights = row_weights,
                                       .c_scales = nullptr,
                                       .c_global_scale = nullptr,
                                       .c_scale_layout = THRESHER_SCALES_ROW_MAJOR,
                                       .c_scales_are_powers_of_two = 0}),
                     workspace);
  });
}
