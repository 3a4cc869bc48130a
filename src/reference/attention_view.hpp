#pragma once
/// Positions of an attention's rows, for fixed and variable length and for paged keys alike, and their stored values.
/// Pure arithmetic, for every host implementation.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "formats/numbers.hpp"
#include "thresher/attention.hpp"

namespace thresher::reference {

/// Element offset of row 0 of one head of one sequence, and the distance between its rows.
struct HeadView {
  std::int64_t offset = 0;
  std::int64_t row_stride = 0;
};

/// One sequence of the batch: its rows within the packed tensors (variable length), otherwise 0 and the problem's
/// lengths. Paged keys have no first row.
struct Sequence {
  std::int64_t first_query = 0;
  std::int64_t queries = 0;
  std::int64_t first_key = 0;
  std::int64_t keys = 0;
};

/// A half-open range of keys.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] bool empty() const noexcept { return begin >= end; }
};

inline Sequence sequence(const AttentionProblem& problem, const AttentionTensors& tensors, std::int64_t index) {
  if (!problem.variable_length) {
    return {.first_query = 0, .queries = problem.queries, .first_key = 0, .keys = problem.keys};
  }
  const auto* q = static_cast<const std::int32_t*>(tensors.cu_seqlens_q.data) + index;
  if (problem.page_size > 0) {
    const std::int32_t keys = static_cast<const std::int32_t*>(tensors.seqused_k.data)[index];
    return {.first_query = q[0], .queries = q[1] - q[0], .first_key = 0, .keys = keys};
  }
  const auto* k = static_cast<const std::int32_t*>(tensors.cu_seqlens_k.data) + index;
  return {.first_query = q[0], .queries = q[1] - q[0], .first_key = k[0], .keys = k[1] - k[0]};
}

/// `first_row` is the sequence's first row in a packed tensor [T,H,D]; a tensor of rank 4 is [B,H,S,D].
inline HeadView head_view(const Tensor& tensor, std::int64_t batch, std::int64_t head, std::int64_t first_row) {
  if (tensor.rank == 4) {
    return {batch * tensor.strides[0] + head * tensor.strides[1], tensor.strides[2]};
  }
  return {first_row * tensor.strides[0] + head * tensor.strides[1], tensor.strides[0]};
}

/// The positions of the keys, or the values, of one key/value head of one sequence.
class KeyRows {
 public:
  /// `of` is tensors.k or tensors.v.
  KeyRows(const AttentionProblem& problem, const AttentionTensors& tensors, const Tensor& of, const Sequence& sequence,
          std::int64_t batch, std::int64_t kv_head)
      : page_size_(problem.page_size) {
    if (page_size_ == 0) {
      view_ = head_view(of, batch, kv_head, sequence.first_key);
      return;
    }
    view_ = {kv_head * of.strides[2], of.strides[1]};
    page_stride_ = of.strides[0];
    const Tensor& table = tensors.block_table;
    pages_ = static_cast<const std::int32_t*>(table.data) + batch * table.strides[0];
  }

  /// Element offset of key `key` of the sequence.
  [[nodiscard]] std::int64_t offset(std::int64_t key) const {
    if (page_size_ == 0) {
      return view_.offset + key * view_.row_stride;
    }
    return view_.offset + pages_[key / page_size_] * page_stride_ + key % page_size_ * view_.row_stride;
  }

 private:
  std::int64_t page_size_;
  HeadView view_;
  std::int64_t page_stride_ = 0;
  const std::int32_t* pages_ = nullptr;  ///< of the sequence
};

/// The stored value at an element offset; an FP8 value is not yet multiplied by its descale.
inline float stored(const Tensor& tensor, std::int64_t offset) {
  switch (tensor.format) {
    case Format::fp8_e4m3: return formats::e4m3_values[static_cast<const std::uint8_t*>(tensor.data)[offset]];
    case Format::fp16: return formats::fp16_to_float(static_cast<const std::uint16_t*>(tensor.data)[offset]);
    default: return formats::bf16_to_float(static_cast<const std::uint16_t*>(tensor.data)[offset]);
  }
}

/// A logit after the problem's soft cap, or as it is where there is none.
template <typename Real>
Real capped(const AttentionProblem& problem, Real logit) {
  const Real cap = static_cast<Real>(problem.softcap);
  return problem.softcap == 0.0F ? logit : cap * std::tanh(logit / cap);
}

/// The factors of one head of one sequence: logit = scale·query_descale·key_descale·(stored q·stored k). The average of
/// stored values is multiplied by value_descale, and the sink is one more logit.
struct HeadFactors {
  float scale = 1.0F;
  float query_descale = 1.0F;
  float key_descale = 1.0F;
  float value_descale = 1.0F;
  float sink = -std::numeric_limits<float>::infinity();

  /// The factor of dot products of stored values.
  [[nodiscard]] double of_dots() const {
    return static_cast<double>(scale) * static_cast<double>(query_descale) * static_cast<double>(key_descale);
  }
  /// The same in float32, or its nearest number.
  [[nodiscard]] float of_float_dots() const {
    constexpr double largest = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(of_dots(), -largest, largest));
  }
};

inline HeadFactors head_factors(const AttentionProblem& problem, const AttentionTensors& tensors, std::int64_t batch,
                                std::int64_t head) {
  const std::int64_t kv_head = head / (problem.heads / problem.kv_heads);
  const auto descale = [&](const Tensor& of) {
    return of.data == nullptr ? 1.0F
                              : static_cast<const float*>(of.data)[batch * of.strides[0] + kv_head * of.strides[1]];
  };
  HeadFactors factors{.scale = effective_scale(problem),
                      .query_descale = descale(tensors.q_descale),
                      .key_descale = descale(tensors.k_descale),
                      .value_descale = descale(tensors.v_descale)};
  if (problem.sinks) {
    factors.sink = static_cast<const float*>(tensors.sinks.data)[head];
  }
  return factors;
}

/// Offset of the LSE of query 0: [B,H,Sq], or [H,T] with variable length.
inline std::int64_t lse_offset(const Tensor& lse, std::int64_t batch, std::int64_t head, std::int64_t first_query) {
  if (lse.rank == 3) {
    return batch * lse.strides[0] + head * lse.strides[1];
  }
  return head * lse.strides[0] + first_query;
}

/// The keys that are visible to `query` of a sequence: always one contiguous range.
inline KeyRange visible_keys(const AttentionProblem& problem, const Sequence& sequence, std::int64_t query) {
  const std::int64_t diagonal = query + sequence.keys - sequence.queries;
  KeyRange range{0, sequence.keys};
  if (problem.window_left >= 0) {
    range.begin = std::max<std::int64_t>(range.begin, diagonal - problem.window_left);
  }
  if (problem.window_right >= 0) {
    range.end = std::min(range.end, diagonal + problem.window_right + 1);
  }
  if (problem.causal) {
    range.end = std::min(range.end, diagonal + 1);
  }
  return range;
}

/// The position of a query in a dense result: o [B,H,Sq,D] or [T,H,D] in rows of D, lse [B,H,Sq] or [H,T].
struct DensePosition {
  std::int64_t o;
  std::int64_t lse;
};

inline DensePosition dense_position(const AttentionProblem& problem, const Sequence& sequence, std::int64_t batch,
                                    std::int64_t head, std::int64_t query) {
  if (problem.variable_length) {
    const std::int64_t row = sequence.first_query + query;
    return {row * problem.heads + head, head * problem.queries + row};
  }
  const std::int64_t row = (batch * problem.heads + head) * problem.queries + query;
  return {row, row};
}

}  // namespace thresher::reference
