#include "reference/attention_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "reference/attention_view.hpp"
#include "reference/parallel.hpp"
#include "reference/plain_attention.hpp"

namespace thresher::reference {
namespace {

constexpr std::int64_t tile_queries = 64;
/// Keys, or columns of values, that are processed together; sums are still in the order of the definition.
constexpr std::int64_t lane_count = 16;

template <typename Real>
using Lanes = std::array<Real, lane_count>;

/// Stored keys and values of one head of one sequence. keys[(block · D + d)][lane] is element d of key block·16 + lane;
/// values[(panel · count + j)][lane] is column panel·16 + lane of value j.
template <typename Real>
struct Head {
  std::vector<Lanes<Real>> keys;
  std::vector<Lanes<Real>> values;
  std::int64_t count = 0;
  std::int64_t width = 0;  ///< of a key
  std::int64_t value_width = 0;
};

template <typename Real>
Head<Real> head_of(const AttentionProblem& problem, const AttentionTensors& tensors, const Sequence& seq,
                   std::int64_t batch, std::int64_t kv_head) {
  Head<Real> head{{}, {}, seq.keys, problem.head_dim, effective_value_dim(problem)};
  const std::int64_t blocks = (seq.keys + lane_count - 1) / lane_count;
  const std::int64_t panels = head.value_width / lane_count;
  head.keys.resize(static_cast<std::size_t>(blocks * head.width));
  head.values.resize(static_cast<std::size_t>(panels * seq.keys));
  const KeyRows key_rows(problem, tensors, tensors.k, seq, batch, kv_head);
  const KeyRows value_rows(problem, tensors, tensors.v, seq, batch, kv_head);
  for (std::int64_t j = 0; j < seq.keys; ++j) {
    const std::int64_t key = key_rows.offset(j);
    const std::int64_t value = value_rows.offset(j);
    for (std::int64_t d = 0; d < head.width; ++d) {
      head.keys[static_cast<std::size_t>(j / lane_count * head.width + d)][static_cast<std::size_t>(j % lane_count)] =
          static_cast<Real>(stored(tensors.k, key + d));
    }
    for (std::int64_t d = 0; d < head.value_width; ++d) {
      head.values[static_cast<std::size_t>(d / lane_count * seq.keys + j)][static_cast<std::size_t>(d % lane_count)] =
          static_cast<Real>(stored(tensors.v, value + d));
    }
  }
  return head;
}

/// q·k for every key of the blocks that hold `seen`, in ascending d.
template <typename Real>
std::vector<Real> products(const Head<Real>& head, const std::vector<Real>& q, const KeyRange& seen) {
  std::vector<Real> dots(static_cast<std::size_t>(head.count + lane_count));
  for (std::int64_t block = seen.begin / lane_count; block * lane_count < seen.end; ++block) {
    Lanes<Real> sums{};
    const Lanes<Real>* const keys = &head.keys[static_cast<std::size_t>(block * head.width)];
    for (std::size_t d = 0; d < q.size(); ++d) {
      for (std::size_t lane = 0; lane < lane_count; ++lane) {
        sums[lane] += q[d] * keys[d][lane];
      }
    }
    std::copy(sums.begin(), sums.end(), dots.begin() + block * lane_count);
  }
  return dots;
}

/// The same with the tensor cores' sums of FP8 products.
std::vector<float> code_products(const Head<float>& head, const std::vector<float>& q, const KeyRange& seen) {
  const std::vector<float> of_seen = aligned_dots(q, seen.end - seen.begin, [&](std::int64_t j, std::int64_t d) {
    const std::int64_t key = seen.begin + j;
    return head
        .keys[static_cast<std::size_t>(key / lane_count * head.width + d)][static_cast<std::size_t>(key % lane_count)];
  });
  std::vector<float> dots(static_cast<std::size_t>(head.count + lane_count));
  std::copy(of_seen.begin(), of_seen.end(), dots.begin() + seen.begin);
  return dots;
}

/// Σ weight · value over the visible keys, in ascending j.
template <typename Real>
std::vector<Real> average(const Head<Real>& head, const std::vector<Real>& weights, const KeyRange& seen) {
  std::vector<Real> sums(static_cast<std::size_t>(head.value_width));
  for (std::int64_t panel = 0; panel < head.value_width / lane_count; ++panel) {
    Lanes<Real> total{};
    const Lanes<Real>* const values = &head.values[static_cast<std::size_t>(panel * head.count)];
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      for (std::size_t lane = 0; lane < lane_count; ++lane) {
        total[lane] += weights[static_cast<std::size_t>(j)] * values[j][lane];
      }
    }
    std::copy(total.begin(), total.end(), sums.begin() + panel * lane_count);
  }
  return sums;
}

double scaled(const AttentionProblem& problem, const HeadFactors& factors, double dot) {
  const double seen = std::isfinite(static_cast<float>(dot)) ? dot : static_cast<double>(static_cast<float>(dot));
  return capped(problem, seen * factors.of_dots());
}

float scaled(const AttentionProblem& problem, const HeadFactors& factors, float dot) {
  return capped(problem, dot * factors.of_float_dots());
}

/// Turns dot products into exponentials relative to the shift that it returns; `sum` includes the sink's.
template <typename Real>
Real exponentials(const AttentionProblem& problem, const HeadFactors& factors, std::vector<Real>& dots,
                  const KeyRange& seen, Real& sum) {
  const auto sink = static_cast<Real>(factors.sink);
  Real maximum = sink;
  for (std::int64_t j = seen.begin; j < seen.end; ++j) {
    Real& dot = dots[static_cast<std::size_t>(j)];
    dot = scaled(problem, factors, dot);
    maximum = std::max(maximum, dot);
  }
  const Real shift = std::isfinite(maximum) ? maximum : Real{0};
  sum = std::exp(sink - shift);
  for (std::int64_t j = seen.begin; j < seen.end; ++j) {
    Real& weight = dots[static_cast<std::size_t>(j)];
    weight = std::exp(weight - shift);
    sum += weight;
  }
  return shift;
}

/// Writes o[D] and returns the lse.
double row(const AttentionProblem& problem, const HeadFactors& factors, const Head<double>& head,
           const std::vector<double>& q, const KeyRange& seen, double* o) {
  std::vector<double> weights = products(head, q, seen);
  double sum = 0;
  const double shift = exponentials(problem, factors, weights, seen, sum);
  const std::vector<double> total = average(head, weights, seen);
  const auto descale = static_cast<double>(factors.value_descale);
  std::transform(total.begin(), total.end(), o, [=](double value) { return value / sum * descale; });
  return shift + std::log(sum);
}

double row(const AttentionProblem& problem, const HeadFactors& factors, const Head<float>& head,
           const std::vector<float>& q, const KeyRange& seen, double* o) {
  std::vector<float> weights = multiplies_codes(problem) ? code_products(head, q, seen) : products(head, q, seen);
  float sum = 0;
  const float shift = exponentials(problem, factors, weights, seen, sum);
  for (std::int64_t j = seen.begin; j < seen.end; ++j) {
    float& weight = weights[static_cast<std::size_t>(j)];
    weight = plain_probability(problem, weight, sum);
  }
  const std::vector<float> total = average(head, weights, seen);
  std::transform(total.begin(), total.end(), o, [&](float value) {
    return static_cast<double>(rounded(problem.format, value * factors.value_descale));
  });
  return static_cast<double>(shift + std::log(sum));
}

/// The ranges of samples per head of a sequence.
std::vector<std::pair<std::size_t, std::size_t>> runs_of_heads(const std::vector<AttentionSample>& samples) {
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool is_new = i == 0 || samples[i].batch != samples[i - 1].batch || samples[i].head != samples[i - 1].head;
    if (is_new) {
      runs.emplace_back(i, i);
    }
    runs.back().second = i + 1;
  }
  return runs;
}

template <typename Real>
AttentionRows rows_as(const AttentionProblem& problem, const AttentionTensors& tensors,
                      std::vector<AttentionSample> samples, int threads) {
  AttentionRows rows{std::move(samples), {}, {}};
  const std::int64_t width = effective_value_dim(problem);
  rows.o.assign(rows.samples.size() * static_cast<std::size_t>(width), 0.0);
  rows.lse.assign(rows.samples.size(), -HUGE_VAL);
  const auto runs = runs_of_heads(rows.samples);
  parallel_for(static_cast<std::int64_t>(runs.size()), threads, [&](std::int64_t run) {
    const auto [begin, end] = runs[static_cast<std::size_t>(run)];
    const AttentionSample& first = rows.samples[begin];
    const Sequence seq = sequence(problem, tensors, first.batch);
    const Head<Real> head =
        head_of<Real>(problem, tensors, seq, first.batch, first.head / (problem.heads / problem.kv_heads));
    const HeadFactors factors = head_factors(problem, tensors, first.batch, first.head);
    const HeadView view = head_view(tensors.q, first.batch, first.head, seq.first_query);
    std::vector<Real> q(static_cast<std::size_t>(problem.head_dim));
    for (std::size_t i = begin; i < end; ++i) {
      const KeyRange seen = visible_keys(problem, seq, rows.samples[i].query);
      if (seen.empty()) {
        rows.lse[i] = static_cast<double>(factors.sink);
        continue;
      }
      const std::int64_t first_element = view.offset + rows.samples[i].query * view.row_stride;
      for (std::size_t d = 0; d < q.size(); ++d) {
        q[d] = static_cast<Real>(stored(tensors.q, first_element + static_cast<std::int64_t>(d)));
      }
      rows.lse[i] = row(problem, factors, head, q, seen, &rows.o[i * static_cast<std::size_t>(width)]);
    }
  });
  return rows;
}

/// Queries of one tile: all, or random ones and the first and last of the sequence.
void add_tile(const Sequence& seq, std::int64_t tile, std::int64_t wanted, AttentionSample at, std::mt19937_64& random,
              std::vector<AttentionSample>& samples) {
  const std::int64_t first = tile * tile_queries;
  const std::int64_t count = std::min(tile_queries, seq.queries - first);
  std::vector<std::int64_t> queries;
  for (std::int64_t i = 0; i < count; ++i) {
    queries.push_back(first + i);
  }
  if (wanted < count) {
    std::shuffle(queries.begin(), queries.end(), random);
    queries.resize(static_cast<std::size_t>(wanted));
    if (first == 0) {
      queries.push_back(0);
    }
    if (first + count == seq.queries) {
      queries.push_back(seq.queries - 1);
    }
    std::sort(queries.begin(), queries.end());
    queries.erase(std::unique(queries.begin(), queries.end()), queries.end());
  }
  for (const std::int64_t query : queries) {
    at.query = query;
    samples.push_back(at);
  }
}

}  // namespace

std::vector<AttentionSample> sample_queries(const AttentionProblem& problem, const AttentionTensors& tensors,
                                            double max_products, std::uint64_t seed) {
  double total = 0;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const Sequence seq = sequence(problem, tensors, batch);
    total += 2.0 * static_cast<double>(seq.queries) * static_cast<double>(seq.keys) *
             static_cast<double>(problem.head_dim + effective_value_dim(problem)) / 2.0 *
             static_cast<double>(problem.heads);
  }
  const double share = total > max_products ? max_products / total : 1.0;
  const std::int64_t wanted =
      std::max<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(tile_queries)), 1);
  std::mt19937_64 random(seed);
  std::vector<AttentionSample> samples;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const Sequence seq = sequence(problem, tensors, batch);
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      for (std::int64_t tile = 0; tile * tile_queries < seq.queries; ++tile) {
        add_tile(seq, tile, wanted, {batch, head, 0}, random, samples);
      }
    }
  }
  return samples;
}

AttentionRows attention_rows(const AttentionProblem& problem, const AttentionTensors& tensors,
                             std::vector<AttentionSample> samples, int threads) {
  return rows_as<double>(problem, tensors, std::move(samples), threads);
}

AttentionRows attention_rows_plain_low_precision(const AttentionProblem& problem, const AttentionTensors& tensors,
                                                 std::vector<AttentionSample> samples, int threads) {
  return rows_as<float>(problem, tensors, std::move(samples), threads);
}

}  // namespace thresher::reference
