#include "arena/attention/inputs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "arena/data/element_writer.hpp"
#include "arena/random.hpp"
#include "core/integers.hpp"

namespace thresher::arena {
namespace {

/// Queries of full_range are larger by it than normal ones, and so are the logits.
constexpr double full_range_factor = 20;

/// FP8 queries, keys and values are drawn so large that the format's range is used; their descales bring them back.
constexpr double fp8_deviation = 32;

std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t sequences(const AttentionProblem& problem) { return problem.variable_length ? 1 : problem.batch; }

HostTensor empty_matrix(const char* name, const AttentionProblem& problem, Format format, std::int64_t heads,
                        std::int64_t rows, std::int64_t columns) {
  return make_host_tensor(name, format, {sequences(problem) * heads * rows, columns});
}

/// Room for k or v.
HostTensor empty_keys(const char* name, const AttentionProblem& p, std::int64_t columns) {
  const std::int64_t rows = p.page_size > 0 ? p.pages * p.page_size : p.keys;
  return empty_matrix(name, p, effective_kv_format(p), p.kv_heads, rows, columns);
}

/// Normal values from a table of 2¹⁶ of them, four for each random word: the long problems have 10⁸ elements.
void fill_normal(HostTensor& tensor, double deviation, Random& random) {
  constexpr std::int64_t entries = 1 << 16;
  HostTensor table = make_host_tensor("", tensor.format, {entries, 1});
  for (std::int64_t i = 0; i < entries; ++i) {
    write_element(table, i, static_cast<float>(deviation * random.normal()));
  }
  const std::size_t element_bytes = static_cast<std::size_t>(bits(tensor.format)) / 8;
  const std::int64_t elements = tensor.elements();
  for (std::int64_t i = 0; i < elements; i += 4) {
    std::uint64_t word = random.next();
    for (std::int64_t j = i; j < std::min(i + 4, elements); ++j, word >>= 16) {
      std::memcpy(&tensor.values[as_size(j) * element_bytes], &table.values[(word & 0xFFFFU) * element_bytes],
                  element_bytes);
    }
  }
}

/// An element of every row becomes a zero or a subnormal; one of each of `rows` random rows becomes NaN or Inf.
void strew_specials(HostTensor& tensor, std::int64_t rows, Random& random) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 4> odd{-0.0F, 0.0F, 6e-8F, -6e-8F};
  const std::array<float, 3> not_finite{std::numeric_limits<float>::quiet_NaN(), infinity, -infinity};
  const std::int64_t columns = tensor.shape[1];
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    write_element(tensor, row * columns + random.index(columns), odd[random.below(odd.size())]);
  }
  for (std::int64_t i = 0; i < std::min(rows, tensor.rows()); ++i) {
    write_element(tensor, random.index(tensor.rows()) * columns + random.index(columns),
                  not_finite[static_cast<std::size_t>(i) % not_finite.size()]);
  }
}

/// It says which of the other data are used, or by what they are multiplied.
template <class Value>
HostTensor index_of(const char* name, Format format, const std::vector<Value>& values,
                    std::vector<std::int64_t> shape) {
  HostTensor tensor = make_host_tensor(name, format, std::move(shape));
  std::copy_n(reinterpret_cast<const std::uint8_t*>(values.data()), tensor.values.size(), tensor.values.begin());
  tensor.is_index = true;
  return tensor;
}

/// Pages in a random order for the keys of each sequence. Behind them the table names what is not there.
struct PageTable {
  std::vector<std::int32_t> pages;  ///< [batch, columns]
  std::int64_t columns;
  std::vector<std::int64_t> rows_of_page;  ///< that hold keys

  PageTable(const AttentionProblem& p, const std::vector<std::int64_t>& key_lengths, Random& random)
      : columns(ceil_div(p.keys, p.page_size)), rows_of_page(as_size(p.pages), 0) {
    std::vector<std::int32_t> order(as_size(p.pages));
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    pages.assign(as_size(p.batch * columns), -1);
    for (std::int64_t sequence = 0; sequence < p.batch; ++sequence) {
      std::int64_t left = key_lengths[as_size(sequence)];
      for (std::int64_t place = 0; place < columns; ++place) {
        std::int32_t& page = pages[as_size(sequence * columns + place)];
        if (left <= 0) {
          page = place % 2 == 0 ? -1 : static_cast<std::int32_t>(p.pages);
          continue;
        }
        page = order.back();
        order.pop_back();
        rows_of_page[as_size(page)] = std::min(left, p.page_size);
        left -= p.page_size;
      }
    }
  }
};

/// Every row of the pool that is no key becomes NaN.
void poison_unused(const AttentionTask& task, const PageTable& table, HostTensor& pool) {
  constexpr std::uint8_t nan_byte = 0xFF;
  const AttentionProblem& p = task.problem;
  const std::size_t row_bytes = pool.values.size() / as_size(pool.rows());
  for (std::int64_t page = 0; page < p.pages; ++page) {
    for (std::int64_t row = table.rows_of_page[as_size(page)]; row < p.page_size; ++row) {
      for (std::int64_t head = 0; head < p.kv_heads; ++head) {
        const std::int64_t place = task.rows_first ? (page * p.page_size + row) * p.kv_heads + head
                                                   : (page * p.kv_heads + head) * p.page_size + row;
        std::fill_n(pool.values.begin() + static_cast<std::ptrdiff_t>(as_size(place) * row_bytes), row_bytes, nan_byte);
      }
    }
  }
}

/// Offsets, and with pages the table, which poisons the rest of k and v.
void add_lengths(const AttentionTask& task, const AttentionTask& lengths, Random& random,
                 std::vector<HostTensor>& inputs) {
  const AttentionProblem& p = task.problem;
  if (!p.variable_length) {
    return;
  }
  inputs.push_back(index_of("cu_seqlens_q", Format::int32, offsets_of(lengths.query_lengths), {p.batch + 1}));
  if (p.page_size == 0) {
    inputs.push_back(index_of("cu_seqlens_k", Format::int32, offsets_of(lengths.key_lengths), {p.batch + 1}));
    return;
  }
  const PageTable table(p, lengths.key_lengths, random);
  poison_unused(task, table, inputs[1]);
  poison_unused(task, table, inputs[2]);
  const std::vector<std::int32_t> used(lengths.key_lengths.begin(), lengths.key_lengths.end());
  inputs.push_back(index_of("block_table", Format::int32, table.pages, {p.batch, table.columns}));
  inputs.push_back(index_of("seqused_k", Format::int32, used, {p.batch}));
}

/// FP8 queries get their range by their descales.
void add_factors(const AttentionTask& task, double query_range, Random& random, std::vector<HostTensor>& inputs) {
  const AttentionProblem& p = task.problem;
  if (p.sinks) {
    HostTensor sinks = make_host_tensor("sinks", Format::fp32, {p.heads});
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const auto sink = static_cast<float>(2 * random.normal());
      std::memcpy(&sinks.values[as_size(head) * sizeof sink], &sink, sizeof sink);
    }
    inputs.push_back(std::move(sinks));
  }
  if (!p.kv_format) {
    return;
  }
  const auto add_descale = [&](const char* name, double range) {
    std::vector<float> descales;
    for (std::int64_t i = 0; i < p.batch * p.kv_heads; ++i) {
      descales.push_back(static_cast<float>((0.5 + 1.5 * random.uniform()) * range / fp8_deviation));
    }
    inputs.push_back(index_of(name, Format::fp32, descales, {p.batch, p.kv_heads}));
  };
  add_descale("k_descale", 1);
  add_descale("v_descale", 1);
  if (p.q_format) {
    add_descale("q_descale", query_range);
  }
}

/// The same pairs of lengths in another order.
AttentionTask shuffled(AttentionTask task, std::uint64_t seed) {
  std::vector<std::size_t> order(task.query_lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  random.shuffle(order);
  const AttentionTask before = task;
  for (std::size_t i = 0; i < order.size(); ++i) {
    task.query_lengths[i] = before.query_lengths[order[i]];
    task.key_lengths[i] = before.key_lengths[order[i]];
  }
  return task;
}

std::uint64_t seed_of(const AttentionTask& task, Distribution distribution, std::uint64_t seed) {
  return derive_seed(seed, label_of(task) + " " + std::string(name(distribution)));
}

/// So many in all, at most `most` each as far as they fit, of a kind that `change` says.
std::vector<std::int64_t> dealt_lengths(std::int64_t total, std::int64_t count, std::int64_t most, std::uint64_t change,
                                        Random& random) {
  std::vector<std::int64_t> all(as_size(count), 0);
  std::int64_t left = total;
  const auto give = [&](std::int64_t index, std::int64_t wanted) {
    const std::int64_t given = std::min({wanted, left, most - all[as_size(index)]});
    all[as_size(index)] += given;
    left -= given;
  };
  const std::int64_t chosen = random.index(count);
  switch (change % 5) {
    case 0:
      for (std::int64_t i = 0; i < count; ++i) give(i, total / count);
      break;
    case 1: give(chosen, total); break;
    case 2:
      for (std::int64_t i = 0; i < count; i += 2) give(i, ceil_div(2 * total, count + 1));
      break;
    case 3:
      for (std::int64_t i = 0; i < count; ++i) give(i, 1);
      give(chosen, total);
      break;
    default:
      for (std::int64_t i = 0; i < count; ++i) {
        give(i, random.index(2 * total / count + 1));
      }
  }
  for (std::int64_t i = 0; i < count && left > 0; ++i) {
    give((chosen + i) % count, left);
  }
  return all;
}

}  // namespace

std::vector<HostTensor> attention_inputs(const AttentionTask& task, Distribution distribution, std::uint64_t seed) {
  const bool has_order = task.problem.page_size > 0;
  return attention_inputs(task, has_order ? shuffled(task, seed_of(task, distribution, seed)) : task, distribution,
                          seed);
}

std::vector<HostTensor> attention_inputs(const AttentionTask& task, const AttentionTask& lengths,
                                         Distribution distribution, std::uint64_t seed) {
  const AttentionProblem& p = task.problem;
  Random random(seed_of(task, distribution, seed));
  const bool has_specials = distribution == Distribution::specials;
  // A key that is NaN takes every row that sees it, so that a head without a mask would have nothing left to judge.
  const bool spares_rows = p.causal || sequences(p) * p.kv_heads > 1;
  const double key_deviation = p.kv_format ? fp8_deviation : 1;
  std::vector<HostTensor> inputs;
  inputs.push_back(empty_matrix("q", p, effective_q_format(p), p.heads, p.queries, p.head_dim));
  inputs.push_back(empty_keys("k", p, p.head_dim));
  inputs.push_back(empty_keys("v", p, effective_value_dim(p)));
  const double query_range = distribution == Distribution::full_range ? full_range_factor : 1;
  fill_normal(inputs[0], p.q_format ? fp8_deviation : query_range, random);
  fill_normal(inputs[1], key_deviation, random);
  fill_normal(inputs[2], key_deviation, random);
  if (has_specials) {
    strew_specials(inputs[0], 3, random);
    strew_specials(inputs[1], spares_rows ? 1 : 0, random);
    strew_specials(inputs[2], 3, random);
  }
  add_lengths(task, lengths, random, inputs);
  add_factors(task, query_range, random, inputs);
  return inputs;
}

std::vector<HostTensor> attention_outputs(const AttentionTask& task) {
  const AttentionProblem& p = task.problem;
  std::vector<HostTensor> outputs;
  outputs.push_back(empty_matrix("o", p, p.format, p.heads, p.queries, effective_value_dim(p)));
  if (task.lse) {
    outputs.push_back(make_host_tensor("lse", Format::fp32, {sequences(p) * p.heads, p.queries}));
  }
  return outputs;
}

AttentionTensors attention_tensors(const AttentionTask& task, const FindTensor& find) {
  const AttentionProblem& p = task.problem;
  const auto shaped = [&](std::string_view name, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    Tensor tensor = find(name);
    if (p.variable_length) {
      tensor.rank = 3;
      tensor.shape = {rows, heads, width};
      tensor.strides = {heads * width, width, 1};
      return tensor;
    }
    tensor.rank = 4;
    tensor.shape = {p.batch, heads, rows, width};
    const std::int64_t head_stride = task.rows_first ? width : rows * width;
    const std::int64_t row_stride = task.rows_first ? heads * width : width;
    tensor.strides = {heads * rows * width, head_stride, row_stride, 1};
    return tensor;
  };
  const auto keys = [&](std::string_view name, std::int64_t width) {
    if (p.page_size == 0) {
      return shaped(name, p.kv_heads, p.keys, width);
    }
    Tensor tensor = find(name);
    tensor.rank = 4;
    tensor.shape = {p.pages, p.page_size, p.kv_heads, width};
    const std::int64_t row_stride = task.rows_first ? p.kv_heads * width : width;
    const std::int64_t head_stride = task.rows_first ? width : p.page_size * width;
    tensor.strides = {p.page_size * p.kv_heads * width, row_stride, head_stride, 1};
    return tensor;
  };
  AttentionTensors tensors{.q = shaped("q", p.heads, p.queries, p.head_dim),
                           .k = keys("k", p.head_dim),
                           .v = keys("v", effective_value_dim(p)),
                           .o = shaped("o", p.heads, p.queries, effective_value_dim(p)),
                           .cu_seqlens_q = find("cu_seqlens_q"),
                           .cu_seqlens_k = find("cu_seqlens_k"),
                           .block_table = find("block_table"),
                           .seqused_k = find("seqused_k"),
                           .sinks = find("sinks"),
                           .q_descale = find("q_descale"),
                           .k_descale = find("k_descale"),
                           .v_descale = find("v_descale")};
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

AttentionTask other_lengths(const AttentionTask& task, std::uint64_t change, std::uint64_t seed) {
  const AttentionProblem& p = task.problem;
  AttentionTask other = task;
  Random random(derive_seed(seed, "lengths " + std::to_string(change)));
  other.query_lengths = dealt_lengths(p.queries, p.batch, p.queries, change / 2, random);
  const std::int64_t total = std::accumulate(task.key_lengths.begin(), task.key_lengths.end(), std::int64_t{0});
  other.key_lengths = dealt_lengths(total, p.batch, p.page_size > 0 ? p.keys : total, change, random);
  if (p.page_size == 0) {
    return other;
  }
  std::int64_t free_pages = p.pages;
  for (std::int64_t& keys : other.key_lengths) {
    keys = std::min(keys, free_pages * p.page_size);
    free_pages -= ceil_div(keys, p.page_size);
  }
  return other;
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
