#pragma once
/// One layer of MoE experts, from a router's top-k assignments to the tokens' outputs. It permutes the assignments by
/// expert, computes every expert's gate, up and down, and combines each token's rows. Plan once and run many times.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "thresher/grouped_gemm.hpp"

namespace thresher {

/// With h = activation(x·gate[e]ᵀ + gate bias, x·up[e]ᵀ + up bias) rounded once to `intermediate`, and y = h·down[e]ᵀ +
/// down bias rounded once to `rows` (with relu2 h is of x·up[e]ᵀ + up bias alone), for each assignment c of token t
/// with the expert e = topk_ids[t,c]:
///   out[t] = Σ topk_weights[t,c] · y[t,c], in float32 in the order of the assignments, rounded once to `out`.
///
/// An assignment whose id is outside [0, experts) is skipped; a token whose assignments are all skipped has an output
/// of zeros. A token may name an expert twice. The permutation is stable and every row is computed separately, so that
/// runs of the same call give the same bits.
struct MoeProblem {
  std::int64_t experts = 0;            ///< E, at least 1
  std::int64_t tokens = 0;             ///< the maximum of a call
  std::int64_t top_k = 0;              ///< assignments per token, at least 1; tokens · top_k < 2³¹
  std::int64_t hidden_size = 0;        ///< columns of x and of out
  std::int64_t intermediate_size = 0;  ///< rows of gate and of up
  std::int64_t expected_rows = 0;      ///< assignments in a usual call, a hint for the choice of kernels; 0: unknown
  Format x = Format::bf16;             ///< any operand format
  Format gate_up = Format::bf16;       ///< any operand format; of the weights of gate and up
  Format intermediate = Format::bf16;  ///< fp16, bf16, or quantized: one of FP8, or nvfp4
  float intermediate_scale = 1.0F;     ///< the one scale of fp8_tensor, the global scale of nvfp4; otherwise 1
  Format down = Format::bf16;          ///< any operand format; of the weights of down
  Format rows = Format::bf16;          ///< fp16, bf16 or fp32; of the combined rows
  Format out = Format::bf16;           ///< fp16, bf16 or fp32
  Activation activation{};
  bool gate_up_bias = false;  ///< the weights of gate and up have biases
  bool down_bias = false;
  /// fp8_block or fp8_row: x in fp16 or bf16 is quantized to it first (QuantizeProblem). The launch that gathers rows
  /// does so for blocks of 128 values. Empty: x is multiplied as it is.
  std::optional<Format> quantized_x{};
  bool operator==(const MoeProblem&) const = default;
};

/// The two grouped products of a layer, whose rows are its top-k assignments.
[[nodiscard]] GroupedProblem gate_up_problem(const MoeProblem& problem) noexcept;
[[nodiscard]] GroupedProblem down_problem(const MoeProblem& problem) noexcept;

/// The tensors of one run, all on the plan's device. Row strides of x and out may exceed the row length. out must not
/// overlap any other tensor.
struct MoeTensors {
  Tensor x{};             ///< [tokens, hidden_size]
  Tensor topk_ids{};      ///< int32 [tokens, top_k], contiguous
  Tensor topk_weights{};  ///< fp32 [tokens, top_k], contiguous; arbitrary, need not sum to 1
  Tensor out{};           ///< [tokens, hidden_size]
};

/// Strategy, knobs and threads of each product; the threads of `down` also combine the rows.
struct MoeOptions {
  GroupedOptions gate_up{};
  GroupedOptions down{};
  bool operator==(const MoeOptions&) const = default;
};

/// The plan of a product of a layer. The product runs in the layer alone.
class LayerProduct {
 public:
  explicit LayerProduct(const ops::ProductPlan& plan) : plan_(&plan) {}
  [[nodiscard]] const std::string& strategy() const noexcept;
  [[nodiscard]] std::size_t workspace_bytes() const noexcept;  ///< its part of the layer's

 private:
  const ops::ProductPlan* plan_;
};

/// A planned layer, bound to its weights. It serves every number of tokens up to the problem's. Threads and lifetimes
/// are as for DualGemm.
class MoeLayer {
 public:
  class Backend;
  explicit MoeLayer(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes every row of out. `workspace` has workspace_bytes() on the plan's device, aligned to 256 bytes.
  /// Asynchronous on a GPU: no allocation, no synchronisation, graph-capturable, and no grid depends on the ids. Its
  /// launches use programmatic dependent launch (PDL). Synchronous on the CPU. Throws Error(invalid_argument) before
  /// anything is written.
  void run(Stream stream, const MoeTensors& tensors, void* workspace) const;

  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] const MoeProblem& problem() const;
  /// Valid as long as the layer.
  [[nodiscard]] LayerProduct gate_up() const;
  [[nodiscard]] LayerProduct down() const;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// Chooses a strategy for each product; may compile and allocate. `gate_up` has the gate and up of every expert, with
/// relu2 its up alone, `down` one matrix [E, hidden_size, intermediate_size]. Throws Error with a sentence that names
/// argument, value and limit. A sentence about one product begins with "gate_up: " or "down: ".
MoeLayer plan(const Device& device, const MoeProblem& problem, const PackedGroupedWeights& gate_up,
              const PackedGroupedWeights& down, const MoeOptions& options = {});
/// The same from raw weights, which must outlive the plan.
MoeLayer plan(const Device& device, const MoeProblem& problem, const GroupedWeights& gate_up,
              const GroupedWeights& down, const MoeOptions& options = {});

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::MoeProblem> {
  std::size_t operator()(const thresher::MoeProblem& problem) const noexcept;
};
