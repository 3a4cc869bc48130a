#pragma once
/// The part of cuBLASLt's interface that is used here (cublasLt.h of cuBLAS 12 and 13, in which it is the same). It is
/// declared here so that the build does not need the 400 MB package with that header. tests/runtime compares it with
/// the header if there is one.
#include <cstddef>
#include <cstdint>

namespace thresher::runtime::cublaslt {

using Status = int;
constexpr Status success = 0;

enum DataType : int { real_32f = 0, real_16f = 2, real_16bf = 14 };
enum ComputeType : int { compute_32f = 68, compute_32f_pedantic = 69 };
enum Operation : int { transposed = 1 };
enum DescriptorAttribute : int { descriptor_trans_a = 3 };
enum ReductionScheme : std::uint32_t { reduction_none = 0, reduction_compute_type = 2 };
enum PreferenceAttribute : int {
  max_workspace_bytes = 1,
  reduction_scheme_mask = 3,
  min_alignment_a = 5,
  min_alignment_b = 6,
  min_alignment_c = 7,
  min_alignment_d = 8,
};

using Handle = struct OpaqueHandle*;
using Descriptor = struct OpaqueDescriptor*;
using Preference = struct OpaquePreference*;
using CudaStream = void*;

/// A matrix: its type, extents and leading dimension, in the library's layout.
struct Layout {
  std::uint64_t data[8];
};
struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

struct Api {
  std::size_t (*version)() = nullptr;
  const char* (*status_text)(Status) = nullptr;
  Status (*create)(Handle*) = nullptr;
  Status (*descriptor_create)(Descriptor*, ComputeType, DataType scale) = nullptr;
  Status (*descriptor_destroy)(Descriptor) = nullptr;
  Status (*descriptor_set)(Descriptor, DescriptorAttribute, const void* value, std::size_t bytes) = nullptr;
  Status (*layout_init)(Layout*, std::size_t bytes, DataType, std::uint64_t rows, std::uint64_t columns,
                        std::int64_t leading_dimension) = nullptr;
  Status (*preference_create)(Preference*) = nullptr;
  Status (*preference_destroy)(Preference) = nullptr;
  Status (*preference_set)(Preference, PreferenceAttribute, const void* value, std::size_t bytes) = nullptr;
  Status (*heuristic)(Handle, Descriptor, Layout* a, Layout* b, Layout* c, Layout* d, Preference, int wanted,
                      Heuristic*, int* found) = nullptr;
  Status (*matmul)(Handle, Descriptor, const void* alpha, const void* a, Layout*, const void* b, Layout*,
                   const void* beta, const void* c, Layout*, void* d, Layout*, const Algorithm*, void* workspace,
                   std::size_t workspace_bytes, CudaStream) = nullptr;
};

}  // namespace thresher::runtime::cublaslt
