#pragma once
/// Quantising the matrices of a file to NVFP4, MXFP4 or FP8.
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::formats {

/// What the matrices of a file become: a Format, or MXFP4, which is none, since operations are given it as another one.
enum class Quantization : std::uint8_t { nvfp4, mxfp4, fp8_tensor, fp8_row, fp8_block };

inline constexpr std::array all_quantizations{Quantization::nvfp4, Quantization::mxfp4, Quantization::fp8_tensor,
                                              Quantization::fp8_row, Quantization::fp8_block};

/// "nvfp4", "mxfp4", …
[[nodiscard]] std::string_view name(Quantization to) noexcept;

/// Which tensors are quantised, by patterns of names (formats/glob.hpp).
struct QuantizeSelection {
  std::vector<std::string> include;  ///< none: all
  std::vector<std::string> exclude;
};

/// What became of one tensor.
struct QuantizedTensor {
  std::string name;      ///< in the input
  std::string new_name;  ///< of its values in the output; its scales are named after it
  bool is_stack = false;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;  ///< of one matrix
  std::int64_t k = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  ///< values and scales
  std::uint64_t lost = 0;         ///< values that are not 0, of matrices of which nothing but 0 is left
};

/// A tensor that was copied as it is.
struct CopiedTensor {
  std::string name;
  std::string reason;
  std::uint64_t bytes = 0;
  /// A stack that is not [E, rows, K] or not known to be, or a matrix beside which there are scales or an order.
  bool is_missed = false;
};

struct QuantizeReport {
  std::vector<QuantizedTensor> quantized;
  std::vector<CopiedTensor> copied;
  std::vector<std::string> idle_excludes;  ///< patterns that no tensor has
};

/// Copies the safetensors file `in` to `out` with F16, BF16 and F32 matrices [rows, K] whose K is a multiple of 16, of
/// 32 for MXFP4, quantised: those that `selection` includes and does not exclude. Embeddings, heads, norms, biases,
/// routers and what else `kept` names stay as they are unless an include pattern says their word itself, as "*embed*"
/// does and "model.*" does not. A stack [E, rows, K] is quantised matrix by matrix, its scales one matrix's behind the
/// other's, as load_stack reads them; one that is [E, K, rows], or of which the file does not say what it is
/// (stack_layout) and no include pattern is the name, stays as it is. So does a matrix beside which there is a scale, a
/// zero point or an order, since its values are not the weights.
/// As in ModelOpt's checkpoints, X.weight becomes X.weight (U8 [rows, K/2]), X.weight_scale (F8_E4M3 [rows, K/16]) and
/// X.weight_scale_2 (F32 [], which multiplies). MXFP4 is X.weight_packed (U8 [rows, K/2]) with X.weight_scale (U8
/// [rows, K/32], exponents of 2) as in compressed-tensors' (mxfp4-pack-quantized). FP8 is X.weight (F8_E4M3 [rows, K])
/// with X.weight_scale (F32, [] or [rows, 1]) as in compressed-tensors', of blocks with X.weight_scale_inv (F32
/// [⌈rows/128⌉, ⌈K/128⌉], which multiplies) as in DeepSeek's. A name that does not end in "weight" gets ".weight"
/// first. `in` and `out` may be one file: the result appears whole, by rename. Throws Error naming file and tensor, and
/// writes nothing, when an include pattern has no tensor or one without wildcards names one that is no such matrix, a
/// matrix holds NaN or Inf, nothing is left to quantise, a new name is taken, or a file cannot be read or written.
QuantizeReport quantize_file(const std::filesystem::path& in, const std::filesystem::path& out,
                             const QuantizeSelection& selection, Quantization to = Quantization::nvfp4);

}  // namespace thresher::formats
