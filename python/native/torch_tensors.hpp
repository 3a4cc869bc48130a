#pragma once
/// PyTorch's tensors by its stable ABI: the caller's, and those that a call makes.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

#include "torch_abi.h"

namespace thresher::torch_binding {

/// A function of a library that torch has loaded; null where no library has that name.
template <class Function>
Function loaded(const char* library_name, const char* name) {
  void* const library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

/// Throws PyTorch's message if the call failed.
inline void ok(AOTITorchError code) {
  if (code == thresher_torch_success) {
    return;
  }
  using What = const char* (*)();  // since torch 2.11
  static const What what = loaded<What>("libtorch_cpu.so", "torch_exception_get_what_without_backtrace");
  const char* const said = what == nullptr ? nullptr : what();
  throw std::runtime_error(said == nullptr ? "a call of PyTorch failed" : said);
}

struct DeleteTensor {
  void operator()(AtenTensorHandle tensor) const { aoti_torch_delete_tensor_object(tensor); }
};
using OwnedTensor = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

/// A tensor of the caller.
class TensorView {
 public:
  explicit TensorView(AtenTensorHandle tensor) : tensor_(tensor) {}

  [[nodiscard]] AtenTensorHandle handle() const { return tensor_; }
  [[nodiscard]] bool is_defined() const {
    bool is_defined = false;
    ok(aoti_torch_is_defined(tensor_, &is_defined));
    return is_defined;
  }
  [[nodiscard]] void* data() const {
    void* data = nullptr;
    ok(aoti_torch_get_data_ptr(tensor_, &data));
    return data;
  }
  /// False for a tensor without memory, such as one of a trace or a wrapper of others, and for freed memory.
  [[nodiscard]] bool has_memory() const {
    void* data = nullptr;
    if (!is_defined() || aoti_torch_get_data_ptr(tensor_, &data) != thresher_torch_success) {
      return false;
    }
    return data != nullptr || is_empty();
  }
  [[nodiscard]] std::size_t rank() const {
    std::int64_t rank = 0;
    ok(aoti_torch_get_dim(tensor_, &rank));
    return static_cast<std::size_t>(rank);
  }
  [[nodiscard]] std::span<const std::int64_t> sizes(std::size_t rank) const {
    return {pointer(&aoti_torch_get_sizes), rank};
  }
  [[nodiscard]] std::span<const std::int64_t> strides(std::size_t rank) const {
    return {pointer(&aoti_torch_get_strides), rank};
  }
  [[nodiscard]] bool is_empty() const {
    const auto extents = sizes(rank());
    return std::find(extents.begin(), extents.end(), 0) != extents.end();
  }
  /// Elements.
  [[nodiscard]] std::int64_t storage_offset() const { return number(&aoti_torch_get_storage_offset); }
  [[nodiscard]] std::int64_t storage_bytes() const { return number(&aoti_torch_get_storage_size); }
  [[nodiscard]] std::int32_t dtype() const { return number(&aoti_torch_get_dtype); }
  [[nodiscard]] std::int32_t device_type() const { return number(&aoti_torch_get_device_type); }
  [[nodiscard]] std::int32_t device_index() const { return number(&aoti_torch_get_device_index); }
  [[nodiscard]] bool is_cuda() const { return device_type() == aoti_torch_device_type_cuda(); }

 private:
  template <class Get>
  std::int64_t* pointer(Get get) const {
    std::int64_t* values = nullptr;
    ok(get(tensor_, &values));
    return values;
  }
  template <class Number>
  Number number(AOTITorchError (*get)(AtenTensorHandle, Number*)) const {
    Number value = 0;
    ok(get(tensor_, &value));
    return value;
  }

  AtenTensorHandle tensor_;
};

/// A new tensor on the device of another.
inline OwnedTensor empty(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::int32_t dtype,
                         TensorView like) {
  AtenTensorHandle made = nullptr;
  ok(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), dtype,
                              like.device_type(), like.device_index(), &made));
  return OwnedTensor(made);
}

}  // namespace thresher::torch_binding
