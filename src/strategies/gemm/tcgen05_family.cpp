#include "strategies/gemm/tcgen05_family.hpp"

#include <algorithm>
#include <cmath>

#include "strategies/gemm/infeasible.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::gemm {
namespace {

int directory_experts(std::int64_t experts) {
  return static_cast<int>(std::min<std::int64_t>(experts, pipeline::max_groups));
}

int block_bytes(const TensorKernelShape& kernel, std::int64_t experts) {
  return kernel.dense
             ? pipeline::shared_bytes(kernel.shape)
             : pipeline::grouped_shared_bytes(kernel.shape, static_cast<std::uint32_t>(directory_experts(experts)));
}

void check_split(const TensorKernelShape& kernel, std::int64_t k, InfeasibleReasons& found) {
  const int parts = kernel.shape.split_groups;
  if (const std::int64_t steps = ceil_div(k, std::int64_t{kernel.slot_k}); parts > steps) {
    found.say("split-K: k = {} is {} slot{} of {}, too few for {} parts", k, steps, steps == 1 ? "" : "s",
              kernel.slot_k, parts);
  }
  if (parts > 1 && kernel.dense && kernel.shape.persistent) {
    found.say("split-K: a persistent block takes whole tiles, not one of {} parts", parts);
  }
  if (parts > 1 && !kernel.dense && kernel.tile_widths.most > pipeline::max_split_columns) {
    found.say("split-K: {} tokens are over the {} whose partial sums a thread holds in registers",
              kernel.tile_widths.most, pipeline::max_split_columns);
  }
}

void check_columns(const pipeline::TensorShape& shape, int limit, InfeasibleReasons& found) {
  const int used = pipeline::used_columns(shape);
  if (used <= limit) {
    return;
  }
  if (shape.scale_columns > 0) {
    found.say(
        "tensor memory: {} columns ({} for sums and {} for the scales of each of {} stages) are over the limit of {}",
        used, shape.sums * shape.sum_columns, shape.scale_columns, shape.stages, limit);
  } else {
    found.say("tensor memory: {} columns ({} for the sums of a tile{}) are over the limit of {}", used,
              shape.sum_columns, shape.sums == 1 ? "" : ", twice", limit);
  }
}

void check_memory(const TensorKernelShape& kernel, std::int64_t experts, int limit, InfeasibleReasons& found) {
  if (const int bytes = block_bytes(kernel, experts); bytes > limit) {
    const std::string directory =
        kernel.dense ? "" : fmt::format(", a directory of {} experts", directory_experts(experts));
    found.say("shared memory: {} bytes a block ({} stages of {}{}) are over the limit of {} ({} KiB)", bytes,
              kernel.shape.stages, kernel.shape.slot_bytes, directory, limit, limit / 1024);
  }
}

/// How many there are in a usual call.
std::int64_t usual_tiles(const ProductProblem& problem, const TensorKernelShape& kernel) {
  const std::int64_t column_tiles = ceil_div(problem.n, std::int64_t{kernel.outputs});
  if (kernel.dense) {
    return ceil_div(problem.rows, std::int64_t{kernel.tile_widths.most}) * column_tiles;
  }
  const double row_tiles = usual_row_tiles(problem, kernel.tile_widths).count;
  return static_cast<std::int64_t>(std::ceil(active_experts(problem) * row_tiles * static_cast<double>(column_tiles)));
}

/// Columns of a tile in a usual call.
double usual_columns(const ProductProblem& problem, const TensorKernelShape& kernel) {
  return kernel.dense ? kernel.tile_widths.most : usual_row_tiles(problem, kernel.tile_widths).columns;
}

// A block has 128 rows of weights. A slot has 128 bytes along K of each of its rows, an instruction a quarter of them.
constexpr int block_rows = 128;
constexpr int slot_row_bytes = 128;
constexpr int slot_products = 4;
constexpr int columns_per_scale_copy = 4;  ///< of tensor memory

/// Gate and up have an accumulator each where their rows are not of one tile.
int accumulators(const TensorKernelShape& kernel) {
  return kernel.shape.sum_columns / static_cast<int>(kernel.tile_widths.most);
}

/// The work of one tile.
TensorTiles tile_work(const ProductProblem& problem, const TensorKernelShape& kernel) {
  const pipeline::TensorShape& shape = kernel.shape;
  const int blocks = pipeline::group_blocks(shape);
  const double columns = usual_columns(problem, kernel);
  const double loaded = columns / blocks;
  const int token_bytes = static_cast<int>(kernel.tile_widths.most) / blocks * slot_row_bytes;
  const auto steps = static_cast<double>(ceil_div(problem.k, std::int64_t{kernel.slot_k}));
  constexpr double bytes_of_sum = 4;
  TensorTiles tiles;
  tiles.count = usual_tiles(problem, kernel);
  tiles.steps = std::ceil(steps / shape.split_groups);
  tiles.products = accumulators(kernel) * slot_products;
  tiles.product_operations = 2.0 * block_rows * columns * kernel.slot_k / slot_products;
  tiles.operand_bytes = (block_rows + loaded) * slot_row_bytes / slot_products;
  tiles.l2_bytes = shape.slot_bytes - token_bytes + loaded * slot_row_bytes;
  tiles.tensor_memory_bytes = accumulators(kernel) * bytes_of_sum * block_rows * columns;
  tiles.epilogue = epilogue_work(problem, static_cast<double>(kernel.outputs) / blocks * columns / shape.split_groups);
  return tiles;
}

const char* instruction(MatrixType type) {
  return type == MatrixType::nvfp4 ? "UTCOMMA" : type == MatrixType::fp8 ? "UTCQMMA" : "UTCHMMA";
}

}  // namespace

std::vector<std::string> tensor_infeasible_reasons(const ProductProblem& problem, const TensorKernelShape& kernel,
                                                   const DeviceSpec& device) {
  InfeasibleReasons found;
  if (!kernel.dense) {
    check_groups(problem, kernel.tile_widths, kernel.outputs, found);
  }
  check_split(kernel, problem.k, found);
  check_columns(kernel.shape, device.tensor_memory_columns, found);
  check_memory(kernel, problem.experts, device.shared_bytes_per_block, found);
  // Every multiprocessor holds one block.
  if (const int blocks = pipeline::cluster_blocks(kernel.shape); device.resident_blocks(blocks, 1) < blocks) {
    found.say("cluster: {} blocks with a multiprocessor each have no room on {} multiprocessors", blocks,
              device.multiprocessors);
  }
  return found.take();
}

TensorKernel tensor_work(const ProductProblem& problem, const TensorKernelShape& kernel) {
  const pipeline::TensorShape& shape = kernel.shape;
  const TensorTiles tiles = tile_work(problem, kernel);
  const int blocks = pipeline::group_blocks(shape);
  const auto steps = static_cast<double>(ceil_div(problem.k, std::int64_t{kernel.slot_k}));
  const double computed = static_cast<double>(tiles.count) * blocks * steps * tiles.products * tiles.product_operations;
  const double useful =
      2.0 * usual_rows(problem) * problem.matrices() * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  TensorKernel work;
  work.tiles = {tiles};
  work.matrix_type = kernel.type;
  work.pairs = blocks == 2;
  work.cluster = pipeline::cluster_blocks(shape);
  work.loads_in_flight = std::max(1.0, shape.stages - 1.5);
  work.exchange_clocks = exchange_clocks(tiles.tensor_memory_bytes, shape.split_groups);
  work.persistent = shape.persistent;
  work.dram_bytes = compulsory_bytes(problem);
  work.useful_share = std::min(1.0, useful / computed);
  return work;
}

/// A warp loads its lanes of every accumulator. With static tiles it loads `staged_tokens` columns at a time, in a
/// loop, and in another loop the columns that a split sends. With groups it loads chunks of two widths, or whole tiles
/// where K is split.
Expectations tensor_expectations(const TensorKernelShape& kernel) {
  constexpr std::int64_t warp_lanes = 32;
  const std::int64_t parts = accumulators(kernel);
  const std::int64_t columns = kernel.dense ? parts * kernel.staged_tokens + pipeline::sent_columns(kernel.shape)
                                            : parts * pipeline::loaded_columns(kernel.shape, kernel.tile_widths);
  const int scale_columns = kernel.shape.scale_columns;
  Expectations expected;
  expected.matrix_kind = instruction(kernel.type);
  expected.min_matrix_instructions = accumulators(kernel) * slot_products;
  // Each matrix and the tokens come through a tensor map, and so do their scales.
  expected.min_tma_loads = (accumulators(kernel) + 1) * (scale_columns > 0 ? 2 : 1);
  expected.tensor.products = accumulators(kernel) * slot_products;
  expected.tensor.scale_copies = scale_columns / columns_per_scale_copy;
  expected.tensor.is_pair = kernel.shape.group == machine::Group::pair;
  expected.tensor.min_commits = 2;
  expected.tensor.loaded_bytes = warp_lanes * columns * static_cast<std::int64_t>(sizeof(float));
  return expected;
}

KernelLaunch tensor_launch(const TensorKernelShape& kernel, std::int64_t experts, DeviceProgram program,
                           bool dependent) {
  KernelLaunch launch;
  launch.title = "multiply";
  launch.expression = program.kernels.front();
  launch.program = std::move(program);
  launch.block.x = narrow(pipeline::threads(kernel.shape));
  launch.cluster.x = narrow(pipeline::cluster_blocks(kernel.shape));
  launch.shared_bytes = narrow(block_bytes(kernel, experts));
  launch.dependent = dependent;
  launch.persistent = kernel.shape.persistent;
  launch.expected = tensor_expectations(kernel);
  return launch;
}

machine::TensorMapDescription tensor_map(std::uint64_t address, machine::ElementType element, machine::Swizzle swizzle,
                                         std::initializer_list<std::uint64_t> extents,
                                         std::initializer_list<std::uint64_t> strides,
                                         std::initializer_list<std::uint32_t> box) {
  machine::TensorMapDescription map;
  map.address = address;
  map.element = element;
  map.swizzle = swizzle;
  map.rank = narrow(static_cast<std::int64_t>(extents.size()));
  std::copy(extents.begin(), extents.end(), map.extent);
  std::copy(strides.begin(), strides.end(), map.stride_bytes + 1);
  std::copy(box.begin(), box.end(), map.box);
  return map;
}

std::vector<int> static_tile_widths(std::int64_t rows) {
  constexpr std::int64_t granule = 16;
  constexpr std::int64_t max_tokens = 256;
  const auto all = static_cast<int>(std::min(max_tokens, round_up(rows, granule)));
  std::vector<int> widths{std::max(static_cast<int>(granule), all)};
  for (const int tokens : {64, 96, 128, 192}) {
    if (tokens < all) {
      widths.push_back(tokens);
    }
  }
  return widths;
}

}  // namespace thresher::strategies::gemm
