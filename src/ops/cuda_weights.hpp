#pragma once
/// Weights packed for a GPU: copies that the caller's tensors need not outlive.
#include "ops/backend.hpp"
#include "runtime/memory.hpp"

namespace thresher::ops {

/// A copy of one matrix in GPU memory, or of a stack of them, with its strides, scales and global scales.
class DeviceMatrix {
 public:
  explicit DeviceMatrix(const Tensor& source);
  [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }
  [[nodiscard]] HostMatrix to_host() const;  ///< of one matrix

 private:
  runtime::DeviceBuffer values_;
  runtime::DeviceBuffer scales_;
  runtime::DeviceBuffer global_scale_;
  Tensor tensor_;
};

class CudaWeights final : public PackedWeights::Storage {
 public:
  CudaWeights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics);
  [[nodiscard]] PackedContent content() const override;

 private:
  CudaWeights(const Device& device, DeviceMatrix gate, DeviceMatrix up, Numerics numerics);
  DeviceMatrix gate_;
  DeviceMatrix up_;
};

/// Bytes from the first to the last byte of a tensor, row strides included.
std::size_t extent_bytes(const Tensor& tensor);

/// Throws Error(invalid_argument) naming the argument unless values, scales and global scale are in the memory of GPU
/// `ordinal`.
void require_matrix_on_gpu(const Tensor& matrix, int ordinal, const std::string& argument);

}  // namespace thresher::ops
