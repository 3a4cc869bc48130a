#pragma once
/// Prepacked weights of any product, for one device.
#include "core/grouped_weights.hpp"
#include "ops/packed_content.hpp"
#include "ops/product_choice.hpp"
#include "thresher/device.hpp"

namespace thresher::ops {

class PackedProduct {
 public:
  /// Weights that calls read without packing: the caller's own, or those that `keepers` own.
  PackedProduct(Device device, const GroupedWeights& weights, Numerics numerics, std::vector<Keeper> keepers = {});
  /// Weights in a layout of the device's own, whose bytes lie in the device's memory.
  PackedProduct(Device device, PackedContent content);

  [[nodiscard]] const Device& device() const noexcept { return device_; }
  [[nodiscard]] Numerics numerics() const noexcept { return content_.numerics; }
  [[nodiscard]] const WeightsShape& shape() const noexcept { return shape_; }
  /// matrices_layout, or PlannedCall::packed_layout of the calls that can read it.
  [[nodiscard]] const std::string& layout() const noexcept { return content_.layout; }
  [[nodiscard]] bool is_matrices() const noexcept { return content_.layout == matrices_layout; }
  /// Shapes, formats and global scales. The data as well where they are matrices.
  [[nodiscard]] const GroupedWeights& weights() const noexcept { return weights_; }
  /// The views that calls read, and beside them the packed bytes; null for matrices.
  [[nodiscard]] const WeightViews& views() const noexcept { return views_; }
  [[nodiscard]] void* packed() const noexcept { return const_cast<std::byte*>(content_.packed.data()); }

  /// The content of files and blocks, in the host's memory.
  [[nodiscard]] PackedContent content() const;
  /// The same, seen in the device's memory where it is kept there as a block has it; else as `content` gives it.
  [[nodiscard]] PackedContent held() const;

 private:
  Device device_;
  GroupedWeights weights_;
  WeightsShape shape_;
  WeightViews views_;
  PackedContent content_;  ///< of matrices the layout and the numerics alone
  std::vector<Keeper> keepers_;
};

using PackedPointer = std::shared_ptr<const PackedProduct>;

/// Validated weights, arranged for `device`. On the CPU that is the identity: the object refers to the caller's.
[[nodiscard]] PackedPointer pack_product(const Device& device, const GroupedWeights& weights,
                                         const PackOptions& options);
/// The same by the strategy of `call`, which packs. Finished on return. Throws Error(out_of_memory).
[[nodiscard]] PackedPointer pack_by(const strategies::PlannedCall& call, const Device& device,
                                    const GroupedWeights& weights, Numerics numerics);
/// Weights as a file or a block kept them. Throws Error(unsupported) when they were packed for another kind of device.
[[nodiscard]] PackedPointer restore_product(const Device& device, PackedContent content);

/// Throws Error(unsupported) on the CPU unless the numerics are exact.
void require_exact_on_cpu(const Device& device, Numerics numerics);
/// Throws Error(invalid_argument) naming the argument unless values, scales and global scale are in the memory of GPU
/// `ordinal`.
void require_matrix_on_gpu(const Tensor& matrix, int ordinal, const std::string& argument);
/// The same of all weights.
void require_weights_on_gpu(const GroupedWeights& weights, int ordinal);

}  // namespace thresher::ops
