#pragma once
/// Matrix products in groups, as a mixture of experts has them: every group of rows is multiplied by the weights of its
/// own expert. The grouped dual GEMM computes C = activation(A·B1ᵀ) ∘ (A·B2ᵀ) in each group, the plain grouped GEMM
/// C = A·Bᵀ; plan once and run many times.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher {

/// How the rows of the experts lie. Whoever runs a plan never reads counts, offsets or ids on the host: they may change
/// from call to call, also between replays of a captured graph.
enum class RowLayout : std::uint8_t {
  packed,    ///< A [rows,K] and C [rows,N]: expert e owns rows offsets[e] … offsets[e+1]−1, any number, no padding
  slots,     ///< A [E,capacity,K] and C [E,capacity,N]: expert e owns the first counts[e] rows of its slot
  gathered,  ///< C as packed; its row r takes row row_ids[r] / row_ids_divisor of A [tokens,K], however often
};

inline constexpr std::array all_row_layouts{RowLayout::packed, RowLayout::slots, RowLayout::gathered};

[[nodiscard]] std::string_view name(RowLayout layout) noexcept;
/// The layout of that name; empty when there is none.
[[nodiscard]] std::optional<RowLayout> parse_row_layout(std::string_view text) noexcept;

/// How the rows of gate and up lie in one fused tensor.
enum class GateUpOrder : std::uint8_t {
  gate_first,   ///< all of gate, then all of up
  up_first,     ///< all of up, then all of gate
  interleaved,  ///< gate, up, gate, up, …
};

inline constexpr std::array all_gate_up_orders{GateUpOrder::gate_first, GateUpOrder::up_first,
                                               GateUpOrder::interleaved};

/// "gate-first", …
[[nodiscard]] std::string_view name(GateUpOrder order) noexcept;
/// The order of that name; empty when there is none.
[[nodiscard]] std::optional<GateUpOrder> parse_gate_up_order(std::string_view text) noexcept;

/// One grouped product. An element of a row that expert e owns, with the products in float32 (float64 in the
/// reference):
///   gate = (A·B1[e]ᵀ)·scales + bias1[e],  up = (A·B2[e]ᵀ)·scales + bias2[e],  c = activation(gate, up) · row_weight,
/// or without an activation c = gate · row_weight, rounded once to `out`.
///
/// Rows that no expert owns are left as they are: those before the first offset and behind the last, those of a slot
/// from its count on, and gathered ones whose id is outside [0, tokens · row_ids_divisor). An expert without rows costs
/// nothing and changes nothing. An id may come any number of times; each row is computed for itself.
///
/// Offsets that make no sense are made to: start e is the greatest of offsets[0] … offsets[e], each first limited to
/// [0, rows], and expert e owns rows start e … start e+1 − 1; a count is limited to [0, capacity]. So groups never
/// overlap and nothing outside the tensors is touched; `GroupedGemm::status` says that it happened.
struct GroupedProblem {
  std::int64_t experts = 0;  ///< E, at least 1
  std::int64_t rows = 0;     ///< the most rows that a call's C has; slots: the most that one slot has (the capacity)
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t tokens = 0;         ///< gathered: the most rows of A; else unused
  std::int64_t expected_rows = 0;  ///< rows that experts own in a usual call, a hint for the choice; 0: unknown
  RowLayout layout = RowLayout::packed;
  std::int64_t row_ids_divisor = 1;  ///< gathered: top-k where ids count token · k + choice; at least 1
  Format a = Format::fp16;           ///< fp16, bf16, nvfp4 or one of FP8
  Format b = Format::fp16;           ///< fp16, bf16, nvfp4 or one of FP8; of all weights
  Format out = Format::fp16;         ///< fp16, bf16, fp32, or requantised: one of FP8, or nvfp4
  /// The grouped dual GEMM's; empty: one weight matrix an expert, no activation.
  std::optional<Activation> activation{};
  bool bias = false;         ///< the weights bring biases
  bool row_weights = false;  ///< every row of C is multiplied by a float32 of its own, before it is rounded
  bool operator==(const GroupedProblem&) const = default;
};

/// The weights of all experts. Gate and up come as two tensors, or as one whose order must be said: nothing can tell a
/// wrong one from a right one. A plain grouped GEMM has b1 alone.
///
/// Of NVFP4 the values are contiguous, and every expert's scales lie as those of a matrix of its own, one expert behind
/// the other; `global_scale` points to one float32 for each expert (null: all 1). One tensor of gate and up has
/// row-major scales.
struct GroupedWeights {
  Tensor b1{};  ///< [E,N,K], the gate; with `order` [E,2·N,K], both
  Tensor b2{};  ///< [E,N,K], up
  std::optional<GateUpOrder> order{};
  /// With `order`: one float32 for each expert's up, where b1.global_scale is the gate's; null: the same as the gate's.
  const float* up_global_scale = nullptr;
  Tensor bias1{};  ///< optional: [E,N] of the gate, with `order` [E,2·N] in the same order; fp32, fp16 or bf16
  Tensor bias2{};  ///< [E,N] of up where there are two tensors

  /// Gate and up, or one matrix.
  [[nodiscard]] int matrices() const noexcept { return order || b2.rank > 0 ? 2 : 1; }
  [[nodiscard]] bool has_bias() const noexcept { return bias1.rank > 0; }
};

/// The tensors of one run, all on the plan's device. Row strides may exceed the row length, K and N are contiguous, and
/// C lies apart from every other tensor. A of NVFP4 in slots is contiguous, and its scales and global scales are as
/// those of weights: a matrix of its own for each slot. Elsewhere A has one global scale.
struct GroupedTensors {
  Tensor a{};            ///< [rows,K], slots: [E,capacity,K], gathered: [tokens,K]
  Tensor c{};            ///< [rows,N], slots: [E,capacity,N]
  Tensor offsets{};      ///< int32 [E+1]; packed and gathered
  Tensor counts{};       ///< int32 [E]; slots
  Tensor row_ids{};      ///< int32 [rows]; gathered
  Tensor row_weights{};  ///< fp32 [rows], slots: [E,capacity]; where the problem has them
};

/// What was wrong with the offsets, counts or ids of a run; nothing: they made sense. Ids outside [0, tokens · divisor)
/// are a way to skip a row, so `skipped_rows` is no mistake by itself.
struct GroupedStatus {
  static constexpr std::uint32_t decreasing = 1;    ///< an offset is less than the one before it
  static constexpr std::uint32_t negative = 2;      ///< an offset or a count is below 0
  static constexpr std::uint32_t beyond = 4;        ///< an offset is above the rows of C, a count above the capacity
  static constexpr std::uint32_t skipped_rows = 8;  ///< an id of a row that an expert owns is outside A

  std::uint32_t flags = 0;

  [[nodiscard]] bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  /// No offset or count had to be limited.
  [[nodiscard]] bool makes_sense() const noexcept { return !has(decreasing | negative | beyond); }
  /// One sentence.
  [[nodiscard]] std::string explain() const;
  bool operator==(const GroupedStatus&) const = default;
};

/// Weights arranged once for a device; cheap to copy, shared by every plan made from them. On the CPU packing is the
/// identity: the object refers to the caller's tensors, which must outlive it.
class PackedGroupedWeights {
 public:
  class Storage;
  explicit PackedGroupedWeights(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}
  [[nodiscard]] std::int64_t experts() const noexcept;
  [[nodiscard]] std::int64_t n() const noexcept;  ///< rows of one matrix of one expert: what problem.n must be
  [[nodiscard]] std::int64_t k() const noexcept;
  [[nodiscard]] int matrices() const noexcept;   ///< 2 for gate and up
  [[nodiscard]] Format format() const noexcept;  ///< what they were before packing
  [[nodiscard]] bool has_bias() const noexcept;
  [[nodiscard]] Numerics numerics() const noexcept;
  [[nodiscard]] const Device& device() const noexcept;

  [[nodiscard]] const Storage& storage() const noexcept { return *storage_; }
  [[nodiscard]] const std::shared_ptr<const Storage>& shared() const noexcept { return storage_; }

 private:
  std::shared_ptr<const Storage> storage_;
};

/// As for the dual GEMM: strategy, knobs (`numerics` among them) and threads.
using GroupedOptions = DualGemmOptions;

/// A planned grouped product, bound to its weights. It serves every number of rows up to the problem's. `run` may be
/// called from several threads.
class GroupedGemm {
 public:
  class Backend;
  explicit GroupedGemm(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes the rows of C that experts own. `workspace` is as DualGemm::run says. Asynchronous on a GPU: no allocation,
  /// no synchronisation, graph-capturable, and the grid does not depend on the counts. Synchronous on the CPU. Throws
  /// Error(invalid_argument) before anything is written.
  void run(Stream stream, const GroupedTensors& tensors, void* workspace = nullptr) const;
  /// What the last run in `stream` with this workspace found in its offsets, counts and ids. Waits for the stream.
  [[nodiscard]] GroupedStatus status(Stream stream, const void* workspace) const;

  [[nodiscard]] std::size_t workspace_bytes() const;  ///< enough for every number of rows
  [[nodiscard]] const std::string& strategy() const;
  [[nodiscard]] const GroupedProblem& problem() const;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// Arranges the weights of all experts for `device`.
PackedGroupedWeights pack(const Device& device, const GroupedWeights& weights, const PackOptions& options = {});

/// Chooses a strategy; may compile and allocate. Throws Error with a sentence that names argument, value and limit.
GroupedGemm plan(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                 const GroupedOptions& options = {});
/// The same from raw weights, which must outlive the plan.
GroupedGemm plan(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                 const GroupedOptions& options = {});

/// Names of the strategies that `device` offers for the grouped dual GEMM and the grouped GEMM, the default first.
std::vector<std::string> grouped_gemm_strategies(const Device& device);

}  // namespace thresher

// So that plans can be kept by what they were made for.
template <>
struct std::hash<thresher::GroupedProblem> {
  std::size_t operator()(const thresher::GroupedProblem& problem) const noexcept;
};
