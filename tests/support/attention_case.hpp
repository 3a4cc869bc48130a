#pragma once
/// Owned tensors for one attention, random and reproducible, and the edge cases that every implementation must get
/// right.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/attention_view.hpp"
#include "thresher/attention.hpp"

namespace thresher::test {

/// Memory order of q, k, v and o with fixed length; the shape is [B,H,S,D] in both.
enum class Order { heads_first, rows_first };

/// Tensors of a problem on the CPU. o and lse are poisoned.
class AttentionCase {
 public:
  static constexpr std::uint16_t poison = 0x7E5A;  // NaN in fp16, a large number in bf16
  static constexpr float lse_poison = 1234.5F;

  explicit AttentionCase(const AttentionProblem& of, Order order = Order::heads_first,
                         std::vector<std::int32_t> cu_q = {}, std::vector<std::int32_t> cu_k = {}, unsigned seed = 1)
      : problem(of), cu_seqlens_q(std::move(cu_q)), cu_seqlens_k(std::move(cu_k)), random_(seed) {
    tensors.q = make(q, problem.heads, problem.queries, order, 1.0F);
    tensors.k = make(k, problem.kv_heads, problem.keys, order, 1.0F);
    tensors.v = make(v, problem.kv_heads, problem.keys, order, 1.0F);
    tensors.o = make(o, problem.heads, problem.queries, order, 0.0F);
    std::fill(o.begin(), o.end(), poison);
    const std::int64_t rows = problem.variable_length ? problem.queries : problem.batch * problem.queries;
    lse.assign(static_cast<std::size_t>(problem.heads * rows + 1), lse_poison);
    tensors.lse = problem.variable_length
                      ? Tensor::contiguous(lse.data(), Format::fp32, {problem.heads, problem.queries})
                      : Tensor::contiguous(lse.data(), Format::fp32, {problem.batch, problem.heads, problem.queries});
    if (problem.variable_length) {
      tensors.cu_seqlens_q = Tensor::contiguous(cu_seqlens_q.data(), Format::int32, {problem.batch + 1});
      tensors.cu_seqlens_k = Tensor::contiguous(cu_seqlens_k.data(), Format::int32, {problem.batch + 1});
    }
  }
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  [[nodiscard]] std::uint16_t narrow(float value) const {
    return problem.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
  }
  /// Sets one element of k or v: sequence 0, `head`, row, column (-1: the whole row).
  void set(Tensor& tensor, std::int64_t head, std::int64_t row, std::int64_t column, float value) {
    const reference::HeadView view = reference::head_view(tensor, 0, head, 0);
    auto* data = static_cast<std::uint16_t*>(tensor.data) + view.offset + row * view.row_stride;
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
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
  std::vector<float> lse;
  std::vector<std::int32_t> cu_seqlens_q, cu_seqlens_k;

 private:
  Tensor make(std::vector<std::uint16_t>& storage, std::int64_t heads, std::int64_t rows, Order order,
              float deviation) {
    const std::int64_t width = problem.head_dim;
    const std::int64_t batch = problem.variable_length ? 1 : problem.batch;
    storage.resize(static_cast<std::size_t>(batch * heads * rows * width));
    std::normal_distribution<float> normal(0.0F, 1.0F);
    for (std::uint16_t& value : storage) {
      value = narrow(deviation * normal(random_));
    }
    if (problem.variable_length) {
      return Tensor::contiguous(storage.data(), problem.format, {rows, heads, width});
    }
    Tensor tensor = Tensor::contiguous(storage.data(), problem.format, {batch, heads, rows, width});
    if (order == Order::rows_first) {
      tensor.strides = {rows * heads * width, width, heads * width, 1};
    }
    return tensor;
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

}  // namespace thresher::test
