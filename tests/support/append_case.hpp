#pragma once
/// Owned tensors for one append, random and reproducible.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/append.hpp"
#include "thresher/append.hpp"

namespace thresher::test {

/// Owned tensors of one append: random rows, pages of 0xA5, positions and slots in no order, of which one is skipped.
class AppendCase {
 public:
  explicit AppendCase(const AppendProblem& of, int number_bits = 64) : problem(of) {
    const std::int64_t tokens = problem.tokens;
    const std::int64_t value_dim = problem.value_dim == 0 ? problem.head_dim : problem.value_dim;
    tensors.q = rows(q, problem.heads, problem.head_dim);
    tensors.k = rows(k, problem.kv_heads, problem.head_dim);
    tensors.v = rows(v, problem.kv_heads, value_dim);
    q_out.assign(q.size(), 0x5A5A);
    k_out.assign(k.size(), 0x5A5A);
    tensors.q_out = tensors.q;
    tensors.q_out.data = q_out.data();
    tensors.k_out = tensors.k;
    tensors.k_out.data = k_out.data();
    tensors.k_cache = pool(k_cache, problem.head_dim);
    tensors.v_cache = pool(v_cache, value_dim);
    std::vector<std::int64_t> order(static_cast<std::size_t>(problem.pages * problem.page_size));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (std::int64_t token = 0; token < tokens; ++token) {
      positions.push_back(token * 1013 % 4096);
      slots.push_back(token == 1 ? -1 : order[static_cast<std::size_t>(token)]);
    }
    narrow_positions.assign(positions.begin(), positions.end());
    narrow_slots.assign(slots.begin(), slots.end());
    const bool is_narrow = number_bits == 32;
    tensors.positions = {is_narrow ? static_cast<void*>(narrow_positions.data()) : positions.data(), number_bits};
    tensors.slots = {is_narrow ? static_cast<void*>(narrow_slots.data()) : slots.data(), number_bits};
    if (problem.kv_format) {
      for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
        k_descale.push_back(0.01F * static_cast<float>(head + 1));
        v_descale.push_back(0.02F * static_cast<float>(head + 1));
      }
      tensors.k_descale = Tensor::contiguous(k_descale.data(), Format::fp32, {problem.kv_heads});
      tensors.v_descale = Tensor::contiguous(v_descale.data(), Format::fp32, {problem.kv_heads});
    }
  }
  AppendCase(const AppendCase&) = delete;
  AppendCase& operator=(const AppendCase&) = delete;

  /// What is wrong after `run`: by the definition, or in rows that no slot names.
  [[nodiscard]] std::string fault_after(const std::function<void()>& run) {
    const reference::AppendResult definition = reference::append(problem, tensors);
    run();
    std::string found = reference::fault_in_append(problem, tensors, definition);
    return found.empty() ? touched(k_cache, "k_cache") + touched(v_cache, "v_cache") : found;
  }

  AppendProblem problem;
  AppendTensors tensors;
  std::vector<std::uint16_t> q, k, v, q_out, k_out;
  std::vector<std::uint8_t> k_cache, v_cache;
  std::vector<std::int64_t> positions, slots;
  std::vector<std::int32_t> narrow_positions, narrow_slots;
  std::vector<float> k_descale, v_descale;

 private:
  static constexpr std::uint8_t poison = 0xA5;

  Tensor rows(std::vector<std::uint16_t>& storage, std::int64_t heads, std::int64_t columns) {
    std::normal_distribution<float> normal(0.0F, 1.0F);
    storage.resize(static_cast<std::size_t>(problem.tokens * heads * columns));
    for (std::uint16_t& value : storage) {
      const float drawn = normal(random_);
      value = problem.format == Format::fp16 ? formats::float_to_fp16(drawn) : formats::float_to_bf16(drawn);
    }
    return Tensor::contiguous(storage.data(), problem.format, {problem.tokens, heads, columns});
  }

  Tensor pool(std::vector<std::uint8_t>& storage, std::int64_t columns) const {
    const Format format = problem.kv_format.value_or(problem.format);
    storage.assign(
        static_cast<std::size_t>(problem.pages * problem.page_size * problem.kv_heads * columns * bits(format) / 8),
        poison);
    return Tensor::contiguous(storage.data(), format, {problem.pages, problem.page_size, problem.kv_heads, columns});
  }

  [[nodiscard]] std::string touched(const std::vector<std::uint8_t>& pool_bytes, const char* name) const {
    const std::size_t rows_of_all = static_cast<std::size_t>(problem.pages * problem.page_size);
    const std::size_t row_bytes = pool_bytes.size() / rows_of_all;
    for (std::size_t row = 0; row < rows_of_all; ++row) {
      const bool is_named = std::find(slots.begin(), slots.end(), static_cast<std::int64_t>(row)) != slots.end();
      const auto first = pool_bytes.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
      const bool is_poison =
          std::all_of(first, first + static_cast<std::ptrdiff_t>(row_bytes), [](auto byte) { return byte == poison; });
      if (is_named == is_poison) {
        return fmt::format("row {} of {} was {}written", row, name, is_poison ? "not " : "");
      }
    }
    return {};
  }

  std::mt19937 random_{7};
};

}  // namespace thresher::test
