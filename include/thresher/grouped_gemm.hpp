#pragma once
/// Grouped matrix products for MoE experts: each group of rows is multiplied by the weights of its expert. The grouped
/// dual GEMM computes C = activation(A·B1ᵀ) ∘ (A·B2ᵀ) in each group, the plain grouped GEMM C = A·Bᵀ. Plan once and run
/// many times.
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

/// The layout of the experts' rows. A plan never reads counts, offsets or ids on the host. They may change from call to
/// call, also between replays of a captured graph.
enum class RowLayout : std::uint8_t {
  packed,    ///< contiguous: A [rows,K], C [rows,N]; expert e owns rows offsets[e] … offsets[e+1]−1, any number, no
             ///< padding
  slots,     ///< masked: A [E,capacity,K], C [E,capacity,N]; expert e owns the first counts[e] rows of its slot
  gathered,  ///< C as packed; its row r takes row row_ids[r] / row_ids_divisor of A [tokens,K]; ids may repeat
};

inline constexpr std::array all_row_layouts{RowLayout::packed, RowLayout::slots, RowLayout::gathered};

[[nodiscard]] std::string_view name(RowLayout layout) noexcept;
/// The layout of that name; empty when there is none.
[[nodiscard]] std::optional<RowLayout> parse_row_layout(std::string_view text) noexcept;

/// The order of the rows of gate and up in one fused tensor.
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

/// One grouped product. A row that expert e owns has, with products in float32 (float64 in the reference):
///   gate = (A·B1[e]ᵀ)·scales + bias1[e],  up = (A·B2[e]ᵀ)·scales + bias2[e],  c = activation(gate, up) · row_weight,
/// without an activation c = gate · row_weight, and with relu2 c = max(gate, 0)² · row_weight, rounded once to `out`.
///
/// Unassigned rows are left unchanged. They are the rows before the first offset and behind the last, and the rows of a
/// slot from its count on. Gathered rows whose id is outside [0, tokens · row_ids_divisor) are unassigned too. An
/// expert without rows costs nothing. An id may occur any number of times; each row is computed separately.
///
/// Invalid offsets are clamped: start e is the maximum of offsets[0] … offsets[e], each first clamped to [0, rows].
/// Expert e owns rows start e … start e+1 − 1. A count is clamped to [0, capacity]. So groups never overlap and no
/// access is outside the tensors; `GroupedGemm::status` reports it.
struct GroupedProblem {
  std::int64_t experts = 0;  ///< E, at least 1
  std::int64_t rows = 0;     ///< the maximum of C's rows in a call; slots: the maximum per slot (the capacity)
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t tokens = 0;         ///< gathered: the maximum of A's rows; otherwise unused
  std::int64_t expected_rows = 0;  ///< rows that experts own in a usual call, a hint for the choice; 0: unknown
  RowLayout layout = RowLayout::packed;
  std::int64_t row_ids_divisor = 1;  ///< gathered: top-k if ids count token · k + assignment; at least 1
  Format a = Format::fp16;           ///< fp16, bf16, nvfp4 or one of FP8
  Format b = Format::fp16;           ///< fp16, bf16, nvfp4 or one of FP8; of all weights
  Format out = Format::fp16;         ///< fp16, bf16, fp32, or quantized: one of FP8, or nvfp4
  /// The grouped dual GEMM has one of gate and up. Empty or relu2: one weight matrix per expert.
  std::optional<Activation> activation{};
  bool bias = false;         ///< the weights have biases
  bool row_weights = false;  ///< every row of C is multiplied by its own float32, before it is rounded
  bool operator==(const GroupedProblem&) const = default;
};

/// The weights of all experts. Gate and up are two tensors, or one whose order the caller must state: a wrong order
/// cannot be detected. A plain grouped GEMM has b1 alone.
///
/// NVFP4 values are contiguous. Every expert's scales are those of a separate matrix, one expert behind the other;
/// `global_scale` points to one float32 per expert (null: all 1). A fused tensor of gate and up has row-major scales.
struct GroupedWeights {
  Tensor b1{};  ///< [E,N,K], the gate; with `order` [E,2·N,K], both
  Tensor b2{};  ///< [E,N,K], up
  std::optional<GateUpOrder> order{};
  /// With `order`: one float32 per expert for up, while b1.global_scale is for the gate; null: the same as the gate's.
  const float* up_global_scale = nullptr;
  Tensor bias1{};  ///< optional: [E,N] of the gate, with `order` [E,2·N] in the same order; fp32, fp16 or bf16
  Tensor bias2{};  ///< [E,N] of up if there are two tensors

  /// 2 for gate and up, otherwise 1.
  [[nodiscard]] int matrices() const noexcept { return order || b2.rank > 0 ? 2 : 1; }
  [[nodiscard]] bool has_bias() const noexcept { return bias1.rank > 0; }
};

/// The tensors of one run, all on the plan's device. Row strides may exceed the row length; K and N are contiguous. C
/// must not overlap any other tensor. An NVFP4 A in slots is contiguous; its scales and global scales are like those of
/// weights, a separate matrix per slot. In other layouts A has one global scale.
struct GroupedTensors {
  Tensor a{};            ///< [rows,K], slots: [E,capacity,K], gathered: [tokens,K]
  Tensor c{};            ///< [rows,N], slots: [E,capacity,N]
  Tensor offsets{};      ///< int32 [E+1]; packed and gathered
  Tensor counts{};       ///< int32 [E]; slots
  Tensor row_ids{};      ///< int32 [rows]; gathered
  Tensor row_weights{};  ///< fp32 [rows], slots: [E,capacity]; if the problem has them
};

/// Flags for what was invalid in the offsets, counts or ids of a run; none if they were valid. An id outside [0, tokens
/// · divisor) is a way to skip a row, so `skipped_rows` is no mistake by itself.
struct GroupedStatus {
  static constexpr std::uint32_t decreasing = 1;    ///< an offset is less than the one before it
  static constexpr std::uint32_t negative = 2;      ///< an offset or a count is below 0
  static constexpr std::uint32_t beyond = 4;        ///< an offset is above the rows of C, a count above the capacity
  static constexpr std::uint32_t skipped_rows = 8;  ///< an id of a row that an expert owns is outside A

  std::uint32_t flags = 0;

  [[nodiscard]] bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  /// No offset or count was clamped.
  [[nodiscard]] bool makes_sense() const noexcept { return !has(decreasing | negative | beyond); }
  /// One sentence.
  [[nodiscard]] std::string explain() const;
  bool operator==(const GroupedStatus&) const = default;
};

/// Prepacked weights for one device; cheap to copy. Lifetimes are as for PackedWeights.
class PackedGroupedWeights {
 public:
  using Storage = ops::PackedProduct;
  explicit PackedGroupedWeights(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}
  [[nodiscard]] std::int64_t experts() const noexcept;
  [[nodiscard]] std::int64_t n() const noexcept;  ///< rows of one matrix of one expert: problem.n must equal it
  [[nodiscard]] std::int64_t k() const noexcept;
  [[nodiscard]] int matrices() const noexcept;   ///< 2 for gate and up
  [[nodiscard]] Format format() const noexcept;  ///< before packing
  [[nodiscard]] bool has_bias() const noexcept;
  [[nodiscard]] Numerics numerics() const noexcept;
  [[nodiscard]] const Device& device() const noexcept;

  [[nodiscard]] const Storage& storage() const noexcept { return *storage_; }
  [[nodiscard]] const std::shared_ptr<const Storage>& shared() const noexcept { return storage_; }

 private:
  std::shared_ptr<const Storage> storage_;
};

/// The options of the dual GEMM: strategy, knobs (`numerics` among them) and threads.
using GroupedOptions = DualGemmOptions;

/// A planned grouped product, bound to its weights. It serves every number of rows up to the problem's. Threads and
/// lifetimes are as for DualGemm.
class GroupedGemm {
 public:
  using Backend = ops::ProductPlan;
  GroupedGemm(const GroupedProblem& problem, std::shared_ptr<const Backend> backend)
      : problem_(problem), backend_(std::move(backend)) {}

  /// Writes the rows of C that experts own. `workspace` is as DualGemm::run says. Asynchronous on a GPU: no allocation,
  /// no synchronisation, graph-capturable, and the grid does not depend on the counts. Synchronous on the CPU. Throws
  /// Error(invalid_argument) before anything is written.
  void run(Stream stream, const GroupedTensors& tensors, void* workspace = nullptr) const;
  /// The invalid offsets, counts and ids that the last run in `stream` with this workspace found. Waits for the stream.
  [[nodiscard]] GroupedStatus status(Stream stream, const void* workspace) const;

  [[nodiscard]] std::size_t workspace_bytes() const;  ///< enough for every number of rows
  [[nodiscard]] const std::string& strategy() const;
  [[nodiscard]] const GroupedProblem& problem() const noexcept { return problem_; }

 private:
  GroupedProblem problem_;
  std::shared_ptr<const Backend> backend_;
};

/// Packs the weights of all experts for `device`.
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

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::GroupedProblem> {
  std::size_t operator()(const thresher::GroupedProblem& problem) const noexcept;
};
