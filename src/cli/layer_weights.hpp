#pragma once
/// The matrices of one feed-forward layer of a checkpoint, on a device.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/feed_forward.hpp"
#include "formats/operands.hpp"
#include "formats/stacks.hpp"
#include "ops/device_memory.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::cli {

/// A matrix, or the stack of all experts', in the file and on the device.
struct PlacedMatrix {
  using Extents = std::array<std::int64_t, 2>;

  std::string source;
  Format format;
  Extents extents;     ///< of one matrix
  std::string stored;  ///< the format, and for MXFP4 its container
  std::unique_ptr<const ops::DeviceTensor> there;

  PlacedMatrix(const formats::Operand& operand, const Device& device);
  PlacedMatrix(const formats::Stack& stack, const Device& device);

  [[nodiscard]] const Tensor& tensor() const { return there->tensor(); }
};

class LayerWeights {
 public:
  /// Throws Error(invalid_argument) where they do not fit together.
  LayerWeights(const formats::Checkpoint& checkpoint, formats::FeedForwardNames names, ScaleLayout layout,
               const Device& device);

  [[nodiscard]] const formats::FeedForwardNames& names() const { return names_; }
  /// For stacks and blocks gate and up, and up where there is no gate.
  [[nodiscard]] const PlacedMatrix& gate() const { return matrices_.front(); }
  [[nodiscard]] const PlacedMatrix& up() const { return matrices_[matrices_.size() - 2]; }
  [[nodiscard]] const PlacedMatrix& down() const { return matrices_.back(); }
  [[nodiscard]] std::int64_t hidden_size() const { return gate().extents[1]; }
  [[nodiscard]] std::int64_t intermediate_size() const { return gate().extents[0] / (is_in_one() ? 2 : 1); }
  /// The number of experts in a MoE layer.
  [[nodiscard]] std::int64_t experts() const { return gate().tensor().shape[0]; }
  [[nodiscard]] GroupedWeights of_gate_up() const;
  [[nodiscard]] GroupedWeights of_down() const;
  /// "model.layers.3.mlp, 8 experts, gate and up [16, 32] bf16, down [32, 16] bf16, ACTIVATION; shared_experts left
  /// out".
  [[nodiscard]] std::string found(const std::string& activation) const;

 private:
  [[nodiscard]] bool is_in_one() const {
    return names_.kind == formats::FeedForwardKind::stacks || names_.kind == formats::FeedForwardKind::blocks;
  }
  template <class Matrix>
  void place_gate_and_up(Matrix gate, Matrix up, const Device& device);
  void load_matrices(const formats::Checkpoint& checkpoint, ScaleLayout layout, const Device& device);
  void load_fused(const formats::Checkpoint& checkpoint, ScaleLayout layout, const Device& device);
  void load_stacks(const formats::Checkpoint& checkpoint, ScaleLayout layout, const Device& device);
  void load_blocks(const formats::Checkpoint& checkpoint, const Device& device);
  void load_bias(const formats::Checkpoint& checkpoint, const std::string& name, const Device& device);
  void check() const;
  [[nodiscard]] Tensor bias(std::size_t matrix) const;

  formats::FeedForwardNames names_;
  std::vector<PlacedMatrix> matrices_;                            ///< gate, up, down; or gate and up in one, or no gate
  GateUpOrder order_ = GateUpOrder::gate_first;                   ///< of gate and up in one
  std::vector<std::unique_ptr<const ops::DeviceTensor>> biases_;  ///< of gate and up, and of down; or empty
  std::unique_ptr<const ops::DeviceTensor> up_scales_;  ///< for NVFP4 stacks with two global scales per matrix
};

}  // namespace thresher::cli
