#pragma once
/// How much work a planned call is: what the one predictor (planner/predict.hpp) reads, and all that it reads.
///
/// A strategy counts in bytes, operations, instructions and clocks of its own code. What these cost is the device
/// table's and the calibration's to say. Where a strategy has measured its own inner loop it says so too
/// (`matrix_share`, `epilogue.clocks`, `exchange_clocks`).
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/device_spec.hpp"

namespace thresher::strategies {

/// What a block does in one step along K, or along the keys.
struct StepWork {
  MatrixType matrix_type = MatrixType::bits16;
  double matrix_operations = 0;  ///< a multiplication and an addition are two; padding of the tile included
  /// Of the matrix unit's rate, what the loop was measured to reach where products bound it, with all that it cannot
  /// hide; 0 where that was not measured and the calibration's losses hold.
  double matrix_share = 0;
  double shared_bytes = 0;       ///< written into shared memory and read from it by copies and threads
  double shared_read_bytes = 0;  ///< read by the matrix unit, which shares rows among its readers
  double instructions = 0;       ///< that each of the four schedulers issues beside conversions and softmax
  double converted_blocks = 0;   ///< blocks of 64×64 NVFP4 elements brought to the matrix type, a warpgroup each
  double logits = 0;             ///< of a softmax: one exponential each
  double l2_bytes = 0;           ///< that the block draws from L2; what a cluster shares is divided among its blocks
  bool operator==(const StepWork&) const = default;
};

/// What a block does when a tile is summed up.
struct EpilogueWork {
  double instructions = 0;  ///< that each of the four schedulers issues
  double specials = 0;      ///< exponentials and reciprocals
  double store_bytes = 0;
  bool tma_stores = false;
  double clocks = 0;       ///< measured: takes the place of the estimate from the counts above
  bool is_hidden = false;  ///< under the next tile's products
  bool operator==(const EpilogueWork&) const = default;
};

/// A kernel whose blocks walk over tiles in steps, products on the matrix unit.
struct TiledKernel {
  StepWork step{};
  EpilogueWork epilogue{};
  std::int64_t blocks = 0;  ///< in whole clusters
  int cluster = 1;
  int blocks_per_multiprocessor = 1;
  double steps = 0;            ///< of the block that takes most
  double all_steps = 0;        ///< of all blocks together where they are unequal; 0 where they are equal
  double tiles_per_block = 1;  ///< that are stored
  /// Loads under way while one is being read: a ring of n slots that gives each back a step late has n − 1.5. 0 where
  /// everything is asked for before the first step.
  double loads_in_flight = 0;
  /// One warpgroup converts and multiplies more or less in turns; else it converts beside the last block's products.
  bool converts_in_turns = false;
  /// Each tile's rows may miss some of a step's logits: such steps cost more in a short walk of a ring of `stages`.
  bool hides_logits = false;
  int stages = 1;
  double exchange_clocks = 0;    ///< in which the blocks of a cluster add up their parts; 0 where they do not
  bool hides_exchanges = false;  ///< all but the last, under what other blocks do
  bool persistent = false;       ///< a block takes tile after tile and starts once
  bool dependent_launch = false;
  bool shares_launch = false;  ///< these are more tiles of the launch whose first part stands before this one
  double dram_bytes = 0;       ///< that the call must read and write at least
  double useful_share = 1;     ///< of the products; the rest is padding of tiles
  bool operator==(const TiledKernel&) const = default;
};

/// Tiles of one size, each the work of the blocks that share it; everything is counted for one of these blocks.
struct TensorTiles {
  std::int64_t count = 0;
  double steps = 0;                ///< along K
  double products = 0;             ///< instructions in a step
  double product_operations = 0;   ///< in one of them; a multiplication and an addition are two
  double operand_bytes = 0;        ///< of shared memory that the matrix unit reads for one of them
  double l2_bytes = 0;             ///< in a step, into the block's shared memory
  double tensor_memory_bytes = 0;  ///< that threads load when the tile is summed up
  EpilogueWork epilogue{};
  bool operator==(const TensorTiles&) const = default;
};

/// A kernel of MatrixUnit::tcgen05, whose sums lie in tensor memory: one block is resident on a multiprocessor.
struct TensorKernel {
  std::vector<TensorTiles> tiles{};
  MatrixType matrix_type = MatrixType::nvfp4;
  bool pairs = true;           ///< two blocks share a product
  int cluster = 2;             ///< blocks that work at one tile
  double loads_in_flight = 0;  ///< as in TiledKernel
  double exchange_clocks = 0;  ///< in which the blocks of a split K add up their parts
  bool persistent = false;     ///< a block takes tile after tile, and finishes one under the next one's products
  double dram_bytes = 0;       ///< that the call must read and write at least
  double useful_share = 1;     ///< of the products; the rest is padding of tiles
  bool operator==(const TensorKernel&) const = default;
};

/// A kernel that reads and writes memory and does little else.
struct MemoryPass {
  std::string title;              ///< "dequantizing the tokens"
  double bytes = 0;               ///< read and written
  bool is_hidden_launch = false;  ///< it starts under the kernel before it
  bool operator==(const MemoryPass&) const = default;
};

/// Products D = A·Bᵀ of 16-bit operands in the vendor's library, one after another.
struct LibraryProducts {
  int count = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool operator==(const LibraryProducts&) const = default;
};

using WorkPart = std::variant<MemoryPass, TiledKernel, LibraryProducts, TensorKernel>;

/// In the order of the stream. Empty for what the predictor has no words for: functions of a CPU, kernels that use no
/// matrix unit.
struct WorkModel {
  std::vector<WorkPart> parts;
  bool operator==(const WorkModel&) const = default;
};

}  // namespace thresher::strategies
