#pragma once
/// The amount of work of a planned call, which is the only input of the predictor (planner/predict.hpp).
///
/// A strategy counts bytes, operations, instructions and clocks of its own code. The device table and the calibration
/// know their cost. A strategy that has measured its own inner loop gives that result too (`matrix_share`,
/// `dram_share`, `epilogue.clocks`, `exchange_clocks`).
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/device_spec.hpp"

namespace thresher::strategies {

/// The work of a block in one step along K, or along the keys.
struct StepWork {
  MatrixType matrix_type = MatrixType::bits16;
  double matrix_operations = 0;  ///< a multiplication and an addition are two; padding of the tile included
  /// The measured share of the tensor cores' rate when products bound the loop, with all that it cannot hide. It is 0
  /// if not measured; then the calibration's losses are used.
  double matrix_share = 0;
  double shared_bytes = 0;       ///< moved into and out of shared memory by copies and threads
  double shared_read_bytes = 0;  ///< read by the tensor cores, which share rows among readers
  double instructions = 0;       ///< per scheduler, without dequantization and softmax
  double converted_blocks = 0;  ///< blocks of 64×64 NVFP4 elements dequantized to the operand type, each by a warpgroup
  double logits = 0;            ///< of a softmax: one exponential each
  double l2_bytes = 0;          ///< that the block loads from L2; a cluster's shared loads are divided among its blocks
  bool operator==(const StepWork&) const = default;
};

/// The work of a block when a tile's accumulators are complete.
struct EpilogueWork {
  double instructions = 0;  ///< per scheduler
  double specials = 0;      ///< exponentials and reciprocals
  double store_bytes = 0;
  bool tma_stores = false;
  double clocks = 0;       ///< measured: replaces the estimate from the counts above
  bool is_hidden = false;  ///< under the next tile's products
  bool operator==(const EpilogueWork&) const = default;
};

/// A kernel whose blocks process tiles in steps, with products on the tensor cores.
struct TiledKernel {
  StepWork step{};
  EpilogueWork epilogue{};
  std::int64_t blocks = 0;  ///< in whole clusters
  int cluster = 1;
  int blocks_per_multiprocessor = 1;
  double steps = 0;            ///< of the block with the most
  double all_steps = 0;        ///< of all blocks in total if they are unequal; 0 if they are equal
  double tiles_per_block = 1;  ///< output tiles
  /// Measured: from a tile's last product to the next one's first, where products do not bound the loop. Blocks of a
  /// multiprocessor come to it together. 0 if not measured.
  double end_clocks = 0;
  /// Loads in flight while a stage is read. A ring of n stages that releases each a step late has n − 1.5. 0 if all
  /// loads are issued before the first step.
  double loads_in_flight = 0;
  /// One warpgroup alternates dequantization and products; otherwise it dequantizes while the previous block's products
  /// run.
  bool converts_in_turns = false;
  /// Each tile's rows may mask some of a step's logits: such steps cost more in a short loop over a ring of `stages`.
  bool hides_logits = false;
  int stages = 1;
  double exchange_clocks = 0;    ///< for the blocks of a cluster to add up their parts; 0 if they do not
  bool hides_exchanges = false;  ///< all except the last, under the work of other blocks
  bool persistent = false;       ///< a block takes tile after tile and starts once
  bool dependent_launch = false;
  bool shares_launch = false;    ///< these are more tiles of the launch whose first part is the previous one
  double dram_bytes = 0;         ///< the minimum that the call must read and write
  bool streams_weights = false;  ///< from memory: a multiprocessor draws no more than it can
  double dram_share = 0;         ///< the measured share of memory's rate; 0 if not measured: the calibration's
  double useful_share = 1;       ///< of the products; the rest is padding of tiles
  bool operator==(const TiledKernel&) const = default;
};

/// Tiles of one size, each shared by a group of blocks; all counts are per block.
struct TensorTiles {
  std::int64_t count = 0;
  double steps = 0;                ///< along K
  double products = 0;             ///< instructions per step
  double product_operations = 0;   ///< per instruction; a multiplication and an addition are two
  double operand_bytes = 0;        ///< of shared memory that the tensor cores read per instruction
  double l2_bytes = 0;             ///< per step, into the block's shared memory
  double tensor_memory_bytes = 0;  ///< that threads load in the epilogue of the tile
  EpilogueWork epilogue{};
  bool operator==(const TensorTiles&) const = default;
};

/// A kernel for MatrixUnit::tcgen05 with accumulators in tensor memory: one block is resident per multiprocessor.
struct TensorKernel {
  std::vector<TensorTiles> tiles{};
  MatrixType matrix_type = MatrixType::nvfp4;
  bool pairs = true;           ///< CTA pairs: two blocks share a product
  int cluster = 2;             ///< blocks per tile
  double loads_in_flight = 0;  ///< as in TiledKernel
  double exchange_clocks = 0;  ///< for the blocks of a split K to add up their parts
  bool persistent = false;  ///< a block takes tile after tile, with the epilogue of one under the products of the next
  double dram_bytes = 0;    ///< the minimum that the call must read and write
  double useful_share = 1;  ///< of the products; the rest is padding of tiles
  bool operator==(const TensorKernel&) const = default;
};

/// A kernel that mainly reads and writes memory.
struct MemoryPass {
  std::string title;              ///< "dequantizing the tokens"
  double bytes = 0;               ///< read and written
  bool is_hidden_launch = false;  ///< it starts while the previous kernel is ending
  bool operator==(const MemoryPass&) const = default;
};

/// Products D = A·Bᵀ of 16-bit operands by the vendor's library, one after another.
struct LibraryProducts {
  int count = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool operator==(const LibraryProducts&) const = default;
};

using WorkPart = std::variant<MemoryPass, TiledKernel, LibraryProducts, TensorKernel>;

/// In stream order. Empty for work that the predictor cannot model: CPU functions, and kernels without tensor cores.
struct WorkModel {
  std::vector<WorkPart> parts;
  bool operator==(const WorkModel&) const = default;
};

}  // namespace thresher::strategies
