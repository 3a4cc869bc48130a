#pragma once
/// Streams and memory of PyTorch's GPUs, and the workspace of a call.
#include <cstddef>
#include <cstdint>

#include "torch_tensors.hpp"

namespace thresher::torch_binding {

/// Whether the tensor lies on this thread's current GPU.
[[nodiscard]] bool is_on_current_gpu(TensorView tensor);

[[nodiscard]] void* current_stream(std::int32_t device);

/// Zeroes a new tensor of that many bytes. On the current GPU the driver does it, without an operator of PyTorch.
void zero(TensorView tensor, std::size_t bytes, bool is_on_current_gpu, void* stream);

/// Memory for one call alone. A GPU's comes from PyTorch's allocator, so that a captured graph uses its own pool.
/// Stream order allows its reuse once the call is enqueued.
class Workspace {
 public:
  Workspace(std::int64_t bytes, TensorView like, bool is_cuda, bool is_on_current_gpu);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();
  [[nodiscard]] void* data() const { return data_; }

 private:
  OwnedTensor on_gpu_;
  void* data_ = nullptr;
  bool is_raw_ = false;
};

}  // namespace thresher::torch_binding
