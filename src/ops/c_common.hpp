#pragma once
/// The common parts of the C interface: errors, structs that can grow, and the types that both interfaces have.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thresher/thresher.h"
#include "thresher/thresher.hpp"

struct thresher_dual_gemm_weights {
  thresher::PackedWeights packed;
};

struct thresher_gemm_weights {
  thresher::PackedGemmWeights packed;
};

struct thresher_grouped_weights {
  thresher::PackedGroupedWeights packed;
};

namespace thresher::c {

/// A plan, as a program holds it.
template <class Plan>
struct PlanHandle {
  Plan planned;
  DeviceId device;
};

/// Keeps the sentence for this thread and returns `status`.
thresher_status fail(thresher_status status, const char* sentence) noexcept;
[[nodiscard]] Device device_of(thresher_device device);
[[nodiscard]] thresher_status status_of(ErrorCode code) noexcept;

/// The options that all products take.
[[nodiscard]] DualGemmOptions options_of(const char* strategy, const char* knobs, std::int32_t threads);
[[nodiscard]] DualGemmOptions options_of(const thresher_dual_gemm_options* options);
/// `argument` names the matrix in errors.
[[nodiscard]] Tensor tensor_of(const thresher_matrix* matrix, const char* argument, OperandRole role);
/// A matrix that is written: its scales may have to be powers of two.
[[nodiscard]] Tensor output_of(const thresher_matrix* matrix, const char* argument);

/// No exception crosses the interface.
template <class Act>
thresher_status guarded(Act act) noexcept {
  try {
    act();
    return THRESHER_OK;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(THRESHER_OUT_OF_MEMORY, "out of memory: use a smaller problem or free some memory");
  } catch (const std::exception& error) {
    return fail(THRESHER_INTERNAL, error.what());
  }
}

[[noreturn]] void refuse(const std::string& sentence);

template <class T>
const T& required(const T* pointer, const char* argument) {
  if (pointer == nullptr) {
    refuse(std::string(argument) + " is null");
  }
  return *pointer;
}

/// `*out` becomes a handle of the value of `make()`.
template <class Handle>
thresher_status create(Handle** out, const char* argument, const auto& make) noexcept {
  return guarded([&] {
    required(out, argument);
    *out = new Handle{make()};
  });
}

/// `*out` becomes a handle of the plan that `make(device)` returns.
template <class Handle>
thresher_status create_plan(thresher_device device, Handle** out, const auto& make) noexcept {
  return guarded([&] {
    required(out, "plan");
    const Device on = device_of(device);
    *out = new Handle{{make(on), on.id()}};
  });
}

/// `*out` becomes a handle of the plan for packed weights. `make_problem()` gives its problem.
template <class Handle>
thresher_status plan_packed(thresher_device device, const auto* weights, const thresher_dual_gemm_options* options,
                            Handle** out, const auto& make_problem) noexcept {
  return create_plan(device, out, [&](const Device& on) {
    const auto& packed = required(weights, "weights").packed;
    return plan(on, make_problem(), packed, options_of(options));
  });
}

/// Calls `act` with the plan.
template <class Handle>
thresher_status act_on(const Handle* handle, const auto& act) noexcept {
  return guarded([&] { act(required(handle, "plan")); });
}

/// Runs what takes one matrix and writes another. The arguments name them in errors.
template <class Handle>
thresher_status run_matrices(const Handle* handle, void* stream, const thresher_matrix* in, const char* in_argument,
                             const thresher_matrix* out, const char* out_argument, void* workspace) noexcept {
  return act_on(handle, [&](const Handle& plan) {
    plan.planned.run(Stream{stream}, tensor_of(in, in_argument, OperandRole::tokens), output_of(out, out_argument),
                     workspace);
  });
}

/// `*flags` becomes the status of the last run.
template <class Handle>
thresher_status give_status(const Handle* handle, void* stream, const void* workspace, std::uint32_t* flags) noexcept {
  return guarded([&] {
    required(flags, "flags");
    *flags = required(handle, "plan").planned.status(Stream{stream}, workspace).flags;
  });
}

template <class Handle>
std::size_t workspace_bytes_of(const Handle* handle) {
  return handle == nullptr ? 0 : handle->planned.workspace_bytes();
}

template <class Handle>
const char* strategy_of(const Handle* handle) {
  return handle == nullptr ? "" : handle->planned.strategy().c_str();
}

/// Enumerators count from 0 in both interfaces and in the same order.
template <class To, class From>
To enumerator(From value, To last, const char* argument) {
  const auto number = static_cast<long long>(value);
  if (number < 0 || number > static_cast<long long>(last)) {
    refuse(std::string(argument) + " is " + std::to_string(number) + ", expected 0 to " +
           std::to_string(static_cast<int>(last)));
  }
  return static_cast<To>(number);
}

/// No struct of any version is larger.
inline constexpr std::uint32_t max_struct_bytes = 4096;
/// The alignment of structs, and hence a divisor of the size of each in every version.
inline constexpr std::size_t struct_alignment = 8;
/// Throws unless `size`, a struct's struct_size, is that of a version which has its first `least` bytes.
void require_size(const char* argument, std::uint32_t size, std::size_t least);
/// Throws when one of the `count` bytes behind the known members is not 0.
void require_zero(const char* argument, const void* bytes, std::size_t count);

/// The struct of a program as this library knows it: members that it lacks keep their defaults, and members that are
/// not known here must be 0. The first `least` bytes have to be there.
template <class Struct>
Struct known(const Struct* given, const char* argument, std::size_t least, Struct with_defaults) {
  static_assert(alignof(Struct) == struct_alignment);
  required(given, argument);
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  require_size(argument, size, least);
  std::memcpy(&with_defaults, given, std::min<std::size_t>(size, sizeof with_defaults));
  if (size > sizeof with_defaults) {
    require_zero(argument, reinterpret_cast<const std::byte*>(given) + sizeof with_defaults,
                 size - sizeof with_defaults);
  }
  return with_defaults;
}

/// Fills a struct of `size` bytes with the defaults, and with 0 what is not known here; none is larger than
/// max_struct_bytes.
template <class Struct>
void fill(Struct* to, std::uint32_t size, const Struct& with_defaults = {}) noexcept {
  if (to == nullptr) {
    return;
  }
  std::memset(static_cast<void*>(to), 0, std::min(size, max_struct_bytes));
  std::memcpy(static_cast<void*>(to), &with_defaults, std::min<std::size_t>(size, sizeof with_defaults));
  if (size >= sizeof size) {
    std::memcpy(static_cast<void*>(to), &size, sizeof size);
  }
}

[[nodiscard]] inline std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }
[[nodiscard]] Format format_of(thresher_format format, const char* argument);
/// The member of a format that counts only where its switch is 1.
[[nodiscard]] std::optional<Format> optional_format(thresher_format format, const char* member, std::int32_t has_format,
                                                    const char* switch_name);
/// 0 or 1.
[[nodiscard]] inline bool truth(std::int32_t value, const char* argument) {
  return enumerator(value, 1, argument) == 1;
}
/// Rejects a member that must be 0.
inline void require_unset(std::int64_t value, const char* member) {
  if (value != 0) {
    refuse(std::string(member) + " is " + std::to_string(value) + ", expected 0");
  }
}
/// Rejects a member that counts only where its switch is 1, unless it has its value `unset`.
template <class Value>
void require_used(Value value, Value unset, const char* member, bool switch_is_on, const char* switch_name) {
  if (!switch_is_on && !(value == unset)) {
    refuse(std::string(member) + " is set, but " + switch_name + " is 0: set that to 1, or leave " + member +
           " as its _init function does");
  }
}
[[nodiscard]] DeviceId id_of(thresher_device device);
[[nodiscard]] Numerics numerics_of(std::int32_t numerics);

inline constexpr Activation default_activation{};
/// A problem of the header, zero but for the members of its activation.
template <class Problem>
[[nodiscard]] Problem with_default_activation() {
  Problem problem{};
  problem.activation = static_cast<thresher_activation>(default_activation.kind);
  problem.alpha = default_activation.alpha;
  problem.limit = default_activation.limit;
  problem.up_offset = default_activation.up_offset;
  return problem;
}
[[nodiscard]] Activation activation_of(std::int32_t kind, float alpha, float limit, float up_offset);
/// `constants` are alpha, limit and up_offset; null for the defaults.
[[nodiscard]] Activation activation_of(std::int32_t kind, const float* constants);

/// The format of a bias, which is as an _init function sets it where there is none.
[[nodiscard]] Format bias_format_of(const void* bias, thresher_format format, const char* argument);

/// A matrix, its row stride 0 for contiguous rows.
[[nodiscard]] Tensor matrix_of(const void* data, Format format, std::int64_t rows, std::int64_t columns,
                               std::int64_t row_stride, DeviceId device);
[[nodiscard]] Tensor with_scales(Tensor tensor, OperandRole role, const void* scales, std::int32_t layout,
                                 const float* global_scale);
/// A tensor of any rank; `optional_tensor` is empty for null.
[[nodiscard]] Tensor tensor_of(const thresher_tensor* tensor, const char* argument);
[[nodiscard]] Tensor optional_tensor(const thresher_tensor* tensor, const char* argument);

/// A matrix of a flat call: tokens or weights.
struct FlatMatrix {
  const void* data = nullptr;
  std::int64_t row_stride = 0;
  const void* scales = nullptr;
  std::int32_t scale_layout = 0;
  const float* global_scale = nullptr;
};
[[nodiscard]] Tensor tokens_of(Format format, std::int64_t rows, std::int64_t columns, const FlatMatrix& flat,
                               DeviceId device);
[[nodiscard]] Tensor weights_of(Format format, std::int64_t rows, std::int64_t columns, const FlatMatrix& flat,
                                DeviceId device);

/// A block of bytes, and how it is checked.
[[nodiscard]] std::span<const std::byte> block_of(const void* block, std::size_t bytes);
[[nodiscard]] std::span<std::byte> block_of(void* block, std::size_t bytes);
[[nodiscard]] PackedCheck check_of(std::int32_t check);
/// As much of `value` as the struct of an older program has.
void give(const thresher_packed_info& value, thresher_packed_info* info);

/// The description of packed weights. `change` sets `experts`, `matrices` and `has_bias` as the product has them.
template <class Handle>
thresher_status give_info(const Handle* weights, thresher_packed_info* info, const auto& change) {
  return guarded([&] {
    const auto& packed = required(weights, "weights").packed;
    thresher_packed_info value{};
    value.format = static_cast<thresher_format>(packed.format());
    value.n = packed.n();
    value.k = packed.k();
    value.numerics = static_cast<thresher_numerics>(packed.numerics());
    change(packed, value);
    give(value, info);
  });
}

template <class Handle>
thresher_status give_block_bytes(const Handle* weights, std::size_t* bytes) {
  return guarded([&] {
    required(bytes, "bytes");
    *bytes = block_bytes(required(weights, "weights").packed);
  });
}

template <class Handle>
thresher_status write_block(const Handle* weights, void* block, std::size_t bytes) {
  return guarded([&] { to_block(required(weights, "weights").packed, block_of(block, bytes)); });
}

/// "a,b,c", terminated; refused where it does not fit.
void copy_names(const std::vector<std::string>& names, char* to, std::size_t capacity);

}  // namespace thresher::c
