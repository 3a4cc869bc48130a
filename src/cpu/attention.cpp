#include "cpu/attention.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "cpu/attention_kernels.hpp"
#include "formats/numbers.hpp"
#include "reference/attention_view.hpp"

namespace thresher::cpu {
namespace {

using reference::HeadFactors;
using reference::HeadView;
using reference::KeyRange;
using reference::KeyRows;
using reference::Sequence;

constexpr std::int64_t block_rows = 64;
constexpr std::int64_t block_keys = 128;
constexpr std::int64_t padding = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// `count` stored values from an element offset on.
void widen_stored(const Tensor& tensor, std::int64_t offset, std::int64_t count, float* out) {
  if (tensor.format == Format::fp8_e4m3) {
    const auto* const codes = static_cast<const std::uint8_t*>(tensor.data) + offset;
    std::transform(codes, codes + count, out, [](std::uint8_t code) { return formats::e4m3_values[code]; });
  } else {
    widen(static_cast<const std::uint16_t*>(tensor.data) + offset, tensor.format, count, out);
  }
}

/// One job: up to 64 rows that read the same key/value head. Row r is query (first + r) / group of query head
/// kv_head·group + (first + r) % group, so that the heads of a group share the converted keys and values.
struct Job {
  std::int64_t batch = 0;
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

/// A row's running softmax, which starts from its head's sink. Sum and output are relative to exp(shift); shift is the
/// maximum if that is finite.
struct Row {
  KeyRange visible;
  HeadFactors factors;
  float maximum = -infinity;
  float sum = 0.0F;
};

float shift_of(float maximum) { return std::isfinite(maximum) ? maximum : 0.0F; }

class Worker {
 public:
  Worker(const AttentionProblem& problem, const AttentionTensors& tensors)
      : problem_(problem),
        tensors_(tensors),
        width_(problem.head_dim),
        value_width_(effective_value_dim(problem)),
        group_(problem.heads / problem.kv_heads),
        queries_(size(block_rows * width_)),
        keys_transposed_(size(width_ * block_keys)),
        values_(size(block_keys * value_width_)),
        row_(size(width_)),
        weights_(size(block_rows * block_keys)),
        outputs_(size(block_rows * value_width_)),
        rows_(size(block_rows)) {}

  void run(const Job& job) {
    const Sequence sequence = reference::sequence(problem_, tensors_, job.batch);
    const KeyRange all = load_rows(job, sequence);
    const KeyRows keys(problem_, tensors_, tensors_.k, sequence, job.batch, job.kv_head);
    const KeyRows values(problem_, tensors_, tensors_.v, sequence, job.batch, job.kv_head);
    for (std::int64_t begin = all.begin; begin < all.end; begin += block_keys) {
      const std::int64_t count = std::min(block_keys, all.end - begin);
      load_keys(keys, begin, count);
      load_values(values, begin, count);
      const std::int64_t padded = (count + padding - 1) / padding * padding;
      matrix_product(job.rows, padded, width_, queries_.data(), width_, keys_transposed_.data(), block_keys,
                     weights_.data(), block_keys, false);
      for (std::int64_t r = 0; r < job.rows; ++r) {
        update_softmax(r, begin, count);
      }
      add_values(job.rows, begin, count);
    }
    finish(job, sequence);
  }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  [[nodiscard]] std::int64_t query_of(const Job& job, std::int64_t r) const { return (job.first + r) / group_; }
  [[nodiscard]] std::int64_t head_of(const Job& job, std::int64_t r) const {
    return job.kv_head * group_ + (job.first + r) % group_;
  }

  /// Returns the keys that some row of the job sees.
  KeyRange load_rows(const Job& job, const Sequence& sequence) {
    KeyRange all{sequence.keys, 0};
    for (std::int64_t r = 0; r < job.rows; ++r) {
      const HeadView view = reference::head_view(tensors_.q, job.batch, head_of(job, r), sequence.first_query);
      widen_stored(tensors_.q, view.offset + query_of(job, r) * view.row_stride, width_, queries_.data() + r * width_);
      rows_[size(r)] = start(job, sequence, r);
      if (!rows_[size(r)].visible.empty()) {
        all.begin = std::min(all.begin, rows_[size(r)].visible.begin);
        all.end = std::max(all.end, rows_[size(r)].visible.end);
      }
    }
    std::fill(outputs_.begin(), outputs_.end(), 0.0F);
    return all;
  }

  [[nodiscard]] Row start(const Job& job, const Sequence& sequence, std::int64_t r) const {
    Row row{.visible = reference::visible_keys(problem_, sequence, query_of(job, r)),
            .factors = reference::head_factors(problem_, tensors_, job.batch, head_of(job, r))};
    row.maximum = row.factors.sink;
    row.sum = std::exp(row.factors.sink - shift_of(row.factors.sink));
    return row;
  }

  void load_keys(const KeyRows& rows, std::int64_t begin, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) {
      widen_stored(tensors_.k, rows.offset(begin + j), width_, row_.data());
      for (std::int64_t d = 0; d < width_; ++d) {
        keys_transposed_[size(d * block_keys + j)] = row_[size(d)];
      }
    }
  }

  void load_values(const KeyRows& rows, std::int64_t begin, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) {
      widen_stored(tensors_.v, rows.offset(begin + j), value_width_, values_.data() + j * value_width_);
    }
  }

  /// The part of the block that is visible to row r, relative to the block's first key.
  [[nodiscard]] KeyRange seen(std::int64_t r, std::int64_t begin, std::int64_t count) const {
    const KeyRange& visible = rows_[size(r)].visible;
    return {std::max<std::int64_t>(visible.begin - begin, 0), std::min(visible.end - begin, count)};
  }

  void update_softmax(std::int64_t r, std::int64_t begin, std::int64_t count) {
    const KeyRange part = seen(r, begin, count);
    if (part.empty()) {
      return;
    }
    Row& row = rows_[size(r)];
    float* logits = weights_.data() + r * block_keys + part.begin;
    const std::int64_t visible = part.end - part.begin;
    const LogitRange range = scale_logits(logits, visible, row.factors.of_float_dots(), problem_.softcap);
    const float maximum = range.maximum > row.maximum ? range.maximum : row.maximum;
    const float shift = shift_of(maximum);
    if (row.maximum != -infinity && maximum != row.maximum) {
      const float factor = std::exp(shift_of(row.maximum) - shift);
      row.sum *= factor;
      multiply(outputs_.data() + r * value_width_, value_width_, factor);
    }
    row.maximum = maximum;
    if (range.all_below_infinity) {
      row.sum += exponentials(logits, visible, shift);
      return;
    }
    for (std::int64_t j = 0; j < visible; ++j) {
      logits[j] = std::exp(logits[j] - shift);
      row.sum += logits[j];
    }
  }

  /// outputs += weights·values. Masked keys must not enter the sum: 0 times a masked NaN would be NaN.
  void add_values(std::int64_t rows, std::int64_t begin, std::int64_t count) {
    for (std::int64_t r = 0; r < rows;) {
      const KeyRange part = seen(r, begin, count);
      std::int64_t next = r + 1;
      while (next < rows && seen(next, begin, count).begin == part.begin && seen(next, begin, count).end == part.end) {
        ++next;
      }
      if (!part.empty()) {
        matrix_product(next - r, value_width_, part.end - part.begin, weights_.data() + r * block_keys + part.begin,
                       block_keys, values_.data() + part.begin * value_width_, value_width_,
                       outputs_.data() + r * value_width_, value_width_, true);
      }
      r = next;
    }
  }

  void finish(const Job& job, const Sequence& sequence) {
    for (std::int64_t r = 0; r < job.rows; ++r) {
      const Row& row = rows_[size(r)];
      const std::int64_t head = head_of(job, r);
      const HeadView view = reference::head_view(tensors_.o, job.batch, head, sequence.first_query);
      auto* o = static_cast<std::uint16_t*>(tensors_.o.data) + view.offset + query_of(job, r) * view.row_stride;
      for (std::int64_t d = 0; d < value_width_; ++d) {
        const float average = outputs_[size(r * value_width_ + d)] / row.sum;
        const float value = row.visible.empty() ? 0.0F : average * row.factors.value_descale;
        o[d] = problem_.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
      }
      if (tensors_.lse.data != nullptr) {
        const std::int64_t at = reference::lse_offset(tensors_.lse, job.batch, head, sequence.first_query);
        static_cast<float*>(tensors_.lse.data)[at + query_of(job, r)] =
            row.visible.empty() ? row.factors.sink : shift_of(row.maximum) + std::log(row.sum);
      }
    }
  }

  const AttentionProblem& problem_;
  const AttentionTensors& tensors_;
  std::int64_t width_;  // D of keys
  std::int64_t value_width_;
  std::int64_t group_;
  std::vector<float> queries_;          // [rows, D]
  std::vector<float> keys_transposed_;  // [D, keys]
  std::vector<float> values_;           // [keys, D of values]
  std::vector<float> row_;
  std::vector<float> weights_;  // [rows, keys]: logits, then exponentials
  std::vector<float> outputs_;  // [rows, D of values]
  std::vector<Row> rows_;
};

std::vector<Job> jobs_of(const AttentionProblem& problem, const AttentionTensors& tensors) {
  std::vector<Job> jobs;
  const std::int64_t group = problem.heads / problem.kv_heads;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const std::int64_t rows = reference::sequence(problem, tensors, batch).queries * group;
    for (std::int64_t kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
      for (std::int64_t first = 0; first < rows; first += block_rows) {
        jobs.push_back({batch, kv_head, first, std::min(block_rows, rows - first)});
      }
    }
  }
  return jobs;
}

}  // namespace

void attention(const AttentionProblem& problem, const AttentionTensors& tensors, int threads) {
  const std::vector<Job> jobs = jobs_of(problem, tensors);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    Worker worker(problem, tensors);
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      worker.run(jobs[i]);
    }
  };
  const std::size_t wanted = threads > 0 ? static_cast<std::size_t>(threads) : std::thread::hardware_concurrency();
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(wanted, jobs.size()); ++i) {
    helpers.emplace_back(work);
  }
  work();
}

}  // namespace thresher::cpu
