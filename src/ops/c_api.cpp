#include <algorithm>
#include <new>
#include <string>

#include "thresher/thresher.h"
#include "thresher/thresher.hpp"

struct thresher_weights {
  thresher::PackedWeights packed;
};

struct thresher_dual_gemm {
  thresher::DualGemm gemm;
};

namespace {

using namespace thresher;

thread_local std::string last_error;

thresher_status fail(thresher_status status, const char* sentence) noexcept {
  try {
    last_error = sentence;
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

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

template <class T>
const T& required(const T* pointer, const char* argument) {
  if (pointer == nullptr) {
    refuse(std::string(argument) + " is null");
  }
  return *pointer;
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

Format format_of(thresher_format format, const char* argument) {
  static_assert(static_cast<int>(Format::uint8) == THRESHER_UINT8 && static_cast<int>(Format::nvfp4) == THRESHER_NVFP4);
  return enumerator(format, Format::uint8, argument);
}

DeviceId id_of(thresher_device device) {
  return {enumerator(device.kind, DeviceKind::cuda, "device.kind"), device.ordinal};
}

Device device_of(thresher_device device) {
  const DeviceId id = id_of(device);
  return id.kind == DeviceKind::cpu ? Device::cpu() : Device::cuda(id.ordinal);
}

Tensor tensor_of(const thresher_matrix* matrix, const char* argument) {
  const thresher_matrix& given = required(matrix, argument);
  Tensor tensor = Tensor::contiguous(given.data, format_of(given.format, argument), {given.shape[0], given.shape[1]},
                                     id_of(given.device));
  if (given.row_stride != 0) {
    tensor.strides[0] = given.row_stride;
  }
  tensor.scales.data = given.scales;
  tensor.scales.layout = enumerator(given.scale_layout, ScaleLayout::blocked, "scale_layout");
  tensor.global_scale = given.global_scale;
  return tensor;
}

DualGemmProblem problem_of(const thresher_dual_gemm_problem* problem) {
  const thresher_dual_gemm_problem& given = required(problem, "problem");
  DualGemmProblem made{.m = given.m,
                       .n = given.n,
                       .k = given.k,
                       .a = format_of(given.a, "problem.a"),
                       .b = format_of(given.b, "problem.b"),
                       .out = format_of(given.out, "problem.out")};
  made.activation.kind = enumerator(given.activation, ActivationKind::swiglu_clamped, "problem.activation");
  const auto set = [](float& constant, float value) { constant = value != 0 ? value : constant; };
  set(made.activation.alpha, given.alpha);
  set(made.activation.limit, given.limit);
  set(made.activation.up_offset, given.up_offset);
  return made;
}

DualGemmOptions options_of(const char* strategy) { return {.strategy = strategy == nullptr ? "" : strategy}; }

void copy_text(const std::string& text, char* to, size_t capacity) {
  if (to == nullptr || capacity == 0) {
    refuse("the buffer for a name is null or empty");
  }
  const size_t length = std::min(text.size(), capacity - 1);
  text.copy(to, length);
  to[length] = '\0';
}

}  // namespace

const char* thresher_version(void) { return thresher::version(); }

const char* thresher_last_error(void) { return last_error.c_str(); }

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

thresher_status thresher_dual_gemm_strategies(thresher_device device, char* names, size_t capacity) {
  return guarded([&] {
    std::string text;
    for (const std::string& strategy : dual_gemm_strategies(device_of(device))) {
      text += (text.empty() ? "" : ",") + strategy;
    }
    copy_text(text, names, capacity);
  });
}

thresher_status thresher_pack(thresher_device device, const thresher_matrix* b1_gate, const thresher_matrix* b2_up,
                              thresher_numerics numerics, thresher_weights** weights) {
  return guarded([&] {
    required(weights, "weights");
    const PackOptions options{.numerics = enumerator(numerics, Numerics::fast, "numerics")};
    *weights = new thresher_weights{
        pack(device_of(device), tensor_of(b1_gate, "b1 (gate)"), tensor_of(b2_up, "b2 (up)"), options)};
  });
}

thresher_status thresher_save_packed(const thresher_weights* weights, const char* path) {
  return guarded([&] {
    required(path, "path");
    save_packed(required(weights, "weights").packed, path);
  });
}

thresher_status thresher_load_packed(thresher_device device, const char* path, thresher_weights** weights) {
  return guarded([&] {
    required(path, "path");
    required(weights, "weights");
    *weights = new thresher_weights{load_packed(device_of(device), path)};
  });
}

void thresher_weights_destroy(thresher_weights* weights) { delete weights; }

thresher_status thresher_plan(thresher_device device, const thresher_dual_gemm_problem* problem,
                              const thresher_weights* weights, const char* strategy, thresher_dual_gemm** plan_out) {
  return guarded([&] {
    required(plan_out, "plan");
    const thresher_weights& packed = required(weights, "weights");
    *plan_out =
        new thresher_dual_gemm{plan(device_of(device), problem_of(problem), packed.packed, options_of(strategy))};
  });
}

thresher_status thresher_plan_raw(thresher_device device, const thresher_dual_gemm_problem* problem,
                                  const thresher_matrix* b1_gate, const thresher_matrix* b2_up, const char* strategy,
                                  thresher_dual_gemm** plan_out) {
  return guarded([&] {
    required(plan_out, "plan");
    *plan_out = new thresher_dual_gemm{plan(device_of(device), problem_of(problem), tensor_of(b1_gate, "b1 (gate)"),
                                            tensor_of(b2_up, "b2 (up)"), options_of(strategy))};
  });
}

void thresher_dual_gemm_destroy(thresher_dual_gemm* plan_handle) { delete plan_handle; }

size_t thresher_workspace_bytes(const thresher_dual_gemm* plan_handle) {
  return plan_handle == nullptr ? 0 : plan_handle->gemm.workspace_bytes();
}

const char* thresher_strategy(const thresher_dual_gemm* plan_handle) {
  return plan_handle == nullptr ? "" : plan_handle->gemm.strategy().c_str();
}

thresher_status thresher_run(const thresher_dual_gemm* plan_handle, void* stream, const thresher_matrix* a,
                             const thresher_matrix* c, void* workspace) {
  return guarded(
      [&] { required(plan_handle, "plan").gemm.run(Stream{stream}, tensor_of(a, "a"), tensor_of(c, "c"), workspace); });
}

thresher_status thresher_prepare(const thresher_dual_gemm* plan_handle, void* stream, const thresher_matrix* a,
                                 void* workspace) {
  return guarded([&] { required(plan_handle, "plan").gemm.prepare(Stream{stream}, tensor_of(a, "a"), workspace); });
}

thresher_status thresher_run_prepared(const thresher_dual_gemm* plan_handle, void* stream, const thresher_matrix* a,
                                      const thresher_matrix* c, void* workspace) {
  return guarded([&] {
    required(plan_handle, "plan").gemm.run_prepared(Stream{stream}, tensor_of(a, "a"), tensor_of(c, "c"), workspace);
  });
}
