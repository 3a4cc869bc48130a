#pragma once
/// Quantising the matrices of a file to NVFP4 or FP8.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thresher/format.hpp"

namespace thresher::formats {

/// Which tensors are quantised, by patterns of names (formats/glob.hpp).
struct QuantizeSelection {
  std::vector<std::string> include;  ///< none: all
  std::vector<std::string> exclude;
};

/// What became of one tensor.
struct QuantizedTensor {
  std::string name;      ///< in the input
  std::string new_name;  ///< of its values in the output; its scales are named after it
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  ///< values and scales
};

/// A tensor that was copied as it is.
struct CopiedTensor {
  std::string name;
  std::string reason;
};

struct QuantizeReport {
  std::vector<QuantizedTensor> quantized;
  std::vector<CopiedTensor> copied;
  std::vector<std::string> idle_excludes;  ///< patterns that no tensor has
};

/// Copies the safetensors file `in` to `out` with F16, BF16 and F32 matrices [rows, K] whose K is a multiple of 16 in
/// `format`, nvfp4, fp8_tensor, fp8_row or fp8_block: those that `selection` includes and does not exclude. Embeddings,
/// heads, norms, biases and routers stay as they are unless an include pattern says their word itself, as "*embed*"
/// does and "model.*" does not. As in ModelOpt's checkpoints, X.weight becomes X.weight (U8 [rows, K/2]),
/// X.weight_scale (F8_E4M3 [rows, K/16]) and X.weight_scale_2 (F32 [], which multiplies). FP8 is X.weight (F8_E4M3
/// [rows, K]) with X.weight_scale (F32, [] or [rows, 1]) as in compressed-tensors', of blocks with X.weight_scale_inv
/// (F32 [⌈rows/128⌉, ⌈K/128⌉], which multiplies) as in DeepSeek's. A name that does not end in "weight" gets ".weight"
/// first. `in` and `out` may be one file: the result appears whole, by rename. Throws Error naming file and tensor, and
/// writes nothing, when an include pattern has no tensor or one without wildcards names one that is no such matrix, a
/// matrix holds NaN or Inf, nothing is left to quantise, a new name is taken, or a file cannot be read or written.
QuantizeReport quantize_file(const std::filesystem::path& in, const std::filesystem::path& out,
                             const QuantizeSelection& selection, Format format = Format::nvfp4);

}  // namespace thresher::formats
