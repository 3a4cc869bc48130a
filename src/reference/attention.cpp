#include "reference/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/attention_view.hpp"
#include "reference/parallel.hpp"
#include "reference/plain_attention.hpp"

namespace thresher::reference {
namespace {

/// The stored values of the keys `range`, as a dense [keys, columns] matrix.
template <typename Real>
std::vector<Real> dense(const Tensor& tensor, const KeyRows& rows, KeyRange range, std::int64_t columns) {
  std::vector<Real> values;
  values.reserve(static_cast<std::size_t>(range.empty() ? 0 : (range.end - range.begin) * columns));
  for (std::int64_t key = range.begin; key < range.end; ++key) {
    const std::int64_t first = rows.offset(key);
    for (std::int64_t column = 0; column < columns; ++column) {
      values.push_back(static_cast<Real>(stored(tensor, first + column)));
    }
  }
  return values;
}

template <typename Real>
std::vector<Real> query_row(const AttentionProblem& problem, const AttentionTensors& tensors, const Sequence& sequence,
                            const AttentionSample& at) {
  const HeadView view = head_view(tensors.q, at.batch, at.head, sequence.first_query);
  std::vector<Real> values(static_cast<std::size_t>(problem.head_dim));
  for (std::int64_t d = 0; d < problem.head_dim; ++d) {
    values[static_cast<std::size_t>(d)] =
        static_cast<Real>(stored(tensors.q, view.offset + at.query * view.row_stride + d));
  }
  return values;
}

double logit(const AttentionProblem& problem, const HeadFactors& factors, const double* q, const double* k) {
  double dot = 0.0;
  for (std::int64_t d = 0; d < problem.head_dim; ++d) {
    dot += q[d] * k[d];
  }
  if (!std::isfinite(static_cast<float>(dot))) {
    dot = static_cast<double>(static_cast<float>(dot));
  }
  return capped(problem, dot * factors.of_dots());
}

/// One row from dense keys and values of its head. `keys` and `values` hold the visible keys only.
double definition_row(const AttentionProblem& problem, const HeadFactors& factors, const double* q, const double* keys,
                      const double* values, std::int64_t visible, double* o) {
  const std::int64_t width = effective_value_dim(problem);
  const auto sink = static_cast<double>(factors.sink);
  std::fill_n(o, width, 0.0);
  if (visible <= 0) {
    return sink;
  }
  std::vector<double> weights(static_cast<std::size_t>(visible));
  double maximum = sink;
  for (std::int64_t j = 0; j < visible; ++j) {
    weights[static_cast<std::size_t>(j)] = logit(problem, factors, q, keys + j * problem.head_dim);
    maximum = std::max(maximum, weights[static_cast<std::size_t>(j)]);
  }
  // exp(s − shift) is the definition for any finite shift; the maximum only avoids overflow.
  const double shift = std::isfinite(maximum) ? maximum : 0.0;
  double sum = std::exp(sink - shift);
  for (double& weight : weights) {
    weight = std::exp(weight - shift);
    sum += weight;
  }
  for (std::int64_t j = 0; j < visible; ++j) {
    for (std::int64_t d = 0; d < width; ++d) {
      o[d] += weights[static_cast<std::size_t>(j)] * values[j * width + d];
    }
  }
  for (std::int64_t d = 0; d < width; ++d) {
    o[d] = o[d] / sum * static_cast<double>(factors.value_descale);
  }
  return shift + std::log(sum);
}

/// For the visible keys.
std::vector<float> plain_dots(const AttentionProblem& problem, const float* q, const float* keys,
                              std::int64_t visible) {
  const std::int64_t width = problem.head_dim;
  if (multiplies_codes(problem)) {
    return aligned_dots({q, static_cast<std::size_t>(width)}, visible,
                        [&](std::int64_t j, std::int64_t d) { return keys[j * width + d]; });
  }
  std::vector<float> dots(static_cast<std::size_t>(visible));
  for (std::int64_t j = 0; j < visible; ++j) {
    for (std::int64_t d = 0; d < width; ++d) {
      dots[static_cast<std::size_t>(j)] += q[d] * keys[j * width + d];
    }
  }
  return dots;
}

/// One row as float32 code computes it; the probabilities are rounded before the product with the values.
double plain_row(const AttentionProblem& problem, const HeadFactors& factors, const float* q, const float* keys,
                 const float* values, std::int64_t visible, double* o) {
  const std::int64_t width = effective_value_dim(problem);
  std::fill_n(o, width, 0.0);
  if (visible <= 0) {
    return static_cast<double>(factors.sink);
  }
  std::vector<float> weights = plain_dots(problem, q, keys, visible);
  float maximum = factors.sink;
  for (std::int64_t j = 0; j < visible; ++j) {
    float& weight = weights[static_cast<std::size_t>(j)];
    weight = capped(problem, weight * factors.of_float_dots());
    maximum = std::max(maximum, weight);
  }
  const float shift = std::isfinite(maximum) ? maximum : 0.0F;
  float sum = std::exp(factors.sink - shift);
  for (float& weight : weights) {
    weight = std::exp(weight - shift);
    sum += weight;
  }
  std::vector<float> accumulated(static_cast<std::size_t>(width), 0.0F);
  for (std::int64_t j = 0; j < visible; ++j) {
    const float probability = plain_probability(problem, weights[static_cast<std::size_t>(j)], sum);
    for (std::int64_t d = 0; d < width; ++d) {
      accumulated[static_cast<std::size_t>(d)] += probability * values[j * width + d];
    }
  }
  for (std::int64_t d = 0; d < width; ++d) {
    const float value = accumulated[static_cast<std::size_t>(d)] * factors.value_descale;
    o[d] = static_cast<double>(rounded(problem.format, value));
  }
  return static_cast<double>(shift + std::log(sum));
}

AttentionResult empty_result(const AttentionProblem& problem) {
  const std::int64_t rows = problem.queries * problem.heads * (problem.variable_length ? 1 : problem.batch);
  return {std::vector<double>(static_cast<std::size_t>(rows * effective_value_dim(problem)), 0.0),
          std::vector<double>(static_cast<std::size_t>(rows), -HUGE_VAL)};
}

/// Runs `row` for every query. One job is one head of one sequence, whose keys and values are made dense once.
template <typename Real, typename Row>
AttentionResult threaded(const AttentionProblem& problem, const AttentionTensors& tensors, int threads, Row row) {
  AttentionResult result = empty_result(problem);
  const std::int64_t group = problem.heads / problem.kv_heads;
  parallel_for(problem.batch * problem.heads, threads, [&](std::int64_t job) {
    const std::int64_t batch = job / problem.heads;
    const std::int64_t head = job % problem.heads;
    const Sequence seq = sequence(problem, tensors, batch);
    const HeadFactors factors = head_factors(problem, tensors, batch, head);
    const std::int64_t width = problem.head_dim;
    const std::int64_t value_width = effective_value_dim(problem);
    const auto k =
        dense<Real>(tensors.k, {problem, tensors, tensors.k, seq, batch, head / group}, {0, seq.keys}, width);
    const auto v =
        dense<Real>(tensors.v, {problem, tensors, tensors.v, seq, batch, head / group}, {0, seq.keys}, value_width);
    for (std::int64_t query = 0; query < seq.queries; ++query) {
      const KeyRange seen = visible_keys(problem, seq, query);
      const DensePosition at = dense_position(problem, seq, batch, head, query);
      const std::int64_t first = seen.empty() ? 0 : seen.begin;
      const std::vector<Real> q = query_row<Real>(problem, tensors, seq, {batch, head, query});
      result.lse[static_cast<std::size_t>(at.lse)] =
          row(problem, factors, q.data(), k.data() + first * width, v.data() + first * value_width,
              seen.end - seen.begin, result.o.data() + at.o * value_width);
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
  const std::int64_t width = effective_value_dim(problem);
  const auto q = query_row<double>(problem, tensors, seq, sample);
  const auto k =
      dense<double>(tensors.k, {problem, tensors, tensors.k, seq, sample.batch, kv_head}, seen, problem.head_dim);
  const auto v = dense<double>(tensors.v, {problem, tensors, tensors.v, seq, sample.batch, kv_head}, seen, width);
  AttentionRow row;
  row.o.resize(static_cast<std::size_t>(width));
  row.lse = definition_row(problem, head_factors(problem, tensors, sample.batch, sample.head), q.data(), k.data(),
                           v.data(), seen.end - seen.begin, row.o.data());
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
        std::copy(row.o.begin(), row.o.end(), result.o.begin() + at.o * effective_value_dim(problem));
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
