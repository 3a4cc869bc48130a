#pragma once
/// The emulator's inner loops, compiled for several instruction sets and selected at run time.
#include <cstddef>
#include <cstdint>

namespace thresher::emulator::simd {

/// into[i] = max(into[i], from[i]).
void raise_each(std::uint32_t* into, const std::uint32_t* from, std::size_t count);
/// into[i] = min(into[i], from[i]).
void lower_each(std::uint32_t* into, const std::uint32_t* from, std::size_t count);

/// These convert to float32, exactly.
void widen_fp16(float* to, const std::uint16_t* from, std::size_t count);
void widen_bf16(float* to, const std::uint16_t* from, std::size_t count);
/// to[c][r] = from[r][c]; `rows` is a multiple of 8.
void transpose(float* to, const float* from, std::size_t rows, std::size_t columns);

/// d[r][c] += a[r][k]·b[k][c] for 64 rows, in ascending k, one float32 addition per product. Products of operands with
/// at most 11 significant bits are exact, so every instruction set gives the same bits. All matrices are row-major and
/// dense; `columns` is a multiple of 8.
void multiply_add_64(float* d, const float* a, const float* b, std::size_t columns, std::size_t depth);

}  // namespace thresher::emulator::simd
