#pragma once
/// Quantising the matrices of a file to NVFP4.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace thresher::formats {

/// What became of one tensor.
struct QuantizedTensor {
  std::string name;      ///< in the input
  std::string new_name;  ///< of its values in the output; its scales are new_name_scale and new_name_scale_2
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  ///< values and scales
};

/// Copies the safetensors file `in` to `out` with the tensors `names` as NVFP4, or, without names, every F16, BF16 or
/// F32 matrix [rows, K] whose K is a multiple of 16. As in ModelOpt's checkpoints, X.weight becomes X.weight (U8
/// [rows, K/2]), X.weight_scale (F8_E4M3 [rows, K/16]) and X.weight_scale_2 (F32 [], which multiplies); a name that
/// does not end in "weight" gets ".weight" first. `in` and `out` may be one file: the result appears whole, by rename.
/// Throws Error naming file and tensor, and writes nothing, when a name is missing, a tensor is no such matrix or holds
/// NaN or Inf, no tensor qualifies, a new name is taken, or a file cannot be read or written.
std::vector<QuantizedTensor> quantize_file(const std::filesystem::path& in, const std::filesystem::path& out,
                                           std::span<const std::string> names);

}  // namespace thresher::formats
