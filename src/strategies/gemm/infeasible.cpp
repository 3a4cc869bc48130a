#include "strategies/gemm/infeasible.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/integers.hpp"
#include "pipeline/grouped/groups.hpp"
#include "strategies/gemm/call.hpp"

namespace thresher::strategies::gemm {
void check_groups(const ProductProblem& problem, const pipeline::TileWidths& tile_widths, int tile_outputs,
                  InfeasibleReasons& found) {
  if (problem.experts > pipeline::max_groups) {
    found.say("directory: {} experts are over the limit of {}", problem.experts, pipeline::max_groups);
  }
  const std::int64_t tiles = max_tiles(extents_of(problem), tile_widths.most, tile_outputs);
  if (constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max(); tiles > most) {
    found.say("tiles: up to {} of {} rows and {} outputs are over the limit of {}", tiles, tile_widths.most,
              tile_outputs, most);
  }
  if (tile_widths.least > tile_widths.most) {
    found.say("tile: {} tokens at least are more than the {} at most", tile_widths.least, tile_widths.most);
  }
  const bool is_doubled = (tile_widths.most & (tile_widths.most - 1)) == 0;
  const bool has_steps = tile_widths.step != 0 && tile_widths.most > pipeline::doubled_widths;
  if (!is_doubled && (!has_steps || tile_widths.most % tile_widths.step != 0)) {
    found.say("tile: {} tokens are no width where widths are {}", tile_widths.most,
              has_steps ? fmt::format("{} apart", tile_widths.step) : "powers of two");
  }
}

/// Panels of a slot are 64 or 128 bytes wide; what is promoted is of one of them, at most a block of scales.
void check_numbers(const PlainNumbers& numbers, InfeasibleReasons& found) {
  const bool is_fast = numbers.numerics == Numerics::fast;
  if (numbers.operand != Number::e4m3) {
    if (is_fast) {
      found.say("fast: sums of 16-bit operands are long enough in the tensor cores: use numerics exact");
    }
    return;
  }
  if (is_fast && (numbers.scaling.tokens == Scaling::block || numbers.scaling.weights == Scaling::block)) {
    found.say(
        "fast: scales of blocks multiply the sums of every {} along K, which are accumulated in float32: use numerics "
        "exact",
        scale_block);
  }
  if (numbers.block_k != 64 && (is_fast ? numbers.block_k % 128 != 0 : numbers.block_k != 128)) {
    found.say("tile: {} of FP8 along K a stage: use {}", numbers.block_k,
              is_fast ? "64 or a multiple of 128" : "64 or 128, whose sums are accumulated in float32");
  }
}

/// Registers are allotted to warps in units that divide evenly among 4 schedulers.
int launch_registers(const pipeline::Shape& shape, int blocks_resident, const DeviceSpec& device) {
  const int threads = round_up(pipeline::threads(shape), 128) * blocks_resident;
  return std::min(device.max_registers_per_thread, device.registers_per_multiprocessor / threads) / 8 * 8;
}

void check_block(const BlockNeeds& needs, const DeviceSpec& device, InfeasibleReasons& found) {
  const int experts = static_cast<int>(std::min<std::int64_t>(needs.experts, pipeline::max_groups));
  const int bytes = pipeline::grouped_shared_bytes(needs.shape, static_cast<std::uint32_t>(experts));
  // A kibibyte of each block is the system's.
  const int room = device.shared_bytes_per_multiprocessor / needs.blocks_resident - 1024;
  if (const int limit = std::min(device.shared_bytes_per_block, room); bytes > limit) {
    found.say("shared memory: {} bytes a block ({} stages of {}, a directory of {} experts) are over the limit of {}",
              bytes, needs.shape.stages, needs.shape.slot_bytes, experts, limit);
  }
  check_registers(needs, device, found);
}

void check_static_memory(const pipeline::Shape& shape, const DeviceSpec& device, InfeasibleReasons& found) {
  const int limit = device.shared_bytes_per_block;
  if (const int bytes = pipeline::shared_bytes(shape); bytes > limit) {
    found.say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", bytes,
              shape.stages, shape.slot_bytes, limit, limit / 1024);
  }
}

void check_tiles(const ProductProblem& problem, const pipeline::Shape& shape, const TileKnobs& knobs,
                 std::int64_t k_steps, InfeasibleReasons& found) {
  if (shape.persistent) {
    return;
  }
  const std::string_view why = knobs.static_tiles ? "static tiles" : "split-K";
  if (knobs.static_tiles && !problem.is_dense()) {
    found.say("static tiles: only dense rows are known when the kernel is launched");
  }
  if (knobs.least_tokens != usual_least_tokens) {
    found.say("{}: all tiles have block_tokens columns: leave out least_tokens, which is {}", why, knobs.least_tokens);
  }
  if (shape.reading == pipeline::Reading::ping_pong) {
    found.say("{}: a block has one tile, and its {} consumer warpgroups share it: leave out by_turns", why,
              shape.math_warpgroups);
  }
  if (k_steps < shape.split_blocks) {
    found.say("split-K: {} stages along K are too few for {} blocks", k_steps, shape.split_blocks);
  }
}

void check_split(const pipeline::Shape& shape, int columns, int accumulators, InfeasibleReasons& found) {
  if (shape.split_blocks == 1) {
    return;
  }
  const auto kept = static_cast<int>(pipeline::kept_columns(shape, static_cast<std::uint32_t>(columns)));
  const int sums = (shape.split_blocks - 1) * pipeline::math_threads(shape) * accumulators / (columns / kept) *
                   static_cast<int>(sizeof(float));
  if (sums > pipeline::slots_bytes(shape)) {
    found.say("split-K: {} bytes of partial sums do not fit into {} stages of {}", sums, shape.stages,
              shape.slot_bytes);
  }
}

void check_registers(const BlockNeeds& needs, const DeviceSpec& device, InfeasibleReasons& found) {
  const pipeline::Shape& shape = needs.shape;
  const int threads = pipeline::threads(shape);
  if (threads > device.max_threads_per_block) {
    found.say("threads: {} consumer warpgroups and a producer are {} threads a block, over the limit of {}",
              shape.math_warpgroups, threads, device.max_threads_per_block);
    return;
  }
  if (threads * needs.blocks_resident > device.max_threads_per_multiprocessor) {
    found.say("threads: {} blocks of {} are over the limit of {} a multiprocessor", needs.blocks_resident, threads,
              device.max_threads_per_multiprocessor);
    return;
  }
  const int at_launch = launch_registers(shape, needs.blocks_resident, device);
  const bool reallocates_registers = shape.loader_registers > 0 || shape.math_registers > 0;
  if (const int available = reallocates_registers ? shape.math_registers : at_launch; needs.registers > available) {
    found.say("registers: a consumer thread needs about {}, over the {} that {} threads give it", needs.registers,
              available, threads * needs.blocks_resident);
  }
  if (!reallocates_registers) {
    return;
  }
  const int pool = (shape.math_warpgroups + 1) * at_launch;
  const int wanted = shape.loader_registers + shape.math_warpgroups * shape.math_registers;
  if (shape.loader_registers == 0 || shape.math_registers == 0) {
    found.say("setmaxnreg: loader_registers = {} and math_registers = {} go together, or both are 0",
              shape.loader_registers, shape.math_registers);
  } else if (wanted > pool) {
    found.say(
        "setmaxnreg: a producer of {} and {} consumer warpgroups of {} registers are {}, over the pool of {} ({} × {} "
        "at launch); the kernel would hang",
        shape.loader_registers, shape.math_warpgroups, shape.math_registers, wanted, pool, shape.math_warpgroups + 1,
        at_launch);
  }
}

}  // namespace thresher::strategies::gemm
