#pragma once
/// Owned tensors for one attention, random and reproducible, and the edge cases that every implementation must get
/// right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/attention_view.hpp"
#include "thresher/attention.hpp"

namespace thresher::test {

/// Memory order of q, k, v and o with fixed length; the shape is [B,H,S,D] in both.
enum class Order { heads_first, rows_first };

/// Tensors of a problem on the CPU. o and lse are poisoned, and with pages everything that no sequence uses is NaN: the
/// lengths of keys are then `cu_k`, and pages lie in random order.
class AttentionCase {
 public:
  static constexpr std::uint16_t poison = 0x7E5A;  // NaN in fp16, a large number in bf16
  static constexpr float lse_poison = 1234.5F;

  explicit AttentionCase(const AttentionProblem& of, Order order = Order::heads_first,
                         std::vector<std::int32_t> cu_q = {}, std::vector<std::int32_t> cu_k = {}, unsigned seed = 1)
      : problem(of), cu_seqlens_q(std::move(cu_q)), cu_seqlens_k(std::move(cu_k)), random_(seed) {
    tensors.q = make(q, problem.heads, problem.queries, problem.head_dim, order);
    if (problem.q_format) {
      q_codes = codes_of(q);
      tensors.q = view(q_codes.data(), *problem.q_format, problem.heads, problem.queries, problem.head_dim, order);
    }
    if (problem.page_size > 0) {
      make_table();
    }
    tensors.k = make_keys(k, k_codes, problem.head_dim, order);
    tensors.v = make_keys(v, v_codes, effective_value_dim(problem), order);
    tensors.o = make(o, problem.heads, problem.queries, effective_value_dim(problem), order);
    std::fill(o.begin(), o.end(), poison);
    const std::int64_t rows = problem.variable_length ? problem.queries : problem.batch * problem.queries;
    lse.assign(static_cast<std::size_t>(problem.heads * rows + 1), lse_poison);
    tensors.lse = problem.variable_length
                      ? Tensor::contiguous(lse.data(), Format::fp32, {problem.heads, problem.queries})
                      : Tensor::contiguous(lse.data(), Format::fp32, {problem.batch, problem.heads, problem.queries});
    if (problem.variable_length) {
      tensors.cu_seqlens_q = Tensor::contiguous(cu_seqlens_q.data(), Format::int32, {problem.batch + 1});
      if (problem.page_size == 0) {
        tensors.cu_seqlens_k = Tensor::contiguous(cu_seqlens_k.data(), Format::int32, {problem.batch + 1});
      }
    }
    make_factors();
  }
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  [[nodiscard]] std::uint16_t narrow(float value) const {
    return problem.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
  }
  /// Sets one element of k or v: sequence 0, `head`, row, column (-1: the whole row).
  void set(Tensor& tensor, std::int64_t head, std::int64_t row, std::int64_t column, float value) {
    const reference::Sequence first = reference::sequence(problem, tensors, 0);
    auto* data = static_cast<std::uint16_t*>(tensor.data) +
                 reference::KeyRows(problem, tensors, tensor, first, 0, head).offset(row);
    for (std::int64_t d = 0; d < tensor.shape[static_cast<std::size_t>(tensor.rank - 1)]; ++d) {
      if (column < 0 || column == d) {
        data[d] = narrow(value);
      }
    }
  }
  static void multiply(std::vector<std::uint16_t>& values, Format format, float factor) {
    for (std::uint16_t& value : values) {
      value = format == Format::fp16 ? formats::float_to_fp16(formats::fp16_to_float(value) * factor)
                                     : formats::float_to_bf16(formats::bf16_to_float(value) * factor);
    }
  }

  AttentionProblem problem;
  AttentionTensors tensors;
  std::vector<std::uint16_t> q, k, v, o;
  std::vector<std::uint8_t> q_codes, k_codes, v_codes;  ///< FP8 queries, keys and values, in place of q, k and v
  std::vector<float> lse, sinks, q_descale, k_descale, v_descale;
  std::vector<std::int32_t> cu_seqlens_q, cu_seqlens_k, block_table;  ///< with pages cu_seqlens_k is seqused_k

 private:
  Tensor make(std::vector<std::uint16_t>& storage, std::int64_t heads, std::int64_t rows, std::int64_t width,
              Order order) {
    const std::int64_t batch = problem.variable_length ? 1 : problem.batch;
    storage.resize(static_cast<std::size_t>(batch * heads * rows * width));
    std::normal_distribution<float> normal(0.0F, 1.0F);
    for (std::uint16_t& value : storage) {
      value = narrow(normal(random_));
    }
    return view(storage.data(), problem.format, heads, rows, width, order);
  }

  [[nodiscard]] Tensor view(void* data, Format format, std::int64_t heads, std::int64_t rows, std::int64_t width,
                            Order order) const {
    if (problem.variable_length) {
      return Tensor::contiguous(data, format, {rows, heads, width});
    }
    Tensor tensor = Tensor::contiguous(data, format, {problem.batch, heads, rows, width});
    if (order == Order::rows_first) {
      tensor.strides = {rows * heads * width, width, heads * width, 1};
    }
    return tensor;
  }

  [[nodiscard]] std::vector<std::uint8_t> codes_of(const std::vector<std::uint16_t>& values) const {
    std::vector<std::uint8_t> codes;
    codes.reserve(values.size());
    for (const std::uint16_t value : values) {
      codes.push_back(formats::float_to_e4m3(problem.format == Format::fp16 ? formats::fp16_to_float(value)
                                                                            : formats::bf16_to_float(value)));
    }
    return codes;
  }

  /// Keys or values: 16 bits or FP8, in pages or not.
  Tensor make_keys(std::vector<std::uint16_t>& storage, std::vector<std::uint8_t>& codes, std::int64_t width,
                   Order order) {
    const bool is_paged = problem.page_size > 0;
    const std::int64_t rows = is_paged ? problem.pages * problem.page_size : problem.keys;
    Tensor tensor = make(storage, problem.kv_heads, rows, width, order);
    if (problem.kv_format) {
      codes = codes_of(storage);
      tensor = view(codes.data(), *problem.kv_format, problem.kv_heads, rows, width, order);
    }
    if (is_paged) {
      tensor =
          Tensor::contiguous(tensor.data, tensor.format, {problem.pages, problem.page_size, problem.kv_heads, width});
      poison_unused(storage, codes, width);
    }
    return tensor;
  }

  /// Every row of the pool that is no sequence's key.
  void poison_unused(std::vector<std::uint16_t>& storage, std::vector<std::uint8_t>& codes, std::int64_t width) const {
    std::vector<bool> is_used(static_cast<std::size_t>(problem.pages * problem.page_size));
    const std::int64_t columns = static_cast<std::int64_t>(block_table.size()) / problem.batch;
    for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
      for (std::int64_t key = 0; key < cu_seqlens_k[static_cast<std::size_t>(sequence)]; ++key) {
        const std::int64_t page = block_table[static_cast<std::size_t>(sequence * columns + key / problem.page_size)];
        is_used[static_cast<std::size_t>(page * problem.page_size + key % problem.page_size)] = true;
      }
    }
    const std::int64_t row_elements = problem.kv_heads * width;
    for (std::size_t row = 0; row < is_used.size(); ++row) {
      if (is_used[row]) {
        continue;
      }
      const auto first = static_cast<std::ptrdiff_t>(row) * row_elements;
      std::fill_n(storage.begin() + first, row_elements, narrow(std::numeric_limits<float>::quiet_NaN()));
      if (!codes.empty()) {
        std::fill_n(codes.begin() + first, row_elements, std::uint8_t{0x7F});
      }
    }
  }

  /// A page of its own for every place that a sequence uses; nonsense behind them.
  void make_table() {
    std::vector<std::int32_t> free_pages(static_cast<std::size_t>(problem.pages));
    std::iota(free_pages.begin(), free_pages.end(), 0);
    std::shuffle(free_pages.begin(), free_pages.end(), random_);
    const std::int64_t columns = (problem.keys + problem.page_size - 1) / problem.page_size;
    block_table.assign(static_cast<std::size_t>(problem.batch * columns), -7);
    for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
      const std::int64_t keys = cu_seqlens_k[static_cast<std::size_t>(sequence)];
      for (std::int64_t place = 0; place * problem.page_size < keys; ++place) {
        block_table[static_cast<std::size_t>(sequence * columns + place)] = free_pages.back();
        free_pages.pop_back();
      }
    }
    tensors.block_table = Tensor::contiguous(block_table.data(), Format::int32, {problem.batch, columns});
    tensors.seqused_k = Tensor::contiguous(cu_seqlens_k.data(), Format::int32, {problem.batch});
  }

  void make_factors() {
    std::uniform_real_distribution<float> near_one(0.5F, 2.0F);
    if (problem.sinks) {
      sinks.resize(static_cast<std::size_t>(problem.heads));
      for (float& sink : sinks) {
        sink = 2.0F * near_one(random_) - 2.0F;
      }
      tensors.sinks = Tensor::contiguous(sinks.data(), Format::fp32, {problem.heads});
    }
    const auto make_descale = [&](std::vector<float>& descales) {
      descales.resize(static_cast<std::size_t>(problem.batch * problem.kv_heads));
      for (float& descale : descales) {
        descale = near_one(random_);
      }
      return Tensor::contiguous(descales.data(), Format::fp32, {problem.batch, problem.kv_heads});
    };
    if (problem.kv_format) {
      tensors.k_descale = make_descale(k_descale);
      tensors.v_descale = make_descale(v_descale);
    }
    if (problem.q_format) {
      tensors.q_descale = make_descale(q_descale);
    }
  }

  std::mt19937 random_;
};

/// One named case: how to build it.
struct NamedCase {
  std::string name;
  std::function<std::unique_ptr<AttentionCase>()> make;
};

/// For INSTANTIATE_TEST_SUITE_P: letters, digits and underscores.
inline std::string case_name(const ::testing::TestParamInfo<NamedCase>& tested) {
  std::string name = tested.param.name;
  for (char& letter : name) {
    letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  }
  return name;
}

/// The edge cases; see attention_cases.cpp.
std::vector<NamedCase> attention_edge_cases(bool small_only = false);

/// Head dimensions 192 and 256, and values that are not as wide as keys.
std::vector<NamedCase> attention_width_cases();

/// Keys in pages and in FP8, sinks, head dimension 256, values of another width, and all of them together.
std::vector<NamedCase> attention_serving_cases();

}  // namespace thresher::test
