#pragma once
/// Scaled dot-product attention, forward: O = softmax(Q·Kᵀ·scale + mask)·V for each batch and head. Plan once, run many
/// times.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/device.hpp"
#include "thresher/knobs.hpp"
#include "thresher/tensor.hpp"

namespace thresher {

/// The shapes and options of one attention. Query head h reads key/value head h / (heads / kv_heads).
///
/// Query i of a sequence sees key j iff i + keys − queries − window_left ≤ j ≤ i + keys − queries + window_right, where
/// −1 is unbounded. `causal` bounds the right side by 0 as well (aligned bottom-right). A query whose keys are all
/// masked gives O = 0 and LSE = −Inf; a query whose visible logits are all −Inf gives NaN. logit = scale·q·k, or
/// softcap·tanh(scale·q·k/softcap).
struct AttentionProblem {
  std::int64_t batch = 1;        ///< sequences
  std::int64_t heads = 1;        ///< query heads, a multiple of kv_heads
  std::int64_t kv_heads = 1;     ///< at least 1
  std::int64_t queries = 0;      ///< Sq, or with variable_length the total number of queries of all sequences
  std::int64_t keys = 0;         ///< Sk, or with variable_length the total number of keys
  std::int64_t head_dim = 64;    ///< of q and k: 64, 128, 192, 256 or 576
  std::int64_t value_dim = 0;    ///< of v and o: 64, 128, 192, 256 or 512; 0: head_dim
  Format format = Format::fp16;  ///< fp16 or bf16; of o, and of q, k and v without q_format and kv_format
  /// The format of k and v: empty for `format`, or fp8_e4m3, whose values are multiplied by k_descale and v_descale.
  std::optional<Format> kv_format{};
  /// The format of q: empty for `format`, or fp8_e4m3 if kv_format is too; its values are multiplied by q_descale. A
  /// GPU may then also round the softmax weights to fp8_e4m3; its tolerance accounts for this
  /// (docs/design/kernels/attention.md).
  std::optional<Format> q_format{};
  bool causal = false;
  std::optional<float> scale{};   ///< 1/√head_dim when empty; any finite number, also 0 or negative
  std::int64_t window_left = -1;  ///< keys to the left that are visible, −1 for all
  std::int64_t window_right = -1;
  float softcap = 0.0F;  ///< 0 for none, else > 0
  /// Sequences of different lengths, packed one after another: q is [T,H,D], k and v are [Tk,Hk,D]. Sequence b has the
  /// queries cu_seqlens_q[b] … cu_seqlens_q[b+1]−1 and the keys cu_seqlens_k[b] … cu_seqlens_k[b+1]−1.
  bool variable_length = false;
  /// Rows of a page of the paged KV cache; 0: not paged. Needs variable_length: q is packed by cu_seqlens_q. k is
  /// [pages, page_size, Hk, D] with arbitrary strides, v the same with value_dim. Sequence b has seqused_k[b] keys, at
  /// most `keys`; key j lies in row j % page_size of page block_table[b, j / page_size].
  std::int64_t page_size = 0;
  std::int64_t pages = 0;  ///< pages of k and v, with page_size
  /// Attention sinks: one logit per query head joins the softmax denominator and has no value. A row whose keys are all
  /// masked gives O = 0 and LSE = the sink. Softcap and scale do not apply to it.
  bool sinks = false;
  bool operator==(const AttentionProblem&) const = default;
};

/// `problem.scale`, or 1/√head_dim.
[[nodiscard]] float effective_scale(const AttentionProblem& problem) noexcept;
/// `problem.value_dim`, or head_dim.
[[nodiscard]] std::int64_t effective_value_dim(const AttentionProblem& problem) noexcept;
/// `problem.q_format`, or format.
[[nodiscard]] Format effective_q_format(const AttentionProblem& problem) noexcept;
/// `problem.kv_format`, or format.
[[nodiscard]] Format effective_kv_format(const AttentionProblem& problem) noexcept;

/// The tensors of one run, all on the plan's device. Fixed length: q and o have the shape [B,H,Sq,D], k and v
/// [B,Hk,Sk,D]; the memory order [B,S,H,D] is expressed by the strides, without a copy. The last dimension is
/// contiguous and the other strides are multiples of 16 bytes (8 elements of 16 bits, 16 of FP8) and not negative.
struct AttentionTensors {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;
  /// Optional (data null: not wanted): float32 [B,H,Sq], or [H,T] with variable length; the last dimension contiguous.
  /// It receives the natural logarithm of the sum of exponentials of the row's visible logits.
  Tensor lse{};
  /// Variable length only: int32 [B+1] on the plan's device, not decreasing, from 0 to at most the number of rows of q
  /// (k). Rows behind the last sequence are not read; those of o and lse are left unchanged. Otherwise null.
  Tensor cu_seqlens_q{};
  Tensor cu_seqlens_k{};  ///< not with paged keys
  /// With paged keys: int32 [B, ceil(keys / page_size)] and int32 [B], on the plan's device. A GPU reads them when the
  /// call runs: a page index is clamped to the pages there are, and a length to 0 … keys. Sequence b's queries then
  /// begin at the maximum of cu_seqlens_q[0] … cu_seqlens_q[b], each first clamped to [0, rows of q]. So no two
  /// sequences share a query, except with the strategy `simple`. `Attention::status` reports this for the strategies
  /// that check it.
  Tensor block_table{};
  Tensor seqused_k{};
  Tensor sinks{};  ///< float32 [H], contiguous, with problem.sinks; −Inf is none
  /// With FP8 keys: float32 [B,Hk], where a stride of 0 shares a scale among sequences or heads; null data: 1. Scales
  /// are finite and not negative, which a GPU does not check. q_descale is for FP8 queries only; the query heads of a
  /// key/value head share one.
  Tensor q_descale{};
  Tensor k_descale{};
  Tensor v_descale{};
};

struct AttentionOptions {
  /// Empty: chosen for the problem. Otherwise one of `attention_strategies(device)`.
  std::string strategy{};
  /// GPU: knobs of a named strategy that differ from its defaults. pipelined: keys, stages, math_warpgroups, multicast,
  /// queries_in_registers, take_turns, hold_softmax, base_descriptors; split: cluster, whole, parts, inspect_early,
  /// meet_early, narrow_exchange, alone; stream_k: rows, warps, stages, boxes, least_chunks, aligned, heads, cluster,
  /// single_tiles; mixed: few_queries, single_tiles.
  Knobs knobs{};
  /// CPU: threads to use, 0 for all.
  int threads = 0;
  /// GPU: programmatic dependent launch (PDL): this call may start while the previous one in the stream is ending.
  bool dependent_launch = false;
  /// "batch": a sequence's bits do not depend on the other sequences of a call, nor on how many there are. Empty: they
  /// may (docs/reference/numerics.md). The knob `deterministic` says the same.
  std::string deterministic{};
  bool operator==(const AttentionOptions&) const = default;
};

/// Flags for what was invalid in the lengths and pages of a run; none if they were valid.
struct AttentionStatus {
  static constexpr std::uint32_t lengths = 1;  ///< a length of seqused_k is negative or above problem.keys
  static constexpr std::uint32_t pages = 2;    ///< a key that is read lies in a page outside the pool
  static constexpr std::uint32_t offsets = 4;  ///< cu_seqlens_q decreases, is negative, or exceeds the rows of q

  std::uint32_t flags = 0;

  [[nodiscard]] bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] bool makes_sense() const noexcept { return flags == 0; }
  /// One sentence.
  [[nodiscard]] std::string explain() const;
  bool operator==(const AttentionStatus&) const = default;
};

/// A planned attention. Several threads may call `run`, each with its own workspace. Lifetimes are as for DualGemm.
class Attention {
 public:
  class Backend;
  explicit Attention(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes o, and lse where wanted. Asynchronous on a GPU: no allocation, no synchronisation, graph-capturable. A GPU
  /// call does not check the contents of cu_seqlens (see validate_cu_seqlens), but never accesses memory outside the
  /// tensors. Synchronous on the CPU, which first checks the contents of cu_seqlens, block_table, seqused_k and the
  /// descales. `workspace` is as DualGemm::run says. Throws Error(invalid_argument) before anything is written.
  void run(Stream stream, const AttentionTensors& tensors, void* workspace = nullptr) const;
  /// The invalid lengths and pages that the last run in `stream` with this workspace found. Waits for the stream. Only
  /// some strategies with paged keys on a GPU report any. The CPU rejects invalid contents with an error.
  [[nodiscard]] AttentionStatus status(Stream stream, const void* workspace) const;

  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] const std::string& strategy() const;
  [[nodiscard]] const AttentionProblem& problem() const;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// Chooses a strategy; may compile and allocate. Throws Error with a sentence that names argument, value and limit.
Attention plan(const Device& device, const AttentionProblem& problem, const AttentionOptions& options = {});

/// Names of the strategies `device` offers, the default first.
std::vector<std::string> attention_strategies(const Device& device);

/// Throws Error(invalid_argument) unless the offsets start at 0, never decrease and end at `rows` or before. `argument`
/// is named.
void validate_cu_seqlens(std::string_view argument, std::span<const std::int32_t> offsets, std::int64_t rows);

/// Throws Error(invalid_argument) unless `seqused_k` and `block_table`, which lie in host memory, are valid for a
/// problem with paged keys. They must have their shapes; each length must be 0 … problem.keys, and each page that a
/// sequence uses must be one of problem.pages.
void validate_pages(const AttentionProblem& problem, const Tensor& block_table, const Tensor& seqused_k);

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::AttentionProblem> {
  std::size_t operator()(const thresher::AttentionProblem& problem) const noexcept;
};
template <>
struct std::hash<thresher::AttentionOptions> {
  std::size_t operator()(const thresher::AttentionOptions& options) const noexcept;
};
