// The C interface: errors, devices, structs that can grow, and the tensors and options of all operations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/printable.hpp"
#include "ops/c_common.hpp"
#include "runtime/known_places.hpp"

namespace thresher::c {
namespace {

thread_local std::string last_error;

void require_buffer(const char* to, std::size_t capacity) {
  if (to == nullptr || capacity == 0) {
    refuse("the buffer for a name is null or empty");
  }
}

/// As much of the text as fits.
void copy_text(const std::string& text, char* to, std::size_t capacity) {
  require_buffer(to, capacity);
  const std::size_t length = std::min(text.size(), capacity - 1);
  text.copy(to, length);
  to[length] = '\0';
}

Tensor flat_matrix(Format format, std::int64_t rows, std::int64_t columns, const FlatMatrix& flat, DeviceId device,
                   OperandRole role) {
  return with_scales(matrix_of(flat.data, format, rows, columns, flat.row_stride, device), role, flat.scales,
                     flat.scale_layout, flat.global_scale);
}

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

/// A constant that `activation` has no use for is as the problem's _init function sets it, or 0.
void require_unused(const Activation& activation, float value, float unset, const char* member) {
  if (value != unset && value != 0.0F) {
    refuse(fmt::format("problem.{} is {}, which {} has no use for: leave it as the problem's _init function sets it",
                       member, value, name(activation.kind)));
  }
}

}  // namespace

thresher_status fail(thresher_status status, const char* sentence) noexcept {
  try {
    // A compiler's message has lines.
    last_error = status == THRESHER_COMPILE ? printable_lines(sentence) : printable(sentence);
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

thresher_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return THRESHER_INVALID_ARGUMENT;
    case ErrorCode::unsupported: return THRESHER_UNSUPPORTED;
    case ErrorCode::out_of_memory: return THRESHER_OUT_OF_MEMORY;
    case ErrorCode::io: return THRESHER_IO;
    case ErrorCode::device: return THRESHER_DEVICE;
    case ErrorCode::compile: return THRESHER_COMPILE;
    case ErrorCode::internal: return THRESHER_INTERNAL;
  }
  return THRESHER_INTERNAL;
}

void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

void require_size(const char* argument, std::uint32_t size, std::size_t least) {
  const std::size_t min_size = (least + struct_alignment - 1) / struct_alignment * struct_alignment;
  const auto refuse_size = [&](const std::string& expected) {
    refuse(fmt::format("{}.struct_size is {}, expected {}: initialise the struct with its _init function", argument,
                       size, expected));
  };
  if (size < min_size) {
    refuse_size(fmt::format("at least {}", min_size));
  }
  if (size > max_struct_bytes) {
    refuse_size(fmt::format("at most {}", max_struct_bytes));
  }
  if (size % struct_alignment != 0) {
    refuse_size(fmt::format("a multiple of {}, where no member is cut in two", struct_alignment));
  }
}

void require_zero(const char* argument, const void* bytes, std::size_t count) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  if (std::any_of(first, first + count, [](unsigned char byte) { return byte != 0; })) {
    throw Error(ErrorCode::unsupported, std::string(argument) + " sets members that Thresher " + thresher::version() +
                                            " does not know, among its last " + std::to_string(count) +
                                            " bytes: use a newer library or leave them 0");
  }
}

Format format_of(thresher_format format, const char* argument) {
  static_assert(static_cast<int>(all_formats.back()) == THRESHER_FP8_BLOCK &&
                static_cast<int>(Format::uint8) == THRESHER_UINT8 && static_cast<int>(Format::nvfp4) == THRESHER_NVFP4);
  return enumerator(format, all_formats.back(), argument);
}

std::optional<Format> optional_format(thresher_format format, const char* member, std::int32_t has_format,
                                      const char* switch_name) {
  const bool is_set = truth(has_format, switch_name);
  require_used(format, 0, member, is_set, switch_name);
  return is_set ? std::optional(format_of(format, member)) : std::nullopt;
}

DeviceId id_of(thresher_device device) {
  const DeviceKind kind = enumerator(device.kind, DeviceKind::cuda, "device.kind");
  if (device.ordinal < 0 || (kind == DeviceKind::cpu && device.ordinal != 0)) {
    refuse("device.ordinal is " + std::to_string(device.ordinal) +
           (kind == DeviceKind::cpu ? ", expected 0: there is one CPU" : ", expected 0 or more"));
  }
  return {kind, device.ordinal};
}

Device device_of(thresher_device device) {
  const DeviceId id = id_of(device);
  return id.kind == DeviceKind::cpu ? Device::cpu() : Device::cuda(id.ordinal);
}

void copy_names(const std::vector<std::string>& names, char* to, std::size_t capacity) {
  const std::string text = fmt::format("{}", fmt::join(names, ","));
  require_buffer(to, capacity);
  if (text.size() >= capacity) {
    refuse(fmt::format("the buffer for names has {} bytes, expected at least {} for \"{}\"", capacity, text.size() + 1,
                       text));
  }
  copy_text(text, to, capacity);
}

Tensor tensor_of(const thresher_tensor* tensor, const char* argument) {
  const thresher_tensor given = known(tensor, argument, offsetof(thresher_tensor, strides), thresher_tensor{});
  if (given.rank < 0 || given.rank > max_rank) {
    refuse(fmt::format("{}.rank is {}, expected 0 to {}", argument, given.rank, max_rank));
  }
  require_unset(given.reserved, (std::string(argument) + ".reserved").c_str());
  const auto rank = static_cast<std::size_t>(given.rank);
  Tensor made = Tensor::contiguous(given.data, format_of(given.format, (std::string(argument) + ".format").c_str()),
                                   std::span(given.shape, rank), id_of(given.device));
  if (std::any_of(given.strides, given.strides + rank, [](std::int64_t stride) { return stride != 0; })) {
    std::copy_n(given.strides, rank, made.strides.begin());
  }
  return made;
}

Tensor optional_tensor(const thresher_tensor* tensor, const char* argument) {
  return tensor == nullptr ? Tensor{} : tensor_of(tensor, argument);
}

Format bias_format_of(const void* bias, thresher_format format, const char* argument) {
  const Format made = format_of(format, argument);
  if (bias == nullptr && format != THRESHER_FP32) {
    refuse(fmt::format("{} is {} without a bias: leave it 0", argument, name(made)));
  }
  return made;
}

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

Tensor tokens_of(Format format, std::int64_t rows, std::int64_t columns, const FlatMatrix& flat, DeviceId device) {
  return flat_matrix(format, rows, columns, flat, device, OperandRole::tokens);
}

Tensor weights_of(Format format, std::int64_t rows, std::int64_t columns, const FlatMatrix& flat, DeviceId device) {
  return flat_matrix(format, rows, columns, flat, device, OperandRole::weights);
}

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

Activation activation_of(std::int32_t kind, float alpha, float limit, float up_offset) {
  const Activation made{.kind = enumerator(kind, all_activation_kinds.back(), "problem.activation"),
                        .alpha = alpha,
                        .limit = limit,
                        .up_offset = up_offset};
  const bool is_clamped = made.kind == ActivationKind::swiglu_clamped;
  if (!is_clamped && made.kind != ActivationKind::situ) {
    require_unused(made, alpha, default_activation.alpha, "alpha");
    require_unused(made, limit, default_activation.limit, "limit");
  }
  if (!is_clamped) {
    require_unused(made, up_offset, default_activation.up_offset, "up_offset");
  }
  return made;
}

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
  DualGemmOptions made = options_of(given.strategy, given.knobs, given.threads);
  made.deterministic = text_or_empty(given.deterministic);
  return made;
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

using namespace thresher;
using namespace thresher::c;

const char* thresher_version(void) { return thresher::version(); }

int32_t thresher_places_are_known(int32_t yes) { return std::exchange(runtime::places_are_known, yes != 0) ? 1 : 0; }

const char* thresher_last_error(void) { return last_error.c_str(); }

void thresher_packed_info_init(thresher_packed_info* info, uint32_t struct_size) { fill(info, struct_size); }

void thresher_matrix_init(thresher_matrix* matrix, uint32_t struct_size) { fill(matrix, struct_size); }

thresher_status thresher_best_device(thresher_device* device) {
  return guarded([&] {
    required(device, "device");
    const DeviceId id = Device::best().id();
    *device = {static_cast<thresher_device_kind>(id.kind), id.ordinal};
  });
}

thresher_status thresher_device_name(thresher_device device, char* name, size_t capacity) {
  return guarded([&] { copy_text(device_of(device).name(), name, capacity); });
}
