#pragma once
/// Streams and memory of PyTorch's GPUs, and the workspace of a call.
#include <cstddef>
#include <cstdint>

#include "torch_tensors.hpp"

namespace thresher::torch_binding {

/// Whether the tensor lies on the GPU that is current in this thread.
[[nodiscard]] bool is_on_current_gpu(TensorView tensor);

[[nodiscard]] void* current_stream(std::int32_t device);

/// Zeroes a new tensor of so many bytes: on the GPU that is current by the driver, without an operator of PyTorch.
void zero(TensorView tensor, std::size_t bytes, bool is_on_current_gpu, void* stream);

/// Memory that a call has to itself. PyTorch's allocator gives that of a GPU, so that a graph's own pool does while one
/// is captured; the stream's order lets it be given away again once the call is enqueued.
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
