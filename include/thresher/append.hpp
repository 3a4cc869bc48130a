#pragma once
/// What precedes attention over pages: queries and keys of new tokens turned by their positions (rotary position
/// embedding; Su et al., RoFormer, 2021), and the keys and values written where the pages have room for them.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher {

/// Which columns of a head make the pairs that turn, of rotary_dim columns: p and p + rotary_dim/2 (GPT-NeoX, Llama),
/// or 2p and 2p + 1 (GPT-J); or none turn.
enum class RotaryPairs : std::uint8_t { none, halves, interleaved };

/// Pair p of a token turns by the angle a = position·theta^(−2p/rotary_dim):
///   (x, y) becomes (x·cos a − y·sin a, x·sin a + y·cos a),
/// in float32 and rounded once, to `format` in q_out and k_out and to the cache's format in k_cache. Columns from
/// rotary_dim on stay as they are. With a table, cos a and sin a are taken from it.
struct AppendProblem {
  std::int64_t tokens = 0;            ///< T, the most that a call has
  std::int64_t heads = 1;             ///< query heads
  std::int64_t kv_heads = 1;          ///< Hk
  std::int64_t head_dim = 64;         ///< D of q and k
  std::int64_t value_dim = 0;         ///< of v; 0: head_dim
  Format format = Format::fp16;       ///< fp16 or bf16; of q, k and v, and of the pages unless kv_format says otherwise
  std::optional<Format> kv_format{};  ///< of the pages: `format`, or fp8_e4m3 of value / descale
  RotaryPairs pairs = RotaryPairs::halves;
  std::int64_t rotary_dim = 0;    ///< even; 0: head_dim
  float theta = 10000.0F;         ///< above 0; without a table
  std::int64_t max_position = 0;  ///< rows of the table; 0: there is none
  std::int64_t page_size = 16;    ///< rows of a page
  std::int64_t pages = 1;
  bool operator==(const AppendProblem&) const = default;
};

/// Whole numbers, one for each token, contiguous on the plan's device: int32 or int64, as `bits` says.
struct TokenNumbers {
  const void* data = nullptr;
  int bits = 64;
};

/// The tensors of one call, all on the plan's device. T is that of k, 0 to problem.tokens. The last dimension is
/// contiguous and the other strides are multiples of 16 bytes and not negative. What is written lies apart from all
/// else, but where q_out is q and k_out is k; rows of several tensors may lie between each other.
struct AppendTensors {
  Tensor q{};      ///< [T,H,D]; data null: there are no queries to turn
  Tensor q_out{};  ///< with q, which it may be
  Tensor k{};      ///< [T,Hk,D]
  Tensor v{};      ///< [T,Hk,value_dim]
  Tensor k_out{};  ///< [T,Hk,D], which may be k; data null: not wanted
  /// [T], from 0 on, and below max_position where there is a table; not with RotaryPairs::none.
  TokenNumbers positions{};
  /// [T]: token t is written to row slots[t] % page_size of page slots[t] / page_size, and nowhere where that is
  /// negative. No slot comes twice. A GPU looks at positions and slots when the call runs: one that is not there writes
  /// nowhere, and the position is taken to be the nearest that is.
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

/// A planned append. `run` may be called from several threads.
class Append {
 public:
  class Backend;
  explicit Append(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// Writes q_out, k_out and the rows of the pages that `slots` names, and nothing else. Asynchronous on a GPU: no
  /// allocation, no synchronisation, graph-capturable; there it may start while the call before it in the stream is
  /// ending, and an attention of dependent launch while this one is. Synchronous on the CPU. Throws
  /// Error(invalid_argument) before anything is written.
  void run(Stream stream, const AppendTensors& tensors) const;

  [[nodiscard]] const AppendProblem& problem() const noexcept;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// May compile. Throws Error(invalid_argument) with a sentence that names argument, value and limit, Error(unsupported)
/// for a GPU that is not of compute capability 9.0, and there for a theta below 1.
Append plan(const Device& device, const AppendProblem& problem, const AppendOptions& options = {});

}  // namespace thresher

// So that plans can be kept by what they were made for.
template <>
struct std::hash<thresher::AppendProblem> {
  std::size_t operator()(const thresher::AppendProblem& problem) const noexcept;
};
template <>
struct std::hash<thresher::AppendOptions> {
  std::size_t operator()(const thresher::AppendOptions& options) const noexcept;
};
