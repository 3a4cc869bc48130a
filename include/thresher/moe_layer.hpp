#pragma once
/// One layer of a mixture of experts, from a router's choices to the tokens' outputs: choices sorted by expert, gate
/// and up of every expert, down of every expert, and each token's rows added up. Plan once and run many times.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "thresher/grouped_gemm.hpp"

namespace thresher {

/// With h = activation(x·gate[e]ᵀ + gate bias, x·up[e]ᵀ + up bias) rounded once to `intermediate`, and
/// y = h·down[e]ᵀ + down bias rounded once to `rows`, for each choice c of token t with the expert e = topk_ids[t,c]:
///   out[t] = Σ topk_weights[t,c] · y[t,c], in float32 in the order of the choices, rounded once to `out`.
///
/// A choice whose id is outside [0, experts) is skipped; a token all of whose choices are has an output of zeros. An
/// expert may come twice among the choices of a token. Choices are sorted stably and every row is computed for itself,
/// so that runs of the same call give the same bits.
struct MoeProblem {
  std::int64_t experts = 0;            ///< E, at least 1
  std::int64_t tokens = 0;             ///< the most that a call has
  std::int64_t top_k = 0;              ///< choices of a token, at least 1; tokens · top_k < 2³¹
  std::int64_t hidden_size = 0;        ///< columns of x and of out
  std::int64_t intermediate_size = 0;  ///< rows of gate and of up
  std::int64_t expected_rows = 0;      ///< choices in a usual call, a hint for the choice of kernels; 0: unknown
  Format x = Format::bf16;             ///< any format of operands
  Format gate_up = Format::bf16;       ///< any format of operands; of the weights of gate and up
  Format intermediate = Format::bf16;  ///< fp16, bf16, or requantised: one of FP8, or nvfp4
  float intermediate_scale = 1.0F;     ///< the one scale of fp8_tensor, the global scale of nvfp4; else 1
  Format down = Format::bf16;          ///< any format of operands; of the weights of down
  Format rows = Format::bf16;          ///< fp16, bf16 or fp32; of what is added up
  Format out = Format::bf16;           ///< fp16, bf16 or fp32
  Activation activation{};
  bool gate_up_bias = false;  ///< the weights of gate and up bring biases
  bool down_bias = false;
  bool operator==(const MoeProblem&) const = default;
};

/// The two grouped products of a layer, whose rows are its choices.
[[nodiscard]] GroupedProblem gate_up_problem(const MoeProblem& problem) noexcept;
[[nodiscard]] GroupedProblem down_problem(const MoeProblem& problem) noexcept;

/// The tensors of one run, all on the plan's device. Row strides of x and out may exceed the row length; out lies apart
/// from every other tensor.
struct MoeTensors {
  Tensor x{};             ///< [tokens, hidden_size]
  Tensor topk_ids{};      ///< int32 [tokens, top_k], contiguous
  Tensor topk_weights{};  ///< fp32 [tokens, top_k], contiguous; any numbers, which need not add up to 1
  Tensor out{};           ///< [tokens, hidden_size]
};

/// Strategy, knobs and threads of each product; the threads of `down` also add up the rows.
struct MoeOptions {
  GroupedOptions gate_up{};
  GroupedOptions down{};
  bool operator==(const MoeOptions&) const = default;
};

/// A planned layer, bound to its weights. It serves every number of tokens up to the problem's. `run` may be called
/// from several threads, each with a workspace of its own.
class MoeLayer {
 public:
  class Backend;
  explicit MoeLayer(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes every row of out. `workspace` has workspace_bytes() on the plan's device, aligned to 256 bytes.
  /// Asynchronous on a GPU: no allocation, no synchronisation, graph-capturable, and no grid depends on the ids;
  /// launches follow each other as dependent ones. Synchronous on the CPU. Throws Error(invalid_argument) before
  /// anything is written.
  void run(Stream stream, const MoeTensors& tensors, void* workspace) const;

  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] const MoeProblem& problem() const;
  /// The plans of the products, to be asked. Gate and up sort the choices and run in their layer alone.
  [[nodiscard]] const GroupedGemm& gate_up() const;
  [[nodiscard]] const GroupedGemm& down() const;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// Chooses a strategy for each product; may compile and allocate. `gate_up` has the gate and up of every expert, `down`
/// one matrix [E, hidden_size, intermediate_size]. Throws Error with a sentence that names argument, value and limit;
/// one that is about a product begins with "gate_up: " or "down: ".
MoeLayer plan(const Device& device, const MoeProblem& problem, const PackedGroupedWeights& gate_up,
              const PackedGroupedWeights& down, const MoeOptions& options = {});
/// The same from raw weights, which must outlive the plan.
MoeLayer plan(const Device& device, const MoeProblem& problem, const GroupedWeights& gate_up,
              const GroupedWeights& down, const MoeOptions& options = {});

}  // namespace thresher

// So that plans can be kept by what they were made for.
template <>
struct std::hash<thresher::MoeProblem> {
  std::size_t operator()(const thresher::MoeProblem& problem) const noexcept;
};
