#include "cpu/moe_rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/parallel.hpp"
#include "cpu/rows.hpp"
#include "formats/numbers.hpp"

namespace thresher::cpu {
namespace {

template <class T>
T* row_of(const Tensor& matrix, std::int64_t row) {
  return static_cast<T*>(matrix.data) + row * matrix.strides[0];
}

/// A row of `matrix` as float32: its own memory, or `converted`.
const float* row_in_float32(const Tensor& matrix, std::int64_t row, std::span<float> converted) {
  const auto columns = static_cast<std::int64_t>(converted.size());
  switch (matrix.format) {
    case Format::fp16: fp16_row_to_float32(row_of<std::uint16_t>(matrix, row), columns, converted.data()); break;
    case Format::bf16: bf16_row_to_float32(row_of<std::uint16_t>(matrix, row), columns, converted.data()); break;
    default: return row_of<float>(matrix, row);
  }
  return converted.data();
}

void round_into(const Tensor& out, std::int64_t row, std::span<const float> sums) {
  switch (out.format) {
    case Format::fp16:
      std::transform(sums.begin(), sums.end(), row_of<std::uint16_t>(out, row),
                     [](float sum) { return formats::float_to_fp16(sum); });
      break;
    case Format::bf16:
      std::transform(sums.begin(), sums.end(), row_of<std::uint16_t>(out, row),
                     [](float sum) { return formats::float_to_bf16(sum); });
      break;
    default: std::copy(sums.begin(), sums.end(), row_of<float>(out, row)); break;
  }
}

}  // namespace

void sort_choices(std::span<const std::int32_t> ids, std::span<std::int32_t> offsets, std::span<std::int32_t> row_ids,
                  std::span<std::int32_t> inverse) {
  const auto experts = static_cast<std::int32_t>(offsets.size() - 1);
  const auto is_expert = [&](std::int32_t id) { return id >= 0 && id < experts; };
  std::fill(offsets.begin(), offsets.end(), 0);
  for (const std::int32_t id : ids) {
    if (is_expert(id)) {
      ++offsets[static_cast<std::size_t>(id) + 1];
    }
  }
  for (std::size_t expert = 1; expert < offsets.size(); ++expert) {
    offsets[expert] += offsets[expert - 1];
  }
  std::vector<std::int32_t> next(offsets.begin(), offsets.end() - 1);
  std::fill(row_ids.begin(), row_ids.end(), -1);
  for (std::size_t choice = 0; choice < ids.size(); ++choice) {
    if (!is_expert(ids[choice])) {
      inverse[choice] = -1;
      continue;
    }
    const std::int32_t row = next[static_cast<std::size_t>(ids[choice])]++;
    inverse[choice] = row;
    row_ids[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(choice);
  }
}

void combine_rows(const Tensor& rows, const Tensor& inverse, const Tensor& weights, const Tensor& out, int threads) {
  const auto columns = static_cast<std::size_t>(out.shape[1]);
  const std::int64_t top_k = inverse.shape[1];
  const auto* const places = static_cast<const std::int32_t*>(inverse.data);
  const auto* const factors = static_cast<const float*>(weights.data);
  parallel_for(resolve_threads(threads), out.shape[0], [&](std::int64_t token, int) {
    std::vector<float> sums(columns);
    std::vector<float> converted(columns);
    for (std::int64_t choice = token * top_k; choice < (token + 1) * top_k; ++choice) {
      if (places[choice] < 0) {
        continue;
      }
      const float* const row = row_in_float32(rows, places[choice], converted);
      for (std::size_t column = 0; column < columns; ++column) {
        sums[column] = std::fma(factors[choice], row[column], sums[column]);
      }
    }
    round_into(out, token, sums);
  });
}

}  // namespace thresher::cpu
