#pragma once
/// A dense feed-forward layer: out = activation(x·gateᵀ, x·upᵀ)·downᵀ, or with relu2 activation(x·upᵀ)·downᵀ. Plan once
/// and run many times.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "thresher/dual_gemm.hpp"
#include "thresher/gemm.hpp"

namespace thresher {

/// With h = activation(x·gateᵀ, x·upᵀ) rounded once to `intermediate`, out = h·downᵀ rounded once to `out`. A quantized
/// intermediate has static or dynamic scales, as any quantized output.
struct GatedMlpProblem {
  std::int64_t tokens = 0;             ///< the maximum of a call
  std::int64_t hidden_size = 0;        ///< columns of x and of out
  std::int64_t intermediate_size = 0;  ///< rows of gate and of up
  Format x = Format::bf16;             ///< any operand format
  Format gate_up = Format::bf16;       ///< any operand format; of gate and up
  Format intermediate = Format::bf16;  ///< fp16, bf16, or quantized: one of FP8, or nvfp4; with relu2 fp16 or bf16
  float intermediate_scale = 1.0F;     ///< the one scale of fp8_tensor, the global scale of nvfp4; otherwise 1
  Format down = Format::bf16;          ///< any operand format
  Format out = Format::bf16;           ///< fp16, bf16 or fp32
  Activation activation{};
  bool operator==(const GatedMlpProblem&) const = default;
};

struct GatedMlpWeights {
  Tensor gate{};  ///< [intermediate_size, hidden_size]; with relu2 none
  Tensor up{};    ///< [intermediate_size, hidden_size]
  Tensor down{};  ///< [hidden_size, intermediate_size]
};

/// Prepacked weights for one device; cheap to copy. Lifetimes are as for PackedWeights.
class PackedGatedMlpWeights {
 public:
  class Storage;
  explicit PackedGatedMlpWeights(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}
  /// From products that were packed separately, for instance in blocks. Throws Error(invalid_argument) when they are on
  /// different devices.
  PackedGatedMlpWeights(PackedWeights gate_up, PackedGemmWeights down);
  /// The same without a gate, for relu2.
  PackedGatedMlpWeights(PackedGemmWeights up, PackedGemmWeights down);
  [[nodiscard]] const Device& device() const noexcept;

  [[nodiscard]] const Storage& storage() const noexcept { return *storage_; }

 private:
  std::shared_ptr<const Storage> storage_;
};

/// Strategy, knobs and threads of each product.
struct GatedMlpOptions {
  DualGemmOptions gate_up{};
  GemmOptions down{};
  bool operator==(const GatedMlpOptions&) const = default;
};

/// A planned layer, bound to its weights. It serves every number of tokens up to the problem's. Threads and lifetimes
/// are as for DualGemm.
class GatedMlp {
 public:
  class Backend;
  explicit GatedMlp(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// x and out are [tokens, hidden_size]; row strides may exceed the row length. out must not overlap x or the weights.
  /// `workspace` has workspace_bytes() on the plan's device, aligned to 256 bytes. Asynchronous on a GPU: no
  /// allocation, no synchronisation, graph-capturable. Synchronous on the CPU. Throws Error(invalid_argument) before
  /// anything is written.
  void run(Stream stream, const Tensor& x, const Tensor& out, void* workspace) const;

  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] const GatedMlpProblem& problem() const;
  [[nodiscard]] const std::string& gate_up_strategy() const;
  [[nodiscard]] const std::string& down_strategy() const;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// Packs gate, up and down for `device`; without a gate those of relu2.
PackedGatedMlpWeights pack(const Device& device, const GatedMlpWeights& weights, const PackOptions& options = {});

/// Chooses a strategy for each product; may compile and allocate. Throws Error with a sentence that names argument,
/// value and limit. A sentence about one product begins with "gate and up: " or "down: ".
GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const PackedGatedMlpWeights& weights,
              const GatedMlpOptions& options = {});
/// The same from raw weights, which must outlive the plan.
GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& weights,
              const GatedMlpOptions& options = {});

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::GatedMlpProblem> {
  std::size_t operator()(const thresher::GatedMlpProblem& problem) const noexcept;
};
