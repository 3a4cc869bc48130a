#include "thresher/dlpack.hpp"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/integers.hpp"
#include "formats/elements.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

/// The code of float8_e4m3fn in DLPack 1.1; older headers have no name for it.
constexpr std::uint8_t float8_e4m3fn_code = 10;

struct TypePair {
  Format format;
  std::uint8_t code;
  std::uint8_t bits;
};

constexpr std::array<TypePair, 6> type_pairs{{{Format::fp32, kDLFloat, 32},
                                              {Format::fp16, kDLFloat, 16},
                                              {Format::bf16, kDLBfloat, 16},
                                              {Format::fp8_e4m3, float8_e4m3fn_code, 8},
                                              {Format::int32, kDLInt, 32},
                                              {Format::uint8, kDLUInt, 8}}};

[[noreturn]] void reject_role(ErrorCode code, std::string_view role, const std::string& problem) {
  throw Error(code, fmt::format("{} {}", role, problem));
}

Format format_of(const DLDataType& type, std::string_view role) {
  for (const TypePair& pair : type_pairs) {
    if (type.code == pair.code && type.bits == pair.bits && type.lanes == 1) {
      return pair.format;
    }
  }
  reject_role(ErrorCode::unsupported, role,
              fmt::format("has DLPack type code {} with {} bits and {} lanes, but only float32, float16, bfloat16, "
                          "float8_e4m3fn, int32 and uint8 of one lane are supported",
                          type.code, type.bits, type.lanes));
}

DeviceId device_of(const DLDevice& device, std::string_view role) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return {DeviceKind::cpu, 0};
    case kDLCUDA:
    case kDLCUDAManaged: return {DeviceKind::cuda, device.device_id};
    default:
      reject_role(ErrorCode::unsupported, role,
                  fmt::format("lies on DLPack device type {}, but only CPU and CUDA memory are supported",
                              static_cast<int>(device.device_type)));
  }
}

void copy_shape(const DLTensor& source, std::string_view role, Tensor& view) {
  if (source.ndim < 0 || source.ndim > max_rank) {
    reject_role(ErrorCode::unsupported, role,
                fmt::format("has {} dimensions, but at most {} are supported", source.ndim, max_rank));
  }
  if (source.ndim > 0 && source.shape == nullptr) {
    reject_role(ErrorCode::invalid_argument, role, "has no shape");
  }
  view.rank = source.ndim;
  std::int64_t compact_stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    if (source.shape[d] < 0) {
      reject_role(ErrorCode::invalid_argument, role, fmt::format("has the negative extent {}", source.shape[d]));
    }
    view.shape[i] = source.shape[d];
    view.strides[i] = source.strides != nullptr ? source.strides[d] : compact_stride;
    compact_stride = size_product(compact_stride, source.shape[d]);
  }
  if (view.elements() == too_large) {
    reject_role(ErrorCode::invalid_argument, role, "has more elements than 63 bits can count");
  }
}

/// Freed by the deleter: shape, strides and the owner of the memory.
struct Export {
  DLManagedTensor managed{};
  std::array<std::int64_t, max_rank> shape{};
  std::array<std::int64_t, max_rank> strides{};
  std::shared_ptr<const void> owner;
};

void check_nvfp4_scales(const Tensor& scales, std::int64_t rows, std::int64_t k, ScaleLayout layout,
                        std::string_view role) {
  if (scales.format != Format::uint8 && scales.format != Format::fp8_e4m3) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("has {} scales, but they must be uint8 or float8_e4m3fn", name(scales.format)));
  }
  if (!may_lie(layout, Format::nvfp4, OperandRole::tokens)) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("has {} scales, but those of NVFP4 are row-major or blocked", name(layout)));
  }
  const bool row_major = layout == ScaleLayout::row_major;
  if (row_major && (scales.rank != 2 || scales.shape[0] != rows || scales.shape[1] != k / formats::scale_block)) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("needs row-major scales [{}, {}]", rows, k / formats::scale_block));
  }
  if (scales.elements() != static_cast<std::int64_t>(scale_bytes(rows, k, layout))) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("has {} scales, but [{}, {}] needs {} in this layout", scales.elements(), rows, k,
                            scale_bytes(rows, k, layout)));
  }
  if (!scales.is_contiguous()) {
    reject_role(ErrorCode::invalid_argument, role, "has scales that are not contiguous");
  }
}

}  // namespace

Tensor from_dlpack(const DLTensor& tensor, std::string_view role) {
  Tensor view;
  view.format = format_of(tensor.dtype, role);
  view.device = device_of(tensor.device, role);
  copy_shape(tensor, role, view);
  if (tensor.data == nullptr) {
    if (view.elements() != 0) {
      reject_role(ErrorCode::invalid_argument, role, "has elements, but its data pointer is null");
    }
    return view;
  }
  view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const auto element_bytes = static_cast<std::uintptr_t>(bits(view.format) / 8);
  if (reinterpret_cast<std::uintptr_t>(view.data) % element_bytes != 0) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("is not aligned to its {}-byte elements", element_bytes));
  }
  return view;
}

Tensor nvfp4_from_dlpack(const DLTensor& values, const DLTensor& scales, ScaleLayout layout,
                         const DLTensor* global_scale, std::string_view role) {
  const Tensor bytes = from_dlpack(values, role);
  if (bytes.format != Format::uint8 || bytes.rank != 2) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("is {} with {} dimensions, but NVFP4 values are uint8 [rows, K/2]", name(bytes.format),
                            bytes.rank));
  }
  if (bytes.shape[1] > 1 && bytes.strides[1] != 1) {
    reject_role(ErrorCode::invalid_argument, role, "has NVFP4 values whose rows are not contiguous");
  }
  const std::int64_t rows = bytes.shape[0];
  const std::int64_t k = size_product(bytes.shape[1], 2);
  if (k % formats::scale_block != 0) {
    reject_role(ErrorCode::invalid_argument, role,
                fmt::format("has K = {}, but NVFP4 needs a multiple of {}", k, formats::scale_block));
  }
  const Tensor scale_view = from_dlpack(scales, role);
  check_nvfp4_scales(scale_view, rows, k, layout, role);
  Tensor view = Tensor::nvfp4(bytes.data, static_cast<const std::uint8_t*>(scale_view.data), rows, k, nullptr, layout,
                              bytes.device);
  view.strides[0] = size_product(bytes.strides[0], 2);
  Tensor global_view;
  global_view.device = bytes.device;
  if (global_scale != nullptr) {
    global_view = from_dlpack(*global_scale, role);
    if (global_view.format != Format::fp32 || global_view.elements() != 1) {
      reject_role(ErrorCode::invalid_argument, role, "has a global scale that is not one float32");
    }
    view.global_scale = static_cast<const float*>(global_view.data);
  }
  if (scale_view.device != bytes.device || global_view.device != bytes.device) {
    reject_role(ErrorCode::invalid_argument, role, "has values and scales on different devices");
  }
  return view;
}

DLManagedTensor* to_dlpack(const Tensor& tensor, std::shared_ptr<const void> owner) {
  for (const TypePair& pair : type_pairs) {
    if (pair.format != tensor.format) {
      continue;
    }
    auto made = std::make_unique<Export>();
    made->shape = tensor.shape;
    made->strides = tensor.strides;
    made->owner = std::move(owner);
    DLTensor& out = made->managed.dl_tensor;
    out.data = tensor.data;
    out.device = {tensor.device.kind == DeviceKind::cpu ? kDLCPU : kDLCUDA, tensor.device.ordinal};
    out.ndim = tensor.rank;
    out.dtype = {pair.code, pair.bits, 1};
    out.shape = made->shape.data();
    out.strides = made->strides.data();
    made->managed.manager_ctx = made.get();
    made->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); };
    return &made.release()->managed;
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("{} has no DLPack type; use nvfp4_to_dlpack for its parts", name(tensor.format)));
}

Nvfp4Dlpack nvfp4_to_dlpack(const Tensor& tensor, const std::shared_ptr<const void>& owner) {
  if (tensor.format != Format::nvfp4 || tensor.rank != 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the tensor is {} with {} dimensions, but must be an NVFP4 matrix", name(tensor.format),
                            tensor.rank));
  }
  const std::int64_t rows = tensor.shape[0];
  const std::int64_t k = tensor.shape[1];
  Tensor values = Tensor::contiguous(tensor.data, Format::uint8, {rows, k / 2}, tensor.device);
  values.strides[0] = tensor.strides[0] / 2;
  auto* scale_data = const_cast<std::uint8_t*>(tensor.scales.codes());  // DLPack 0.6 has no read-only tensors
  const Tensor scales =
      tensor.scales.layout == ScaleLayout::row_major
          ? Tensor::contiguous(scale_data, Format::uint8, {rows, k / formats::scale_block}, tensor.device)
          : Tensor::contiguous(scale_data, Format::uint8, {static_cast<std::int64_t>(scale_bytes(tensor))},
                               tensor.device);
  Nvfp4Dlpack out;
  out.values = to_dlpack(values, owner);
  out.scales = to_dlpack(scales, owner);
  if (tensor.global_scale != nullptr) {
    out.global_scale =
        to_dlpack(Tensor::contiguous(const_cast<float*>(tensor.global_scale), Format::fp32, {1}, tensor.device), owner);
  }
  return out;
}

}  // namespace thresher
