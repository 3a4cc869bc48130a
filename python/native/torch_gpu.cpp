#include "torch_gpu.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

namespace thresher::torch_binding {
namespace {

constexpr const char* cuda_library = "libtorch_cuda.so";

/// PyTorch's allocator for the current GPU, without a tensor around its memory.
struct RawMemory {
  using Allocate = AOTITorchError (*)(std::uint64_t, void**);
  using Free = AOTITorchError (*)(void*);
  Allocate allocate = loaded<Allocate>(cuda_library, "aoti_torch_cuda_caching_allocator_raw_alloc");
  Free free = loaded<Free>(cuda_library, "aoti_torch_cuda_caching_allocator_raw_delete");

  [[nodiscard]] bool is_there() const { return allocate != nullptr && free != nullptr; }
};

const RawMemory& raw_memory() {
  static const RawMemory one;
  return one;
}

/// This thread's buffer, which grows.
void* host_memory(std::int64_t bytes) {
  static thread_local std::unique_ptr<std::byte, decltype(&std::free)> memory{nullptr, &std::free};
  static thread_local std::int64_t size = 0;
  if (size < bytes) {
    const std::int64_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, static_cast<std::size_t>(rounded))));
    size = memory == nullptr ? 0 : rounded;
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
  }
  return memory.get();
}

}  // namespace

bool is_on_current_gpu(TensorView tensor) {
  std::int32_t current = -1;
  return tensor.is_cuda() && aoti_torch_get_current_device_index(&current) == thresher_torch_success &&
         current == tensor.device_index();
}

void* current_stream(std::int32_t device) {
  using Get = AOTITorchError (*)(std::int32_t, void**);
  static const Get get = loaded<Get>(cuda_library, "aoti_torch_get_current_cuda_stream");
  if (get == nullptr) {
    throw std::runtime_error("a tensor lies on a GPU, but this torch has no streams of one");
  }
  void* stream = nullptr;
  ok(get(device, &stream));
  return stream;
}

void zero(TensorView tensor, std::size_t bytes, bool is_on_current_gpu, void* stream) {
  using Set = int (*)(unsigned long long, unsigned char, std::size_t, void*);
  static const Set set = loaded<Set>("libcuda.so.1", "cuMemsetD8Async");
  if (is_on_current_gpu && set != nullptr &&
      (bytes == 0 || set(reinterpret_cast<std::uintptr_t>(tensor.data()), 0, bytes, stream) == 0)) {
    return;
  }
  ok(aoti_torch_zero_(tensor.handle()));
}

Workspace::Workspace(std::int64_t bytes, TensorView like, bool is_cuda, bool is_on_current_gpu) {
  if (bytes == 0) {
    return;
  }
  if (is_on_current_gpu && raw_memory().is_there()) {
    ok(raw_memory().allocate(static_cast<std::uint64_t>(bytes), &data_));
    is_raw_ = true;
    return;
  }
  if (is_cuda) {
    const std::array<std::int64_t, 1> size{bytes};
    const std::array<std::int64_t, 1> stride{1};
    on_gpu_ = empty(size, stride, aoti_torch_dtype_uint8(), like);
    data_ = TensorView(on_gpu_.get()).data();
    return;
  }
  data_ = host_memory(bytes);
}

Workspace::~Workspace() {
  if (is_raw_) {
    (void)raw_memory().free(data_);
  }
}

}  // namespace thresher::torch_binding
