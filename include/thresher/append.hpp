#pragma once
/// The steps before attention over a paged KV cache. New queries and keys get a rotary position embedding (RoPE; Su et
/// al., RoFormer, 2021); new keys and values are written into the pages.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher {

/// The pairs of columns that RoPE rotates, among the first rotary_dim: p and p + rotary_dim/2 (GPT-NeoX, Llama), or 2p
/// and 2p + 1 (GPT-J), or none.
enum class RotaryPairs : std::uint8_t { none, halves, interleaved };

/// RoPE rotates pair p of a token by the angle a = position·theta^(−2p/rotary_dim):
///   (x, y) becomes (x·cos a − y·sin a, x·sin a + y·cos a),
/// in float32, rounded once: to `format` in q_out and k_out, to the cache's format in k_cache. Columns from rotary_dim
/// on stay as they are. With a table, cos a and sin a are taken from it.
struct AppendProblem {
  std::int64_t tokens = 0;            ///< T, the maximum of a call
  std::int64_t heads = 1;             ///< query heads
  std::int64_t kv_heads = 1;          ///< Hk
  std::int64_t head_dim = 64;         ///< D of q and k
  std::int64_t value_dim = 0;         ///< of v; 0: head_dim
  Format format = Format::fp16;       ///< fp16 or bf16; of q, k and v, and of the pages without kv_format
  std::optional<Format> kv_format{};  ///< of the pages: `format`, or fp8_e4m3 of value / descale
  RotaryPairs pairs = RotaryPairs::halves;
  std::int64_t rotary_dim = 0;    ///< even; 0: head_dim
  float theta = 10000.0F;         ///< above 0; without a table
  std::int64_t max_position = 0;  ///< rows of the table; 0: no table
  std::int64_t page_size = 16;    ///< rows of a page
  std::int64_t pages = 1;
  bool operator==(const AppendProblem&) const = default;
};

/// Integers, one per token, contiguous on the plan's device: int32 or int64, as `bits` says.
struct TokenNumbers {
  const void* data = nullptr;
  int bits = 64;
};

/// The tensors of one call, all on the plan's device. T is that of k, 0 to problem.tokens. The last dimension is
/// contiguous; the other strides are multiples of 16 bytes and not negative. Outputs must not overlap any other tensor,
/// except that q_out may be q and k_out may be k. Rows of several tensors may be interleaved in memory.
struct AppendTensors {
  Tensor q{};      ///< [T,H,D]; data null: no queries
  Tensor q_out{};  ///< with q; may be q itself
  Tensor k{};      ///< [T,Hk,D]
  Tensor v{};      ///< [T,Hk,value_dim]
  Tensor k_out{};  ///< [T,Hk,D], may be k; data null: not wanted
  /// [T], at least 0, and below max_position where there is a table. Not with RotaryPairs::none.
  TokenNumbers positions{};
  /// [T]: token t is written to row slots[t] % page_size of page slots[t] / page_size; a negative slot is not written.
  /// No slot may occur twice. A GPU reads positions and slots when the call runs: a slot outside the cache is not
  /// written, and a position outside the table is clamped.
  TokenNumbers slots{};
  Tensor cos_sin{};    ///< with max_position: float32 [max_position, rotary_dim], all cosines, then all sines
  Tensor k_cache{};    ///< [pages, page_size, Hk, D], as attention reads them
  Tensor v_cache{};    ///< [pages, page_size, Hk, value_dim]
  Tensor k_descale{};  ///< with FP8 pages: float32 [Hk], where a stride of 0 shares one; finite and above 0; null: 1
  Tensor v_descale{};
};

struct AppendOptions {
  int threads = 0;  ///< CPU: threads to use, 0 for all
  bool operator==(const AppendOptions&) const = default;
};

/// A planned append. Several threads may call `run`. Lifetimes are as for DualGemm.
class Append {
 public:
  class Backend;
  explicit Append(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes q_out, k_out and the rows of the pages that `slots` names, and nothing else. Asynchronous on a GPU: no
  /// allocation, no synchronisation, graph-capturable. There it uses programmatic dependent launch (PDL): it may start
  /// while the previous call in the stream is ending. An attention with dependent_launch may start while this call is
  /// ending. Synchronous on the CPU. Throws Error(invalid_argument) before anything is written.
  void run(Stream stream, const AppendTensors& tensors) const;

  [[nodiscard]] const AppendProblem& problem() const noexcept;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// May compile. Throws Error(invalid_argument) with a sentence that names argument, value and limit. Throws
/// Error(unsupported) for a GPU whose compute capability is not 9.0, and on a GPU for a theta below 1.
Append plan(const Device& device, const AppendProblem& problem, const AppendOptions& options = {});

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::AppendProblem> {
  std::size_t operator()(const thresher::AppendProblem& problem) const noexcept;
};
template <>
struct std::hash<thresher::AppendOptions> {
  std::size_t operator()(const thresher::AppendOptions& options) const noexcept;
};
