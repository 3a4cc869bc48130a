#pragma once
/// Quantization of the matrices of a file to NVFP4, MXFP4 or FP8.
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::formats {

/// The target of a file's matrices: a Format, or MXFP4, which is no Format since operations take it as another one.
enum class Quantization : std::uint8_t { nvfp4, mxfp4, fp8_tensor, fp8_row, fp8_block };

inline constexpr std::array all_quantizations{Quantization::nvfp4, Quantization::mxfp4, Quantization::fp8_tensor,
                                              Quantization::fp8_row, Quantization::fp8_block};

/// "nvfp4", "mxfp4", …
[[nodiscard]] std::string_view name(Quantization to) noexcept;

/// Selects the tensors to quantize, by patterns of names (formats/glob.hpp).
struct QuantizeSelection {
  std::vector<std::string> include;  ///< empty: all
  std::vector<std::string> exclude;
};

/// The result for one quantized tensor.
struct QuantizedTensor {
  std::string name;      ///< in the input
  std::string new_name;  ///< of its values in the output; the scales' names derive from it
  bool is_stack = false;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;  ///< of one matrix
  std::int64_t k = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  ///< values and scales
  std::uint64_t lost = 0;         ///< nonzero values of matrices that became all zeros
};

/// A tensor that was copied unchanged.
struct CopiedTensor {
  std::string name;
  std::string reason;
  std::uint64_t bytes = 0;
  /// Either a stack that is not [E, rows, K] or not known to be, or a matrix with scales or an order beside it.
  bool is_missed = false;
};

struct QuantizeReport {
  std::vector<QuantizedTensor> quantized;
  std::vector<CopiedTensor> copied;
  std::vector<std::string> idle_excludes;  ///< patterns that no tensor matches
};

/// Copies the safetensors file `in` to `out`, and quantizes the matrices that `selection` includes and does not
/// exclude. They are F16, BF16 and F32 matrices [rows, K] whose K is a multiple of 16 (of 32 for MXFP4).
///
/// Embeddings, heads, norms, biases, routers and the other names of `kept` stay as they are. An include pattern with
/// the same word overrides that: "*embed*" does and "model.*" does not. A stack [E, rows, K] is quantized matrix by
/// matrix; the scales of one matrix follow those of the other, as load_stack reads them. A stack that is [E, K, rows]
/// stays as it is. So does a stack of unknown layout (stack_layout), unless an include pattern is its name. A matrix
/// beside which there is a scale, a zero point or an order stays as it is, since its values are not the weights.
///
/// NVFP4, as in ModelOpt's checkpoints: X.weight becomes X.weight (U8 [rows, K/2]), X.weight_scale (F8_E4M3 [rows,
/// K/16]) and X.weight_scale_2 (F32 [], which multiplies). MXFP4, as in compressed-tensors (mxfp4-pack-quantized):
/// X.weight_packed (U8 [rows, K/2]) with X.weight_scale (U8 [rows, K/32], exponents of 2). FP8, as in
/// compressed-tensors: X.weight (F8_E4M3 [rows, K]) with X.weight_scale (F32, [] or [rows, 1]). FP8 blocks, as in
/// DeepSeek's: X.weight_scale_inv (F32 [⌈rows/128⌉, ⌈K/128⌉], which multiplies). A name that does not end in "weight"
/// gets ".weight" first.
///
/// `in` and `out` may be one file: the result is written atomically. Throws Error naming file and tensor, and writes
/// nothing, in these cases:
/// - an include pattern matches no tensor, or one without wildcards names a tensor that is no such matrix;
/// - a matrix holds NaN or Inf, or nothing is left to quantize;
/// - a new name is taken, or a file cannot be read or written.
QuantizeReport quantize_file(const std::filesystem::path& in, const std::filesystem::path& out,
                             const QuantizeSelection& selection, Quantization to = Quantization::nvfp4);

}  // namespace thresher::formats
