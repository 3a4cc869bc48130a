#pragma once
/// Scaled dot-product attention, forward: O = softmax(Q·Kᵀ·scale + mask)·V for each batch and head; plan once, run
/// many.
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
/// −1 is unbounded; `causal` bounds the right side by 0 as well (aligned bottom-right). A query that sees no key gives
/// O = 0 and LSE = −Inf; one whose visible logits are all −Inf gives NaN. logit = scale·q·k, or
/// softcap·tanh(scale·q·k/softcap).
struct AttentionProblem {
  std::int64_t batch = 1;        ///< sequences
  std::int64_t heads = 1;        ///< query heads, a multiple of kv_heads
  std::int64_t kv_heads = 1;     ///< at least 1
  std::int64_t queries = 0;      ///< Sq, or with variable_length the total number of queries of all sequences
  std::int64_t keys = 0;         ///< Sk, or with variable_length the total number of keys
  std::int64_t head_dim = 64;    ///< of q and k: 64, 128, 192, 256 or 576
  std::int64_t value_dim = 0;    ///< of v and o: 64, 128, 192, 256 or 512; 0: head_dim
  Format format = Format::fp16;  ///< fp16 or bf16; of o, and of q, k and v unless q_format and kv_format say otherwise
  /// Of k and v: empty for `format`, or fp8_e4m3, whose values are multiplied by k_descale and v_descale.
  std::optional<Format> kv_format{};
  /// Of q: empty for `format`, or fp8_e4m3 where k and v are too, whose values are multiplied by q_descale. A GPU then
  /// may also multiply weights as fp8_e4m3: what it is held to is as coarse as they are (docs/kernels/attention.md).
  std::optional<Format> q_format{};
  bool causal = false;
  std::optional<float> scale{};   ///< 1/√head_dim when empty; any finite number, 0 and negative ones included
  std::int64_t window_left = -1;  ///< keys to the left that are visible, −1 for all
  std::int64_t window_right = -1;
  float softcap = 0.0F;  ///< 0 for none, else > 0
  /// Sequences of different lengths packed one after another: q is [T,H,D], k and v are [Tk,Hk,D], and sequence b has
  /// the queries cu_seqlens_q[b] … cu_seqlens_q[b+1]−1 and the keys cu_seqlens_k[b] … cu_seqlens_k[b+1]−1.
  bool variable_length = false;
  /// Keys in pages, as a serving engine keeps them; 0: none. With variable_length only: q is packed by cu_seqlens_q, k
  /// is [pages, page_size, Hk, D] in any order of memory, v the same with value_dim, and sequence b has seqused_k[b]
  /// keys, at most `keys`: key j lies in row j % page_size of page block_table[b, j / page_size].
  std::int64_t page_size = 0;
  std::int64_t pages = 0;  ///< of the pool that k and v are, with page_size
  /// A logit of each query head that joins its rows' sums and brings no value: a row that sees no key gives O = 0 and
  /// LSE = the sink. Softcap and scale do not touch it.
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
  /// The natural logarithm of the sum of exponentials of the row's visible logits.
  Tensor lse{};
  /// Variable length only: int32 [B+1] on the plan's device, not decreasing, from 0 to at most the number of rows of q
  /// (k). Rows behind the last sequence are not read; those of o and lse stay as they were. Null data else.
  Tensor cu_seqlens_q{};
  Tensor cu_seqlens_k{};  ///< not with pages
  /// With pages: int32 [B, ceil(keys / page_size)] and int32 [B], on the plan's device. A GPU looks at them when the
  /// call runs: a page that is not there is taken to be the nearest one that is, and a length is brought into 0 … keys.
  /// Of cu_seqlens_q, sequence b's queries then begin at the greatest of entries 0 … b, each first limited to [0, rows
  /// of q]: no two sequences have a query in common, but for
  /// `simple`. `Attention::status` says that any of this happened, of the strategies that look.
  Tensor block_table{};
  Tensor seqused_k{};
  Tensor sinks{};  ///< float32 [H], contiguous, with problem.sinks; −Inf is none
  /// With FP8 keys: float32 [B,Hk], where strides of 0 share a scale among sequences or heads; finite and not negative,
  /// which a GPU does not look at; null data: 1. That of queries, with FP8 queries alone, is shared by the heads of a
  /// group.
  Tensor q_descale{};
  Tensor k_descale{};
  Tensor v_descale{};
};

struct AttentionOptions {
  /// Empty: chosen for the problem. Else one of `attention_strategies(device)`.
  std::string strategy{};
  /// GPU: choices of a named strategy that differ from its defaults. pipelined: keys, stages, math_warpgroups,
  /// multicast, queries_in_registers, take_turns, hold_softmax, base_descriptors; split: cluster, whole, parts,
  /// inspect_early, meet_early, narrow_exchange, alone; stream_k: rows, warps, stages, boxes, least_chunks,
  /// aligned, heads, cluster; mixed: few_queries.
  Knobs knobs{};
  /// CPU: threads to use, 0 for all.
  int threads = 0;
  /// GPU: launch so that this call may start while the one before it in the stream is ending.
  bool dependent_launch = false;
  bool operator==(const AttentionOptions&) const = default;
};

/// What was wrong with the lengths and pages of a run; nothing: they made sense.
struct AttentionStatus {
  static constexpr std::uint32_t lengths = 1;  ///< a length of seqused_k is negative or above problem.keys
  static constexpr std::uint32_t pages = 2;    ///< a key that is read lies in a page that is not there
  static constexpr std::uint32_t offsets = 4;  ///< cu_seqlens_q decreases, is negative, or exceeds the rows of q

  std::uint32_t flags = 0;

  [[nodiscard]] bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] bool makes_sense() const noexcept { return flags == 0; }
  /// One sentence.
  [[nodiscard]] std::string explain() const;
  bool operator==(const AttentionStatus&) const = default;
};

/// A planned attention. `run` may be called from several threads.
class Attention {
 public:
  class Backend;
  explicit Attention(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes o, and lse where wanted. Asynchronous on a GPU: no allocation, no synchronisation, graph-capturable; there
  /// the contents of cu_seqlens are not looked at (see validate_cu_seqlens), but nothing outside the tensors is
  /// touched. On the CPU the contents of cu_seqlens, block_table, seqused_k and the descales are checked first.
  /// Synchronous on the CPU. `workspace` is as DualGemm::run says. Throws Error(invalid_argument) before anything is
  /// written.
  void run(Stream stream, const AttentionTensors& tensors, void* workspace = nullptr) const;
  /// What the last run in `stream` with this workspace found in its lengths and pages. Waits for the stream. Only with
  /// pages on a GPU is anything found: the CPU refuses what makes no sense, and other strategies do not tell.
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

/// The same of a problem with pages unless `seqused_k` and `block_table`, which lie in this CPU's memory, have their
/// shapes, each length is 0 … problem.keys, and each page that a sequence uses is one of problem.pages.
void validate_pages(const AttentionProblem& problem, const Tensor& block_table, const Tensor& seqused_k);

}  // namespace thresher

// So that plans can be kept by what they were made for.
template <>
struct std::hash<thresher::AttentionProblem> {
  std::size_t operator()(const thresher::AttentionProblem& problem) const noexcept;
};
template <>
struct std::hash<thresher::AttentionOptions> {
  std::size_t operator()(const thresher::AttentionOptions& options) const noexcept;
};
