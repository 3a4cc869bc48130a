#include "arena/attention/inputs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "arena/data/element_writer.hpp"
#include "arena/random.hpp"

namespace thresher::arena {
namespace {

/// Queries of full_range are larger by it than normal ones, and so are the logits.
constexpr double full_range_factor = 20;

std::int64_t sequences(const AttentionProblem& problem) { return problem.variable_length ? 1 : problem.batch; }

HostTensor empty_matrix(const char* name, const AttentionProblem& problem, std::int64_t heads, std::int64_t rows) {
  return make_host_tensor(name, problem.format, {sequences(problem) * heads * rows, problem.head_dim});
}

/// Normal values from a table of 2¹⁶ of them, four for each random word: the long problems have 10⁸ elements.
void fill_normal(HostTensor& tensor, double deviation, Random& random) {
  constexpr std::int64_t entries = 1 << 16;
  HostTensor table = make_host_tensor("", tensor.format, {entries, 1});
  for (std::int64_t i = 0; i < entries; ++i) {
    write_element(table, i, static_cast<float>(deviation * random.normal()));
  }
  const std::int64_t elements = tensor.elements();
  for (std::int64_t i = 0; i < elements; i += 4) {
    std::uint64_t word = random.next();
    for (std::int64_t j = i; j < std::min(i + 4, elements); ++j, word >>= 16) {
      std::memcpy(&tensor.values[static_cast<std::size_t>(j) * 2], &table.values[(word & 0xFFFFU) * 2], 2);
    }
  }
}

/// An element of every row becomes a zero or a subnormal; one of each of `rows` random rows becomes NaN or Inf.
void strew_specials(HostTensor& tensor, std::int64_t rows, Random& random) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 4> odd{-0.0F, 0.0F, 6e-8F, -6e-8F};
  const std::array<float, 3> not_finite{std::numeric_limits<float>::quiet_NaN(), infinity, -infinity};
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
  };
  const std::int64_t columns = tensor.shape[1];
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    write_element(tensor, row * columns + below(columns), odd[random.below(odd.size())]);
  }
  for (std::int64_t i = 0; i < std::min(rows, tensor.rows()); ++i) {
    write_element(tensor, below(tensor.rows()) * columns + below(columns),
                  not_finite[static_cast<std::size_t>(i) % not_finite.size()]);
  }
}

}  // namespace

std::vector<HostTensor> attention_inputs(const AttentionTask& task, Distribution distribution, std::uint64_t seed) {
  const AttentionProblem& p = task.problem;
  Random random(derive_seed(seed, label_of(task) + " " + std::string(name(distribution))));
  const bool has_specials = distribution == Distribution::specials;
  // A key that is NaN takes every row that sees it, so that a head without a mask would have nothing left to judge.
  const bool spares_rows = p.causal || sequences(p) * p.kv_heads > 1;
  std::vector<HostTensor> inputs;
  inputs.push_back(empty_matrix("q", p, p.heads, p.queries));
  inputs.push_back(empty_matrix("k", p, p.kv_heads, p.keys));
  inputs.push_back(empty_matrix("v", p, p.kv_heads, p.keys));
  fill_normal(inputs[0], distribution == Distribution::full_range ? full_range_factor : 1.0, random);
  fill_normal(inputs[1], 1, random);
  fill_normal(inputs[2], 1, random);
  if (has_specials) {
    strew_specials(inputs[0], 3, random);
    strew_specials(inputs[1], spares_rows ? 1 : 0, random);
    strew_specials(inputs[2], 3, random);
  }
  return inputs;
}

std::vector<HostTensor> attention_outputs(const AttentionTask& task) {
  const AttentionProblem& p = task.problem;
  std::vector<HostTensor> outputs;
  outputs.push_back(empty_matrix("o", p, p.heads, p.queries));
  if (task.lse) {
    outputs.push_back(make_host_tensor("lse", Format::fp32, {sequences(p) * p.heads, p.queries}));
  }
  return outputs;
}

AttentionTensors attention_tensors(const AttentionTask& task, const std::function<Tensor(std::string_view)>& find) {
  const AttentionProblem& p = task.problem;
  const auto shaped = [&](std::string_view name, std::int64_t heads, std::int64_t rows) {
    Tensor tensor = find(name);
    if (p.variable_length) {
      tensor.rank = 3;
      tensor.shape = {rows, heads, p.head_dim};
      tensor.strides = {heads * p.head_dim, p.head_dim, 1};
      return tensor;
    }
    tensor.rank = 4;
    tensor.shape = {p.batch, heads, rows, p.head_dim};
    const std::int64_t head_stride = task.rows_first ? p.head_dim : rows * p.head_dim;
    const std::int64_t row_stride = task.rows_first ? heads * p.head_dim : p.head_dim;
    tensor.strides = {heads * rows * p.head_dim, head_stride, row_stride, 1};
    return tensor;
  };
  AttentionTensors tensors{shaped("q", p.heads, p.queries), shaped("k", p.kv_heads, p.keys),
                           shaped("v", p.kv_heads, p.keys), shaped("o", p.heads, p.queries)};
  if (task.lse) {
    tensors.lse = find("lse");
    if (!p.variable_length) {
      tensors.lse.rank = 3;
      tensors.lse.shape = {p.batch, p.heads, p.queries};
      tensors.lse.strides = {p.heads * p.queries, p.queries, 1};
    }
  }
  return tensors;
}

std::vector<std::int32_t> offsets_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> offsets;
  std::int32_t next = 0;
  for (const std::int64_t length : lengths) {
    offsets.push_back(next);
    next += static_cast<std::int32_t>(length);
  }
  if (!lengths.empty()) {
    offsets.push_back(next);
  }
  return offsets;
}

}  // namespace thresher::arena
