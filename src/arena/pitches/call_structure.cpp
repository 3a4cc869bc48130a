#include "arena/pitches/call_structure.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "arena/operation/operation.hpp"
#include "thresher/error.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {
namespace {

static_assert(THRESHER_OWN_FP32 == static_cast<int>(Format::fp32) &&
              THRESHER_OWN_FP16 == static_cast<int>(Format::fp16));
static_assert(THRESHER_OWN_BF16 == static_cast<int>(Format::bf16));
static_assert(THRESHER_OWN_FP8_E4M3 == static_cast<int>(Format::fp8_e4m3));
static_assert(THRESHER_OWN_NVFP4 == static_cast<int>(Format::nvfp4));
static_assert(THRESHER_OWN_INT32 == static_cast<int>(Format::int32));
static_assert(THRESHER_OWN_UINT8 == static_cast<int>(Format::uint8));
static_assert(THRESHER_OWN_FP8_TENSOR == static_cast<int>(Format::fp8_tensor));
static_assert(THRESHER_OWN_FP8_ROW == static_cast<int>(Format::fp8_row));
static_assert(THRESHER_OWN_FP8_BLOCK == static_cast<int>(Format::fp8_block));
static_assert(THRESHER_OWN_SCALES_ROW_MAJOR == static_cast<int>(ScaleLayout::row_major));
static_assert(THRESHER_OWN_SCALES_BLOCKED == static_cast<int>(ScaleLayout::blocked));
static_assert(THRESHER_OWN_SCALES_COLUMN_MAJOR == static_cast<int>(ScaleLayout::column_major));

thresher_own_matrix matrix(const Tensor& tensor) {
  thresher_own_matrix out{};
  out.values = tensor.data;
  out.rows = tensor.shape[0];
  out.columns = tensor.shape[1];
  out.row_stride = tensor.strides[0];
  out.format = static_cast<int>(tensor.format);
  out.scale_layout = static_cast<int>(tensor.scales.layout);
  out.scales = tensor.scales.codes();
  out.global_scale = tensor.global_scale;
  return out;
}

thresher_own_tensor own_tensor(const Tensor& tensor) {
  thresher_own_tensor out{};
  out.values = tensor.data;
  out.scales = tensor.scales.data;
  out.global_scale = tensor.global_scale;
  out.rank = tensor.rank;
  for (int i = 0; i < max_rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    out.shape[i] = i < tensor.rank ? tensor.shape[at] : 1;
    out.strides[i] = i < tensor.rank ? tensor.strides[at] : 0;
  }
  out.format = static_cast<int>(tensor.format);
  out.scale_bytes = tensor.scales.data == nullptr ? 0 : static_cast<long long>(scale_bytes(tensor));
  out.scale_layout = static_cast<int>(tensor.scales.layout);
  out.scale_rows = static_cast<int>(tensor.scales.block.rows);
  out.scale_columns = static_cast<int>(tensor.scales.block.columns);
  return out;
}

/// Places members as a C compiler does.
class StructureWriter {
 public:
  /// The offset of the value.
  template <class T>
  std::uint32_t put(const T& value) {
    const std::size_t begin = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(begin + sizeof(T));
    std::memcpy(&bytes_[begin], &value, sizeof(T));
    return static_cast<std::uint32_t>(begin);
  }
  std::uint32_t put_address(const void* address) {
    addresses_.push_back(put(address));
    return addresses_.back();
  }
  /// A value with these addresses in it.
  template <class T>
  std::uint32_t put(const T& value, std::initializer_list<std::size_t> addresses) {
    const std::uint32_t begin = put(value);
    for (const std::size_t address : addresses) {
      addresses_.push_back(begin + static_cast<std::uint32_t>(address));
    }
    return begin;
  }
  [[nodiscard]] CallStructure whole(std::vector<std::uint32_t> offsets) && {
    bytes_.resize((bytes_.size() + alignof(void*) - 1) / alignof(void*) * alignof(void*));
    return {std::move(bytes_), std::move(addresses_), std::move(offsets)};
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::uint32_t> addresses_;
};

std::uint32_t put_tensor(StructureWriter& writer, const Argument& argument, Receiver receiver) {
  const Tensor& tensor = argument.value;
  if (receiver == Receiver::python || argument.kind == ArgumentKind::tensor) {
    using T = thresher_own_tensor;
    return writer.put(own_tensor(tensor), {offsetof(T, values), offsetof(T, scales), offsetof(T, global_scale)});
  }
  if (argument.kind == ArgumentKind::matrix) {
    using T = thresher_own_matrix;
    return writer.put(matrix(tensor), {offsetof(T, values), offsetof(T, scales), offsetof(T, global_scale)});
  }
  const std::uint32_t begin = writer.put_address(tensor.data);
  writer.put(static_cast<long long>(tensor.strides[0]));
  writer.put(static_cast<int>(tensor.format));
  return begin;
}

std::uint32_t put_argument(StructureWriter& writer, const Argument& argument, Receiver receiver) {
  if (argument.is_tensor()) {
    return put_tensor(writer, argument, receiver);
  }
  switch (argument.kind) {
    case ArgumentKind::extent: return writer.put(static_cast<long long>(argument.integer));
    case ArgumentKind::number: return writer.put(argument.number);
    default: break;
  }
  return writer.put(static_cast<int>(argument.integer));
}

const char* python_kind(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::extent: return "extent";
    case ArgumentKind::integer: return "integer";
    case ArgumentKind::flag: return "flag";
    case ArgumentKind::choice:
    case ArgumentKind::format: return "choice";
    case ArgumentKind::number: return "number";
    default: break;
  }
  return argument.role == ArgumentRole::output ? "output" : "input";
}

}  // namespace

CallStructure call_structure(const std::vector<Argument>& arguments, Receiver receiver, void* workspace,
                             std::int64_t workspace_bytes) {
  StructureWriter writer;
  std::vector<std::uint32_t> offsets;
  for (const Argument& argument : arguments) {
    offsets.push_back(put_argument(writer, argument, receiver));
  }
  offsets.push_back(writer.put_address(workspace));
  writer.put(static_cast<long long>(workspace_bytes));
  return std::move(writer).whole(std::move(offsets));
}

std::vector<Argument> arguments_of(const Operation& operation) {
  return operation.arguments(operation.example(), no_tensor);
}

std::vector<Argument> arguments_of(const Problem& problem) { return problem.operation().arguments(problem, no_tensor); }

std::string structure_name(const Operation& operation) { return fmt::format("thresher_own_{}", operation.name()); }

std::string python_arguments(const Operation& operation) {
  const std::vector<Argument> arguments = arguments_of(operation);
  const CallStructure structure = call_structure(arguments, Receiver::python, nullptr, 0);
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    nlohmann::json one{{"name", argument.name},
                       {"kind", python_kind(argument)},
                       {"offset", structure.offsets[i]},
                       {"optional", argument.is_optional},
                       {"choices", argument.choices}};
    one["usual"] = argument.usual ? nlohmann::json(*argument.usual) : nlohmann::json();
    all.push_back(std::move(one));
  }
  all.push_back({{"name", "workspace"}, {"kind", "workspace"}, {"offset", structure.offsets.back()}});
  return all.dump();
}

}  // namespace thresher::arena::user_kernels
