// What the C interfaces of the products and of the layers have alike.
#include <fmt/format.h>

#include "ops/c_common.hpp"

namespace thresher::c {

Format bias_format_of(const void* bias, thresher_format format, const char* argument) {
  const Format made = format_of(format, argument);
  if (bias == nullptr && format != THRESHER_FP32) {
    refuse(fmt::format("{} is {} without a bias: leave it 0", argument, name(made)));
  }
  return made;
}

/// A matrix, its row stride 0 for contiguous rows.
Tensor matrix_of(const void* data, Format format, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                 DeviceId device) {
  Tensor tensor = Tensor::contiguous(const_cast<void*>(data), format, {rows, columns}, device);
  if (row_stride != 0) {
    tensor.strides[0] = row_stride;
  }
  return tensor;
}

Tensor with_scales(Tensor tensor, OperandRole role, const void* scales, std::int32_t layout,
                   const float* global_scale) {
  tensor.describe_scales(role);
  tensor.scales.data = scales;
  tensor.scales.layout = enumerator(layout, all_scale_layouts.back(), "scale_layout");
  tensor.global_scale = global_scale;
  return tensor;
}

Tensor tokens_of(Format format, std::int64_t rows, std::int64_t columns, const FlatTokens& flat, DeviceId device) {
  return with_scales(matrix_of(flat.data, format, rows, columns, flat.row_stride, device), OperandRole::tokens,
                     flat.scales, flat.scale_layout, flat.global_scale);
}

namespace {

Tensor matrix_tensor(const thresher_matrix* matrix, const char* argument, OperandRole role) {
  const thresher_matrix given = known(matrix, argument, offsetof(thresher_matrix, row_stride), thresher_matrix{});
  Tensor tensor =
      with_scales(matrix_of(given.data, format_of(given.format, (std::string(argument) + ".format").c_str()),
                            given.shape[0], given.shape[1], given.row_stride, id_of(given.device)),
                  role, given.scales, given.scale_layout, given.global_scale);
  tensor.scales.powers_of_two =
      truth(given.scales_are_powers_of_two, (std::string(argument) + ".scales_are_powers_of_two").c_str());
  return tensor;
}

}  // namespace

Tensor output_of(const thresher_matrix* matrix, const char* argument) {
  return matrix_tensor(matrix, argument, OperandRole::tokens);
}

Tensor tensor_of(const thresher_matrix* matrix, const char* argument, OperandRole role) {
  Tensor tensor = matrix_tensor(matrix, argument, role);
  if (tensor.scales.powers_of_two) {
    refuse(std::string(argument) + ".scales_are_powers_of_two is 1, expected 0: only those of an output are found");
  }
  return tensor;
}

namespace {

/// A constant that `activation` has no use for is as the problem's _init function sets it, or 0.
void require_unused(const Activation& activation, float value, float unset, const char* member) {
  if (activation.kind != ActivationKind::swiglu_clamped && value != unset && value != 0.0F) {
    refuse(fmt::format(
        "problem.{} is {}, which swiglu_clamped alone has a use for: leave it as the problem's _init function sets it",
        member, value));
  }
}

}  // namespace

Activation activation_of(std::int32_t kind, float alpha, float limit, float up_offset) {
  const Activation made{.kind = enumerator(kind, all_activation_kinds.back(), "problem.activation"),
                        .alpha = alpha,
                        .limit = limit,
                        .up_offset = up_offset};
  require_unused(made, alpha, default_activation.alpha, "alpha");
  require_unused(made, limit, default_activation.limit, "limit");
  require_unused(made, up_offset, default_activation.up_offset, "up_offset");
  return made;
}

/// `constants` are alpha, limit and up_offset; null for the defaults.
Activation activation_of(std::int32_t kind, const float* constants) {
  return constants == nullptr
             ? activation_of(kind, default_activation.alpha, default_activation.limit, default_activation.up_offset)
             : activation_of(kind, constants[0], constants[1], constants[2]);
}

Numerics numerics_of(std::int32_t numerics) { return enumerator(numerics, all_numerics.back(), "numerics"); }

DualGemmOptions options_of(const char* strategy, const char* knobs, std::int32_t threads) {
  return {.strategy = text_or_empty(strategy), .knobs = Knobs::parse(text_or_empty(knobs)), .threads = threads};
}

DualGemmOptions options_of(const thresher_dual_gemm_options* options) {
  if (options == nullptr) {
    return {};
  }
  const thresher_dual_gemm_options given = known(options, "options", offsetof(thresher_dual_gemm_options, threads), {});
  return options_of(given.strategy, given.knobs, given.threads);
}

static_assert(THRESHER_BLOCK_ALIGNMENT == block_alignment && THRESHER_BLOCK_ALIGNMENT_ON_GPU == block_alignment_on_gpu);

std::span<const std::byte> block_of(const void* block, std::size_t bytes) {
  return {&required(static_cast<const std::byte*>(block), "block"), bytes};
}

std::span<std::byte> block_of(void* block, std::size_t bytes) {
  (void)required(static_cast<const std::byte*>(block), "block");
  return {static_cast<std::byte*>(block), bytes};
}

PackedCheck check_of(std::int32_t check) { return enumerator(check, PackedCheck::content, "check"); }

void give(const thresher_packed_info& value, thresher_packed_info* info) {
  required(info, "info");
  require_size("info", info->struct_size, offsetof(thresher_packed_info, matrices));
  const std::uint32_t size = info->struct_size;
  std::memcpy(info, &value, std::min<std::size_t>(size, sizeof value));
  info->struct_size = size;
}

}  // namespace thresher::c

void thresher_packed_info_init(thresher_packed_info* info, uint32_t struct_size) {
  thresher::c::fill(info, struct_size, thresher_packed_info{});
}
