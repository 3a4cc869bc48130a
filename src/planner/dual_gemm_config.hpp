#pragma once
/// One contestant of the dual GEMM as the planner sees it: a strategy with all its knobs.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/device_spec.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::planner {

enum class Strategy : std::uint8_t {
  two_pass,     ///< the library's products, then the activation
  sequential,   ///< one kernel: the whole gate product, then the whole up product
  interleaved,  ///< one kernel: gate and up rows side by side in one tile
  pingpong,     ///< interleaved, with the epilogue of one tile under the products of the next
};

enum class Epilogue : std::uint8_t {
  simt,  ///< threads store their own fragments
  tma,   ///< the tile goes through shared memory and is stored by the copy engine
};

/// Which operand lies along the rows (M) of the matrix instruction; the other lies along its columns (N).
enum class MmaRows : std::uint8_t { weights, tokens };

/// Which tiles follow one another: those of the same tokens or those of the same weights.
enum class Raster : std::uint8_t { same_tokens, same_weights };

struct Tile {
  int weight_rows = 128;  ///< rows of B1 and B2 together
  int tokens = 128;
  int k = 128;  ///< elements along K a stage
  bool operator==(const Tile&) const = default;
};

struct DualGemmConfig {
  Strategy strategy = Strategy::interleaved;
  Numerics numerics = Numerics::exact;
  Tile tile{};
  MmaRows mma_rows = MmaRows::weights;
  int stages = 4;
  int math_warpgroups = 2;
  int cluster = 1;  ///< blocks a cluster
  int split_k = 1;  ///< blocks of one cluster that share a tile's K; neighbouring tiles share loads by multicast
  int blocks_per_multiprocessor = 1;
  int loader_registers = 0;  ///< 0: no setmaxnreg
  int math_registers = 0;
  Epilogue epilogue = Epilogue::simt;
  Raster raster = Raster::same_weights;
  bool persistent = false;
  bool dependent_launch = false;
  bool operator==(const DualGemmConfig&) const = default;

  [[nodiscard]] int threads() const noexcept { return (math_warpgroups + 1) * 128; }
  /// Weight rows of one stage and of one matrix instruction's operand: sequential takes gate and up one after the
  /// other.
  [[nodiscard]] int slot_weight_rows() const noexcept {
    return strategy == Strategy::sequential ? tile.weight_rows / 2 : tile.weight_rows;
  }
  /// Rows (M) and columns (N) of the matrix product of one stage.
  [[nodiscard]] int mma_row_count() const noexcept {
    return mma_rows == MmaRows::weights ? slot_weight_rows() : tile.tokens;
  }
  [[nodiscard]] int mma_column_count() const noexcept {
    return mma_rows == MmaRows::weights ? tile.tokens : slot_weight_rows();
  }
  /// Times that a block walks over K.
  [[nodiscard]] int passes() const noexcept { return strategy == Strategy::sequential ? 2 : 1; }
};

[[nodiscard]] std::string_view name(Strategy strategy) noexcept;
[[nodiscard]] std::string_view name(Epilogue epilogue) noexcept;

/// The type in which `device` multiplies the operands.
[[nodiscard]] MatrixType matrix_type(const DualGemmProblem& problem, const DualGemmConfig& config,
                                     const DeviceSpec& device) noexcept;
/// Whether weights (activations) are stored in NVFP4 and converted inside the kernel.
[[nodiscard]] bool converts_weights(const DualGemmProblem& problem, const DeviceSpec& device) noexcept;
[[nodiscard]] bool converts_tokens(const DualGemmProblem& problem, const DeviceSpec& device) noexcept;
/// Bits an element takes in memory, NVFP4's scales included (4.5).
[[nodiscard]] double stored_bits(Format format) noexcept;
[[nodiscard]] double stored_bits(MatrixType type) noexcept;

/// "interleaved exact 128x256x128 stages=3 cluster=2 split_k=2": the tile as weight rows × tokens × K, then whatever
/// differs from the default. `parse_config` reads the same back.
[[nodiscard]] std::string text(const DualGemmConfig& config);

/// Throws Error(invalid_argument) naming the word it does not know, with the words there are.
[[nodiscard]] DualGemmConfig parse_config(std::string_view text);

}  // namespace thresher::planner
