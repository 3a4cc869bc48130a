#include "arena/gemm/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "arena/data/element_writer.hpp"
#include "arena/gemm/generate.hpp"
#include "arena/random.hpp"
#include "core/grouped_weights.hpp"
#include "core/integers.hpp"
#include "formats/scales.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint8_t nan_byte = 0xFF;

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t rows_of_a(const GroupedProblem& p) {
  return p.layout == RowLayout::slots ? p.experts * p.rows : p.layout == RowLayout::gathered ? p.tokens : p.rows;
}

/// As the operands of a product are drawn.
DualGemmProblem operands_of(const ProductTask& task) {
  const GroupedProblem& p = task.problem;
  return {.m = rows_of_a(p), .n = p.n, .k = p.k, .a = p.a, .b = p.b, .out = p.out};
}

std::uint64_t seed_of(const ProductTask& task, Distribution distribution, std::uint64_t seed, const char* what) {
  return derive_seed(seed, fmt::format("{} {} {}", label_of(task), name(distribution), what));
}

/// `count` matrices [rows, k], each with scales and a global scale of its own.
HostTensor stack_of(OperandSource& source, const char* name, std::int64_t count, std::int64_t rows) {
  HostTensor stack = source.draw(name, rows);
  for (std::int64_t i = 1; i < count; ++i) {
    const HostTensor next = source.draw(name, rows);
    stack.values.insert(stack.values.end(), next.values.begin(), next.values.end());
    stack.scales.insert(stack.scales.end(), next.scales.begin(), next.scales.end());
    stack.global_scales.insert(stack.global_scales.end(), next.global_scales.begin(), next.global_scales.end());
  }
  stack.shape = {count, rows, stack.shape[1]};
  return stack;
}

/// Global scales that differ from matrix to matrix; integers stay integers.
void spread_global_scales(HostTensor& stack, Distribution distribution, Random& random) {
  for (float& scale : stack.global_scales) {
    scale *= distribution == Distribution::integers ? 1.0F : static_cast<float>(0.6 + 0.8 * random.uniform());
  }
}

void fill_floats(HostTensor& tensor, const auto& draw) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const float value = draw();
    if (tensor.format == Format::fp32) {
      std::memcpy(&tensor.values[size(i) * sizeof value], &value, sizeof value);
    } else {
      write_element(tensor, i, value);
    }
  }
}

/// Biases of gates are above 0 where gates have to stay so large that the activation is exact.
HostTensor bias(const ProductTask& task, const char* name, bool is_gate, Distribution distribution, Random& random) {
  HostTensor tensor = make_host_tensor(name, task.bias_format, {task.problem.experts, task.problem.n});
  tensor.is_weight = true;
  const bool is_integer = distribution == Distribution::integers;
  fill_floats(tensor, [&]() -> float {
    return is_integer ? static_cast<float>(static_cast<int>(random.below(3)) - (is_gate ? 0 : 1))
                      : static_cast<float>(random.normal());
  });
  return tensor;
}

/// The place of a row of gate or up among those of both.
std::int64_t fused_row(GateUpOrder order, bool is_up, std::int64_t row, std::int64_t outputs) {
  if (order == GateUpOrder::interleaved) {
    return 2 * row + (is_up ? 1 : 0);
  }
  const bool is_second = is_up == (order == GateUpOrder::gate_first);
  return is_second ? outputs + row : row;
}

/// Pieces of `piece` bytes, `outputs` an expert, of gate and up in one.
std::vector<std::uint8_t> fused_bytes(const std::vector<std::uint8_t>& gate, const std::vector<std::uint8_t>& up,
                                      std::int64_t experts, std::int64_t outputs, GateUpOrder order) {
  std::vector<std::uint8_t> both(2 * gate.size());
  const std::size_t piece = gate.size() / size(experts * outputs);
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    for (std::int64_t row = 0; row < outputs; ++row) {
      const auto* const from = &gate[size(expert * outputs + row) * piece];
      const auto* const up_from = &up[size(expert * outputs + row) * piece];
      std::copy_n(from, piece, &both[size(2 * expert * outputs + fused_row(order, false, row, outputs)) * piece]);
      std::copy_n(up_from, piece, &both[size(2 * expert * outputs + fused_row(order, true, row, outputs)) * piece]);
    }
  }
  return both;
}

HostTensor fused(const HostTensor& gate, const HostTensor& up, std::int64_t outputs, GateUpOrder order) {
  HostTensor both = gate;
  const std::int64_t experts = gate.rows();
  both.shape[1] *= 2;
  both.values = fused_bytes(gate.values, up.values, experts, outputs, order);
  if (!gate.scales.empty()) {
    const std::int64_t block_rows = gate.view().scales.block.rows;
    both.scales = fused_bytes(gate.scales, up.scales, experts, ceil_div(outputs, block_rows), order);
  }
  return both;
}

HostTensor floats(const char* name, const std::vector<float>& values) {
  HostTensor tensor = make_host_tensor(name, Format::fp32, {std::ssize(values)});
  std::memcpy(tensor.values.data(), values.data(), tensor.values.size());
  return tensor;
}

HostTensor integers(const char* name, const std::vector<std::int32_t>& values) {
  HostTensor tensor = make_host_tensor(name, Format::int32, {std::ssize(values)});
  std::memcpy(tensor.values.data(), values.data(), tensor.values.size());
  tensor.is_index = true;
  return tensor;
}

/// The static scales of an output in fp8_tensor: most values of a usual case are in range, and some beyond.
HostTensor given_scales(const ProductTask& task) {
  const bool has_slots = task.problem.layout == RowLayout::slots;
  std::vector<float> scales;
  for (std::int64_t slot = 0; slot < (has_slots ? task.problem.experts : 1); ++slot) {
    scales.push_back(slot % 2 == 0 ? min_given_scale : 2 * min_given_scale);
  }
  HostTensor tensor = floats("c_scale", scales);
  tensor.is_index = true;
  return tensor;
}

/// Rows of C: which expert owns what, from `counts`.
struct Rows {
  std::vector<std::int32_t> groups;  ///< offsets or counts
  std::vector<bool> is_owned;        ///< masked: one expert behind the other
  std::vector<std::int64_t> first;   ///< of each expert that has any
};

Rows rows_of(const ProductTask& task, const std::vector<std::int64_t>& counts) {
  const GroupedProblem& p = task.problem;
  const bool has_slots = p.layout == RowLayout::slots;
  Rows rows;
  rows.is_owned.assign(size(has_slots ? p.experts * p.rows : p.rows), false);
  std::int64_t next = task.margin;
  for (std::int64_t expert = 0; expert < p.experts; ++expert) {
    const std::int64_t count = counts[size(expert)];
    const std::int64_t first = has_slots ? expert * p.rows : next;
    rows.groups.push_back(static_cast<std::int32_t>(has_slots ? count : next));
    std::fill_n(rows.is_owned.begin() + first, count, true);
    if (count > 0) {
      rows.first.push_back(first);
    }
    next += count;
  }
  if (!has_slots) {
    rows.groups.push_back(static_cast<std::int32_t>(next));
  }
  return rows;
}

/// Tokens in a random order, every one once where there are as many as rows; some outside A.
std::vector<std::int32_t> row_ids(const ProductTask& task, Random& random) {
  const GroupedProblem& p = task.problem;
  const std::int64_t all = p.tokens * p.row_ids_divisor;
  std::vector<std::int32_t> ids(size(std::max(all, p.rows)));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % std::max<std::int64_t>(all, 1));
  }
  random.shuffle(ids);
  ids.resize(size(p.rows));
  for (std::int64_t row = 0; task.skipped > 0 && row < p.rows; ++row) {
    if (random.below(static_cast<std::uint64_t>(task.skipped)) == 0) {
      ids[size(row)] = row % 2 == 0 ? -1 : static_cast<std::int32_t>(all + row);
    }
  }
  return ids;
}

/// Every byte of a row, and of its scales.
void fill_row(HostTensor& a, std::int64_t row, std::uint8_t value, std::uint8_t scale) {
  const std::int64_t columns = a.shape.back();
  const std::size_t row_bytes = a.values.size() / size(a.elements() / columns);
  std::fill_n(a.values.begin() + static_cast<std::ptrdiff_t>(size(row) * row_bytes), row_bytes, value);
  if (a.scales.empty()) {
    return;
  }
  const bool is_stack = a.shape.size() == 3;
  const std::int64_t of_one = is_stack ? a.shape[1] : a.shape[0];
  const Tensor matrix = is_stack ? slot_matrix(a.view(), 0) : a.view();
  const std::int64_t scale_bytes = bits(matrix.scales.format) / 8;
  const std::size_t begin = a.scales.size() / size(a.elements() / columns / of_one) * size(row / of_one);
  for (std::int64_t column = 0; column < columns; column += matrix.scales.block.columns) {
    std::fill_n(a.scales.begin() + static_cast<std::ptrdiff_t>(begin) +
                    formats::scale_index(matrix, row % of_one, column) * scale_bytes,
                scale_bytes, scale);
  }
}

/// Unowned rows become NaN. In some groups the first row is all zeros, which does not make them empty.
void strew_rows(const ProductTask& task, const Rows& rows, Distribution distribution, Random& random, HostTensor& a) {
  if (task.problem.layout == RowLayout::gathered) {
    return;
  }
  for (std::size_t row = 0; row < rows.is_owned.size(); ++row) {
    if (!rows.is_owned[row]) {
      fill_row(a, static_cast<std::int64_t>(row), nan_byte, nan_byte);
    }
  }
  for (const std::int64_t first : rows.first) {
    if (distribution != Distribution::integers && random.below(4) == 0) {
      fill_row(a, first, 0, 0);
    }
  }
}

HostTensor row_weights(const ProductTask& task, const Rows& rows, Distribution distribution, Random& random) {
  const GroupedProblem& p = task.problem;
  const bool has_slots = p.layout == RowLayout::slots;
  HostTensor tensor =
      make_host_tensor("row_weights", Format::fp32, has_slots ? std::vector{p.experts, p.rows} : std::vector{p.rows});
  std::size_t row = 0;
  fill_floats(tensor, [&]() -> float {
    constexpr std::array<float, 4> exact{1.0F, -1.0F, 0.5F, 2.0F};
    if (!rows.is_owned[row++]) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    return distribution == Distribution::integers ? exact[random.below(exact.size())]
                                                  : static_cast<float>(0.05 + 0.95 * random.uniform());
  });
  return tensor;
}

}  // namespace

std::vector<HostTensor> product_activations(const ProductTask& task, const std::vector<std::int64_t>& counts,
                                            Distribution distribution, std::uint64_t seed) {
  const GroupedProblem& p = task.problem;
  const std::uint64_t own = seed_of(task, distribution, seed, "rows");
  const bool has_slots = p.layout == RowLayout::slots;
  OperandSource source(operands_of(task), task.scale_layout, distribution, own);
  Random random(derive_seed(own, "which rows"));
  const Rows rows = rows_of(task, counts);
  std::vector<HostTensor> tensors;
  HostTensor a = has_slots ? stack_of(source, "a", p.experts, p.rows) : source.draw("a", rows_of_a(p));
  if (has_slots) {
    spread_global_scales(a, distribution, random);
  }
  strew_rows(task, rows, distribution, random, a);
  tensors.push_back(std::move(a));
  if (!task.is_dense) {
    tensors.push_back(integers(has_slots ? "counts" : "offsets", rows.groups));
  }
  if (p.layout == RowLayout::gathered) {
    tensors.push_back(integers("row_ids", row_ids(task, random)));
  }
  if (p.row_weights) {
    tensors.push_back(row_weights(task, rows, distribution, random));
  }
  if (p.out == Format::fp8_tensor) {
    tensors.push_back(given_scales(task));
  }
  return tensors;
}

std::vector<HostTensor> product_activations(const ProductTask& task, Distribution distribution, std::uint64_t seed) {
  if (task.is_dual_gemm()) {
    return dual_gemm_activations(task, distribution, seed);
  }
  std::vector<std::int64_t> counts = task.counts;
  Random random(seed_of(task, distribution, seed, "counts"));
  random.shuffle(counts);
  return product_activations(task, counts, distribution, seed);
}

std::vector<HostTensor> weight_inputs(const ProductTask& task, Distribution distribution, std::uint64_t seed) {
  const GroupedProblem& p = task.problem;
  const std::uint64_t own = seed_of(task, distribution, seed, "weights");
  OperandSource source(operands_of(task), task.scale_layout, distribution, own);
  Random random(derive_seed(own, "scales and biases"));
  const auto draw = [&](const char* name) {
    HostTensor stack = stack_of(source, name, p.experts, p.n);
    spread_global_scales(stack, distribution, random);
    return stack;
  };
  std::vector<HostTensor> weights;
  weights.push_back(draw("b1"));
  if (!is_gated(p.activation)) {
    if (p.bias) {
      weights.push_back(bias(task, "bias1", true, distribution, random));
    }
    return weights;
  }
  weights.push_back(draw("b2"));
  std::vector<HostTensor> biases;
  if (p.bias) {
    biases.push_back(bias(task, "bias1", true, distribution, random));
    biases.push_back(bias(task, "bias2", false, distribution, random));
  }
  if (task.order) {
    const std::vector<float> up_scales = weights[1].global_scales;
    weights = {fused(weights[0], weights[1], p.n, *task.order)};
    if (!up_scales.empty()) {
      weights.push_back(floats("up_global_scales", up_scales));
      weights.back().is_weight = true;
    }
    if (p.bias) {
      HostTensor both = biases[0];
      both.shape[1] *= 2;
      both.values = fused_bytes(biases[0].values, biases[1].values, p.experts, p.n, *task.order);
      biases = {both};
    }
  }
  std::move(biases.begin(), biases.end(), std::back_inserter(weights));
  return weights;
}

std::vector<HostTensor> product_inputs(const ProductTask& task, Distribution distribution, std::uint64_t seed) {
  if (task.is_dual_gemm()) {
    return dual_gemm_inputs(task, distribution, seed);
  }
  std::vector<HostTensor> rows = product_activations(task, distribution, seed);
  std::vector<HostTensor> inputs;
  inputs.push_back(std::move(rows.front()));
  for (HostTensor& weight : weight_inputs(task, distribution, seed)) {
    inputs.push_back(std::move(weight));
  }
  std::move(rows.begin() + 1, rows.end(), std::back_inserter(inputs));
  return inputs;
}

std::vector<HostTensor> product_outputs(const ProductTask& task) {
  const GroupedProblem& p = task.problem;
  const auto rows_of = [&](std::int64_t columns) {
    return p.layout == RowLayout::slots ? std::vector{p.experts, p.rows, columns} : std::vector{p.rows, columns};
  };
  const FormatTraits& traits = format_traits(p.out);
  std::vector<HostTensor> outputs;
  outputs.push_back(make_host_tensor("c", traits.is_quantized_output() ? Format::fp8_e4m3 : p.out, rows_of(p.n)));
  if (traits.is_quantized_output() && traits.has_scales()) {
    const std::int64_t columns = scale_block_of(p.out, OperandRole::tokens, p.n).columns;
    outputs.push_back(make_host_tensor("c_scales", Format::fp32, rows_of(ceil_div(p.n, columns))));
  }
  return outputs;
}

GroupedWeights grouped_weights(const ProductTask& task, const FindTensor& find) {
  const auto stack = [&](const char* name) {
    const Tensor weight = find(name);
    return weight.rank == 2 && task.is_dual_gemm() ? stack_of_one(weight) : weight;
  };
  return {.b1 = stack("b1"),
          .b2 = stack("b2"),
          .order = task.order,
          .up_global_scale = static_cast<const float*>(find("up_global_scales").data),
          .bias1 = find("bias1"),
          .bias2 = find("bias2")};
}

Tensor grouped_output(const GroupedProblem& problem, const FindTensor& find) {
  Tensor c = find("c");
  if (!format_traits(problem.out).is_quantized_output()) {
    return c;
  }
  c.format = problem.out;
  c.scales.data = find("c_scales").data;
  c.describe_scales(OperandRole::tokens);
  c.global_scale = static_cast<const float*>(find("c_scale").data);
  return c;
}

Tensor only_matrix(const Tensor& stack) {
  Tensor one = stack;
  one.rank = std::max(0, stack.rank - 1);
  std::copy(stack.shape.begin() + 1, stack.shape.end(), one.shape.begin());
  std::copy(stack.strides.begin() + 1, stack.strides.end(), one.strides.begin());
  return one;
}

GroupedTensors grouped_tensors(const ProductTask& task, const FindTensor& find) {
  return {.a = find("a"),
          .c = grouped_output(task.problem, find),
          .offsets = find("offsets"),
          .counts = find("counts"),
          .row_ids = find("row_ids"),
          .row_weights = find("row_weights")};
}

std::vector<std::int64_t> other_counts(const ProductTask& task, std::uint64_t change, std::uint64_t seed) {
  const GroupedProblem& p = task.problem;
  const bool has_slots = p.layout == RowLayout::slots;
  const std::int64_t most = has_slots ? p.rows : task.owned_rows();
  std::int64_t left = task.owned_rows();
  std::vector<std::int64_t> counts(size(p.experts), 0);
  Random random(derive_seed(seed, fmt::format("counts {}", change)));
  const auto give = [&](std::int64_t expert, std::int64_t wanted) {
    std::int64_t& count = counts[size(expert)];
    const std::int64_t given = std::min({wanted, left, most - count});
    count += given;
    left -= given;
  };
  const auto any = [&] { return random.index(p.experts); };
  switch (change % 5) {
    case 0:
      for (std::int64_t expert = 0; expert < p.experts; ++expert) {
        give(expert, task.owned_rows() / p.experts);
      }
      break;
    case 1: give(any(), left); break;
    case 2:
      for (std::int64_t expert = 0; expert < p.experts; ++expert) {
        give(expert, 1);
      }
      break;
    case 3:
      for (std::int64_t expert = 1; expert < p.experts; expert += 2) {
        give(expert, 2 * left / p.experts + 1);
      }
      break;
    default:
      for (std::int64_t i = 0; i < p.experts; ++i) {
        give(any(), 1 + random.index(left + 1) / 2);
      }
  }
  give(p.experts - 1, left);
  for (std::int64_t expert = 0; expert < p.experts && left > 0; ++expert) {
    give(expert, left);
  }
  return counts;
}

}  // namespace thresher::arena
