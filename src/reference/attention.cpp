#include "reference/attention.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "formats/numbers.hpp"
#include "reference/attention_view.hpp"

namespace thresher::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

float element(const Tensor& tensor, std::int64_t offset) {
  const std::uint16_t pattern = static_cast<const std::uint16_t*>(tensor.data)[offset];
  return tensor.format == Format::fp16 ? formats::fp16_to_float(pattern) : formats::bf16_to_float(pattern);
}

float rounded(Format format, float value) {
  return format == Format::fp16 ? formats::fp16_to_float(formats::float_to_fp16(value))
                                : formats::bf16_to_float(formats::float_to_bf16(value));
}

/// The values of `rows` rows as a dense [rows, D] matrix.
template <typename Real>
std::vector<Real> dense(const Tensor& tensor, HeadView view, std::int64_t rows, std::int64_t columns) {
  std::vector<Real> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      values[static_cast<std::size_t>(row * columns + column)] =
          static_cast<Real>(element(tensor, view.offset + row * view.row_stride + column));
    }
  }
  return values;
}

template <typename Real>
Real capped(const AttentionProblem& problem, Real logit) {
  if (problem.softcap == 0.0F) {
    return logit;
  }
  const Real cap = static_cast<Real>(problem.softcap);
  return cap * std::tanh(logit / cap);
}

double logit(const AttentionProblem& problem, const double* q, const double* k) {
  double dot = 0.0;
  for (std::int64_t d = 0; d < problem.head_dim; ++d) {
    dot += q[d] * k[d];
  }
  if (!std::isfinite(static_cast<float>(dot))) {
    dot = static_cast<double>(static_cast<float>(dot));
  }
  return capped(problem, dot * static_cast<double>(effective_scale(problem)));
}

/// One row from dense keys and values of its head. `keys` and `values` hold the visible keys only.
double definition_row(const AttentionProblem& problem, const double* q, const double* keys, const double* values,
                      std::int64_t visible, double* o) {
  std::fill_n(o, problem.head_dim, 0.0);
  if (visible <= 0) {
    return -infinity;
  }
  std::vector<double> weights(static_cast<std::size_t>(visible));
  double maximum = -infinity;
  for (std::int64_t j = 0; j < visible; ++j) {
    weights[static_cast<std::size_t>(j)] = logit(problem, q, keys + j * problem.head_dim);
    maximum = std::max(maximum, weights[static_cast<std::size_t>(j)]);
  }
  // exp(s − shift) for any finite shift is the definition; the maximum only keeps it from overflowing.
  const double shift = std::isfinite(maximum) ? maximum : 0.0;
  double sum = 0.0;
  for (double& weight : weights) {
    weight = std::exp(weight - shift);
    sum += weight;
  }
  for (std::int64_t j = 0; j < visible; ++j) {
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      o[d] += weights[static_cast<std::size_t>(j)] * values[j * problem.head_dim + d];
    }
  }
  for (std::int64_t d = 0; d < problem.head_dim; ++d) {
    o[d] /= sum;
  }
  return shift + std::log(sum);
}

/// One row as float32 code computes it, the probabilities rounded to the format before they meet the values.
double plain_row(const AttentionProblem& problem, const float* q, const float* keys, const float* values,
                 std::int64_t visible, double* o) {
  std::fill_n(o, problem.head_dim, 0.0);
  if (visible <= 0) {
    return -infinity;
  }
  std::vector<float> weights(static_cast<std::size_t>(visible));
  float maximum = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < visible; ++j) {
    float dot = 0.0F;
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      dot += q[d] * keys[j * problem.head_dim + d];
    }
    weights[static_cast<std::size_t>(j)] = capped(problem, dot * effective_scale(problem));
    maximum = std::max(maximum, weights[static_cast<std::size_t>(j)]);
  }
  const float shift = std::isfinite(maximum) ? maximum : 0.0F;
  float sum = 0.0F;
  for (float& weight : weights) {
    weight = std::exp(weight - shift);
    sum += weight;
  }
  std::vector<float> accumulated(static_cast<std::size_t>(problem.head_dim), 0.0F);
  for (std::int64_t j = 0; j < visible; ++j) {
    const float probability = rounded(problem.format, weights[static_cast<std::size_t>(j)] / sum);
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      accumulated[static_cast<std::size_t>(d)] += probability * values[j * problem.head_dim + d];
    }
  }
  for (std::int64_t d = 0; d < problem.head_dim; ++d) {
    o[d] = static_cast<double>(rounded(problem.format, accumulated[static_cast<std::size_t>(d)]));
  }
  return static_cast<double>(shift + std::log(sum));
}

AttentionResult empty_result(const AttentionProblem& problem) {
  const std::int64_t rows = problem.queries * problem.heads * (problem.variable_length ? 1 : problem.batch);
  return {std::vector<double>(static_cast<std::size_t>(rows * problem.head_dim), 0.0),
          std::vector<double>(static_cast<std::size_t>(rows), -infinity)};
}

/// Calls job(0) … job(count − 1) on `threads` threads.
void parallel(std::int64_t count, int threads, const std::function<void(std::int64_t)>& job) {
  const std::int64_t wanted = threads > 0 ? threads : static_cast<std::int64_t>(std::thread::hardware_concurrency());
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) {
      job(i);
    }
  };
  std::vector<std::jthread> helpers;
  for (std::int64_t i = 1; i < std::min(wanted, count); ++i) {
    helpers.emplace_back(work);
  }
  work();
}

/// Runs `row` for every query; one job is one head of one sequence, whose keys and values are made dense once.
template <typename Real, typename Row>
AttentionResult threaded(const AttentionProblem& problem, const AttentionTensors& tensors, int threads, Row row) {
  AttentionResult result = empty_result(problem);
  const std::int64_t group = problem.heads / problem.kv_heads;
  parallel(problem.batch * problem.heads, threads, [&](std::int64_t job) {
    const std::int64_t batch = job / problem.heads;
    const std::int64_t head = job % problem.heads;
    const Sequence seq = sequence(problem, tensors, batch);
    const std::int64_t width = problem.head_dim;
    const auto q = dense<Real>(tensors.q, head_view(tensors.q, batch, head, seq.first_query), seq.queries, width);
    const auto k = dense<Real>(tensors.k, head_view(tensors.k, batch, head / group, seq.first_key), seq.keys, width);
    const auto v = dense<Real>(tensors.v, head_view(tensors.v, batch, head / group, seq.first_key), seq.keys, width);
    for (std::int64_t query = 0; query < seq.queries; ++query) {
      const KeyRange seen = visible_keys(problem, seq, query);
      const DensePosition at = dense_position(problem, seq, batch, head, query);
      const std::int64_t first = seen.empty() ? 0 : seen.begin * width;
      result.lse[static_cast<std::size_t>(at.lse)] =
          row(problem, q.data() + query * width, k.data() + first, v.data() + first, seen.end - seen.begin,
              result.o.data() + at.o * width);
    }
  });
  return result;
}

}  // namespace

AttentionRow attention_row(const AttentionProblem& problem, const AttentionTensors& tensors,
                           const AttentionSample& sample) {
  const Sequence seq = sequence(problem, tensors, sample.batch);
  const KeyRange seen = visible_keys(problem, seq, sample.query);
  const std::int64_t kv_head = sample.head / (problem.heads / problem.kv_heads);
  const auto rows_from = [](HeadView view, std::int64_t row) {
    return HeadView{view.offset + row * view.row_stride, view.row_stride};
  };
  const std::int64_t count = seen.empty() ? 0 : seen.end - seen.begin;
  const auto q = dense<double>(
      tensors.q, rows_from(head_view(tensors.q, sample.batch, sample.head, seq.first_query), sample.query), 1,
      problem.head_dim);
  const auto k =
      dense<double>(tensors.k, rows_from(head_view(tensors.k, sample.batch, kv_head, seq.first_key), seen.begin), count,
                    problem.head_dim);
  const auto v =
      dense<double>(tensors.v, rows_from(head_view(tensors.v, sample.batch, kv_head, seq.first_key), seen.begin), count,
                    problem.head_dim);
  AttentionRow row;
  row.o.resize(static_cast<std::size_t>(problem.head_dim));
  row.lse = definition_row(problem, q.data(), k.data(), v.data(), count, row.o.data());
  return row;
}

AttentionResult attention(const AttentionProblem& problem, const AttentionTensors& tensors) {
  AttentionResult result = empty_result(problem);
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const Sequence seq = sequence(problem, tensors, batch);
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      for (std::int64_t query = 0; query < seq.queries; ++query) {
        const AttentionRow row = attention_row(problem, tensors, {batch, head, query});
        const DensePosition at = dense_position(problem, seq, batch, head, query);
        std::copy(row.o.begin(), row.o.end(), result.o.begin() + at.o * problem.head_dim);
        result.lse[static_cast<std::size_t>(at.lse)] = row.lse;
      }
    }
  }
  return result;
}

AttentionResult attention_threaded(const AttentionProblem& problem, const AttentionTensors& tensors, int threads) {
  return threaded<double>(problem, tensors, threads, definition_row);
}

AttentionResult attention_plain_low_precision(const AttentionProblem& problem, const AttentionTensors& tensors,
                                              int threads) {
  return threaded<float>(problem, tensors, threads, plain_row);
}

}  // namespace thresher::reference
