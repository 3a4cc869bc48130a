/* What a kernel of your own is given in a tournament, and functions for a first version of it.
 *
 * Plain C++ that NVRTC, nvcc and any host compiler take; see docs/harness/bring-your-own.md. On the GPU the kernel is
 *
 *   extern "C" __global__ void my_kernel(thresher_own_dual_gemm call)
 *
 * and on the CPU
 *
 *   extern "C" void my_kernel(const thresher_own_dual_gemm* call)
 *
 * or the same with the structure of another operation (thresher/own_calls.h). Sums are accumulated in float32 and
 * rounded once. */
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define THRESHER_OWN_FUNCTION __host__ __device__ inline
#else
#include <math.h>
#define THRESHER_OWN_FUNCTION inline
#endif

enum {
  THRESHER_OWN_FP32 = 0,
  THRESHER_OWN_FP16 = 1,
  THRESHER_OWN_BF16 = 2,
  THRESHER_OWN_FP8_E4M3 = 3,
  THRESHER_OWN_NVFP4 = 4,
  THRESHER_OWN_INT32 = 5,
  THRESHER_OWN_UINT8 = 6,
  THRESHER_OWN_FP8_TENSOR = 7, /* e4m3, one scale for a matrix: global_scale */
  THRESHER_OWN_FP8_ROW = 8,    /* e4m3, one float32 for each row */
  THRESHER_OWN_FP8_BLOCK = 9   /* e4m3, one float32 for each block of scale_rows and scale_columns */
};
enum { THRESHER_OWN_SILU = 0, THRESHER_OWN_GELU_TANH = 1, THRESHER_OWN_SWIGLU_CLAMPED = 2, THRESHER_OWN_SITU = 3 };
enum { THRESHER_OWN_SCALES_ROW_MAJOR = 0, THRESHER_OWN_SCALES_BLOCKED = 1, THRESHER_OWN_SCALES_COLUMN_MAJOR = 2 };

/* A row-major matrix. NVFP4: two e2m1 values a byte, the low nibble first; one e4m3 scale for each 16 along a row. */
struct thresher_own_matrix {
  const void* values;
  long long rows;
  long long columns;
  long long row_stride; /* elements from one row to the next */
  int format;
  int scale_layout;
  const unsigned char* scales; /* NVFP4 alone, else null */
  const float* global_scale;   /* multiplies the product; null for 1 */
};

/* A tensor of up to four dimensions. In a stack of matrices [E, rows, columns] the scales of the matrices lie one
 * behind the other. */
struct thresher_own_tensor {
  void* values;              /* null: this problem has none. Inputs are read only */
  const void* scales;        /* nvfp4: one e4m3 for each block; fp8_row and fp8_block: float32; else null */
  const float* global_scale; /* multiplies the values; a stack has one for each matrix; null for 1 */
  long long shape[4];        /* elements; 1 behind the rank */
  long long strides[4];      /* elements from one index to the next; 0 behind the rank */
  long long scale_bytes;     /* of all scales together */
  int rank;
  int format;
  int scale_layout;
  int scale_rows; /* one scale is for so many rows, and columns */
  int scale_columns;
};

#include "thresher/own_calls.h"

THRESHER_OWN_FUNCTION float thresher_own_from_bits(unsigned bits) {
  union {
    unsigned u;
    float f;
  } both;
  both.u = bits;
  return both.f;
}

THRESHER_OWN_FUNCTION unsigned thresher_own_to_bits(float value) {
  union {
    float f;
    unsigned u;
  } both;
  both.f = value;
  return both.u;
}

THRESHER_OWN_FUNCTION float thresher_own_fp16_to_float(unsigned short pattern) {
  const unsigned sign = (pattern & 0x8000U) << 16;
  const unsigned exponent = (pattern >> 10) & 0x1FU;
  const unsigned fraction = pattern & 0x3FFU;
  if (exponent == 0) { /* the last place of a subnormal is 2^-24 */
    const float magnitude = (float)fraction * thresher_own_from_bits(0x33800000U);
    return thresher_own_from_bits(sign | thresher_own_to_bits(magnitude));
  }
  const unsigned wide_exponent = exponent == 31 ? 255 : exponent + 112;
  return thresher_own_from_bits(sign | wide_exponent << 23 | fraction << 13);
}

THRESHER_OWN_FUNCTION unsigned short thresher_own_float_to_fp16(float value) {
  const unsigned bits = thresher_own_to_bits(value);
  const unsigned sign = (bits >> 16) & 0x8000U;
  const unsigned magnitude = bits & 0x7FFFFFFFU;
  unsigned code = 0;
  if (magnitude > 0x7F800000U) {
    code = 0x7E00U; /* NaN */
  } else if (magnitude >= 0x477FF000U) {
    code = 0x7C00U; /* 65520 and more round to Inf */
  } else if (magnitude < 0x38800000U) {
    /* Beside 0.5 a float's last place is 2^-24, that of fp16's subnormals: the sum rounds to whole ones. */
    code = thresher_own_to_bits(thresher_own_from_bits(magnitude) + 0.5F) - 0x3F000000U;
  } else {
    code = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return (unsigned short)(sign | code);
}

THRESHER_OWN_FUNCTION unsigned short thresher_own_float_to_bf16(float value) {
  const unsigned bits = thresher_own_to_bits(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return (unsigned short)((bits >> 16) | 0x40U); /* NaN */
  }
  return (unsigned short)((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

/* An e2m1 code: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign. */
THRESHER_OWN_FUNCTION float thresher_own_e2m1_to_float(unsigned code) {
  const unsigned exponent = (code >> 1) & 3U;
  const float half = (code & 1U) ? 0.5F : 0.0F;
  const float magnitude = exponent == 0 ? half : (1.0F + half) * (float)(1U << (exponent - 1));
  return (code & 8U) ? -magnitude : magnitude;
}

/* An e4m3 code; 0x7F and 0xFF are NaN. */
THRESHER_OWN_FUNCTION float thresher_own_e4m3_to_float(unsigned code) {
  const unsigned exponent = (code >> 3) & 0xFU;
  const unsigned fraction = code & 7U;
  const unsigned sign = (code & 0x80U) << 24;
  if ((code & 0x7FU) == 0x7FU) {
    return thresher_own_from_bits(sign | 0x7FC00000U);
  }
  if (exponent == 0) { /* 2^-9 a step */
    return thresher_own_from_bits(sign | thresher_own_to_bits((float)fraction * thresher_own_from_bits(0x3B000000U)));
  }
  return thresher_own_from_bits(sign | (exponent + 120) << 23 | fraction << 20);
}

/* The scale of the block of 16 that holds element [row, column]. */
THRESHER_OWN_FUNCTION float thresher_own_scale(const thresher_own_matrix* matrix, long long row, long long column) {
  const long long blocks = matrix->columns / 16;
  const long long block = column / 16;
  long long offset = row * blocks + block;
  if (matrix->scale_layout == THRESHER_OWN_SCALES_BLOCKED) {
    offset =
        ((row / 128) * ((blocks + 3) / 4) + block / 4) * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + block % 4;
  }
  return thresher_own_e4m3_to_float(matrix->scales[offset]);
}

/* Element [row, column], exact, WITHOUT the global scale. */
THRESHER_OWN_FUNCTION float thresher_own_load(const thresher_own_matrix* matrix, long long row, long long column) {
  const long long place = row * matrix->row_stride + column;
  if (matrix->format == THRESHER_OWN_NVFP4) {
    const unsigned pair = ((const unsigned char*)matrix->values)[place / 2];
    const float value = thresher_own_e2m1_to_float(place % 2 == 0 ? pair & 0xFU : pair >> 4);
    return value * thresher_own_scale(matrix, row, column);
  }
  if (matrix->format == THRESHER_OWN_FP32) {
    return ((const float*)matrix->values)[place];
  }
  const unsigned short pattern = ((const unsigned short*)matrix->values)[place];
  return matrix->format == THRESHER_OWN_FP16 ? thresher_own_fp16_to_float(pattern)
                                             : thresher_own_from_bits((unsigned)pattern << 16);
}

THRESHER_OWN_FUNCTION float thresher_own_global_scale(const thresher_own_matrix* matrix) {
  return matrix->global_scale ? *matrix->global_scale : 1.0F;
}

/* The activation of a gate times up; alpha, limit and up_offset are swiglu_clamped's. NaN stays NaN. */
THRESHER_OWN_FUNCTION float thresher_own_activation(int activation, float alpha, float limit, float up_offset,
                                                    float gate, float up) {
  if (activation == THRESHER_OWN_SILU) {
    return gate / (1.0F + expf(-gate)) * up;
  }
  if (activation == THRESHER_OWN_GELU_TANH) {
    const float inner = 0.7978845608F * (gate + 0.044715F * gate * gate * gate);
    return 0.5F * gate * (1.0F + tanhf(inner)) * up;
  }
  if (activation == THRESHER_OWN_SITU) {
    return alpha * tanhf(gate / alpha) / (1.0F + expf(-gate)) * (limit * tanhf(up / limit));
  }
  const float clamped_gate = gate > limit ? limit : gate;
  const float clamped_up = up > limit ? limit : up < -limit ? -limit : up;
  return clamped_gate / (1.0F + expf(-alpha * clamped_gate)) * (clamped_up + up_offset);
}

/* From the two sums to one output: global scales, then the activation. */
THRESHER_OWN_FUNCTION float thresher_own_finish(const thresher_own_dual_gemm* call, float gate, float up) {
  gate *= thresher_own_global_scale(&call->a) * thresher_own_global_scale(&call->b1);
  up *= thresher_own_global_scale(&call->a) * thresher_own_global_scale(&call->b2);
  return thresher_own_activation(call->activation, call->alpha, call->limit, call->up_offset, gate, up);
}

/* Writes C[row, column]. */
THRESHER_OWN_FUNCTION void thresher_own_store(const thresher_own_dual_gemm* call, long long row, long long column,
                                              float value) {
  const long long place = row * call->c_row_stride + column;
  if (call->c_format == THRESHER_OWN_FP32) {
    ((float*)call->c)[place] = value;
  } else if (call->c_format == THRESHER_OWN_FP16) {
    ((unsigned short*)call->c)[place] = thresher_own_float_to_fp16(value);
  } else {
    ((unsigned short*)call->c)[place] = thresher_own_float_to_bf16(value);
  }
}

/* The place of an element, in elements from the first. */
THRESHER_OWN_FUNCTION long long thresher_own_place(const thresher_own_tensor* tensor, long long i0, long long i1,
                                                   long long i2, long long i3) {
  return i0 * tensor->strides[0] + i1 * tensor->strides[1] + i2 * tensor->strides[2] + i3 * tensor->strides[3];
}

/* The value at a place, exact, WITHOUT any scale. */
THRESHER_OWN_FUNCTION float thresher_own_value(const thresher_own_tensor* tensor, long long place) {
  switch (tensor->format) {
    case THRESHER_OWN_FP32: return ((const float*)tensor->values)[place];
    case THRESHER_OWN_FP16: return thresher_own_fp16_to_float(((const unsigned short*)tensor->values)[place]);
    case THRESHER_OWN_BF16:
      return thresher_own_from_bits((unsigned)((const unsigned short*)tensor->values)[place] << 16);
    case THRESHER_OWN_NVFP4: {
      const unsigned pair = ((const unsigned char*)tensor->values)[place / 2];
      return thresher_own_e2m1_to_float(place % 2 == 0 ? pair & 0xFU : pair >> 4);
    }
    case THRESHER_OWN_INT32: return (float)((const int*)tensor->values)[place];
    case THRESHER_OWN_UINT8: return (float)((const unsigned char*)tensor->values)[place];
    default: return thresher_own_e4m3_to_float(((const unsigned char*)tensor->values)[place]);
  }
}

THRESHER_OWN_FUNCTION int thresher_own_integer(const thresher_own_tensor* tensor, long long place) {
  return ((const int*)tensor->values)[place];
}

/* The expert that owns a row, by offsets int32 [experts + 1]; `experts` where none does. */
THRESHER_OWN_FUNCTION long long thresher_own_expert_of(const thresher_own_tensor* offsets, long long experts,
                                                       long long row) {
  long long expert = 0;
  if (row < thresher_own_integer(offsets, 0)) {
    return experts;
  }
  while (expert < experts && row >= thresher_own_integer(offsets, expert + 1)) {
    ++expert;
  }
  return expert;
}

/* The scale of an element of a matrix, or of matrix `index` of a stack; 1 without scales. */
THRESHER_OWN_FUNCTION float thresher_own_block_scale(const thresher_own_tensor* tensor, long long index, long long row,
                                                     long long column) {
  if (!tensor->scales) {
    return 1.0F;
  }
  const int is_stack = tensor->rank == 3;
  const long long rows = is_stack ? tensor->shape[1] : tensor->shape[0];
  const long long columns = is_stack ? tensor->shape[2] : tensor->shape[1];
  const long long blocks = (columns + tensor->scale_columns - 1) / tensor->scale_columns;
  const long long of_a_matrix = tensor->scale_bytes / (is_stack ? tensor->shape[0] : 1);
  const long long block = column / tensor->scale_columns;
  const long long block_row = row / tensor->scale_rows;
  const char* const scales = (const char*)tensor->scales + index * of_a_matrix;
  long long offset = block_row * blocks + block;
  if (tensor->scale_layout == THRESHER_OWN_SCALES_BLOCKED) {
    offset =
        ((row / 128) * ((blocks + 3) / 4) + block / 4) * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + block % 4;
  } else if (tensor->scale_layout == THRESHER_OWN_SCALES_COLUMN_MAJOR) {
    offset = block * ((rows + 3) / 4 * 4) + block_row;
  }
  return tensor->format == THRESHER_OWN_NVFP4
             ? thresher_own_e4m3_to_float(((const unsigned char*)(const void*)scales)[offset])
             : ((const float*)(const void*)scales)[offset];
}

/* Element [row, column] of a matrix, or of matrix `index` of a stack, WITHOUT the global scale. */
THRESHER_OWN_FUNCTION float thresher_own_element(const thresher_own_tensor* tensor, long long index, long long row,
                                                 long long column) {
  const long long place = tensor->rank == 3 ? thresher_own_place(tensor, index, row, column, 0)
                                            : thresher_own_place(tensor, row, column, 0, 0);
  return thresher_own_value(tensor, place) * thresher_own_block_scale(tensor, index, row, column);
}

/* The global scale of a tensor, or of matrix `index` of a stack. */
THRESHER_OWN_FUNCTION float thresher_own_scale_of(const thresher_own_tensor* tensor, long long index) {
  return tensor->global_scale ? tensor->global_scale[tensor->rank == 3 ? index : 0] : 1.0F;
}

/* Rounds once to fp32, fp16 or bf16. */
THRESHER_OWN_FUNCTION float thresher_own_rounded(float value, int format) {
  if (format == THRESHER_OWN_FP32) {
    return value;
  }
  return format == THRESHER_OWN_FP16 ? thresher_own_fp16_to_float(thresher_own_float_to_fp16(value))
                                     : thresher_own_from_bits((unsigned)thresher_own_float_to_bf16(value) << 16);
}

/* Rounds once to the tensor's format: fp32, fp16 or bf16. */
THRESHER_OWN_FUNCTION void thresher_own_put(const thresher_own_tensor* tensor, long long place, float value) {
  if (tensor->format == THRESHER_OWN_FP32) {
    ((float*)tensor->values)[place] = value;
  } else if (tensor->format == THRESHER_OWN_FP16) {
    ((unsigned short*)tensor->values)[place] = thresher_own_float_to_fp16(value);
  } else {
    ((unsigned short*)tensor->values)[place] = thresher_own_float_to_bf16(value);
  }
}
