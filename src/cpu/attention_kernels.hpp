#pragma once
/// The inner loops of the CPU attention, compiled for every vector width and selected at run time.
#include <cstdint>

#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// C[rows, columns] = A[rows, depth]·B[depth, columns] (+ C when `accumulate`); row-major float32 with row strides in
/// elements. `columns` is a multiple of 16, for which B and C must have memory.
void matrix_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, std::int64_t a_stride,
                    const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride, bool accumulate);

/// Converts `count` fp16 or bf16 values to float32.
void widen(const std::uint16_t* values, Format format, std::int64_t count, float* out);

/// A summary of the visible logits of one row and one block of keys.
struct LogitRange {
  float maximum;
  bool all_below_infinity;  ///< false: some logit is NaN or +Inf
};

/// logits = capped(logits·scale), in place; cap 0 is none.
LogitRange scale_logits(float* logits, std::int64_t count, float scale, float cap);

/// logits = exp(logits − shift), in place; returns their sum. For logits below +Inf.
float exponentials(float* logits, std::int64_t count, float shift);

/// values *= factor.
void multiply(float* values, std::int64_t count, float factor);

}  // namespace thresher::cpu
