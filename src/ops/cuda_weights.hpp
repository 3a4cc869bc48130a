#pragma once
/// Weights packed for a GPU: copies that the caller's tensors need not outlive.
#include "ops/backend.hpp"
#include "runtime/memory.hpp"

namespace thresher::ops {

/// Memory of one GPU, owned, or seen where somebody else keeps it.
class GpuBytes {
 public:
  GpuBytes() = default;
  GpuBytes(runtime::DeviceBuffer owned)  // NOLINT(google-explicit-constructor): it is such memory
      : owned_(std::move(owned)), data_(owned_.data()), bytes_(owned_.bytes()) {}
  /// What `bytes` sees on the GPU, or a copy there of what they hold on the host.
  GpuBytes(const Bytes& bytes, bool on_device, int ordinal, const char* purpose);

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const float* floats() const noexcept { return static_cast<const float*>(data_); }
  /// A copy on the host.
  [[nodiscard]] Bytes to_host(int ordinal) const;
  /// Where they are, on the GPU.
  [[nodiscard]] Bytes seen() const { return bytes_ == 0 ? Bytes{} : Bytes::seen(data_, bytes_); }

 private:
  runtime::DeviceBuffer owned_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A copy of one matrix in GPU memory, or of a stack of them, with its strides, scales and global scales.
class DeviceMatrix {
 public:
  explicit DeviceMatrix(const Tensor& source);
  [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }
  [[nodiscard]] PackedMatrix to_host() const;

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
  [[nodiscard]] PackedContent held() const override;

 private:
  CudaWeights(const Device& device, DeviceMatrix gate, DeviceMatrix up, Numerics numerics);
  DeviceMatrix gate_;
  DeviceMatrix up_;
};

/// Weights that are read where a block keeps them, on the GPU.
class SeenWeights final : public PackedWeights::Storage {
 public:
  using Storage::Storage;
  [[nodiscard]] PackedContent content() const override;
  [[nodiscard]] PackedContent held() const override;
};

/// Bytes from the first to the last byte of a tensor, row strides included.
std::size_t extent_bytes(const Tensor& tensor);

/// Throws Error(invalid_argument) naming the argument unless values, scales and global scale are in the memory of GPU
/// `ordinal`.
void require_matrix_on_gpu(const Tensor& matrix, int ordinal, const std::string& argument);

}  // namespace thresher::ops
