#pragma once
/// Why a configuration of a product cannot be compiled or run, whichever strategy's.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/shape.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/problem.hpp"

namespace thresher::strategies::gemm {

class InfeasibleReasons {
 public:
  template <class... Values>
  void say(fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

/// The directory has room for the experts, tiles can be counted in 32 bits, and there are widths for them.
void check_groups(const ProductProblem& problem, const pipeline::TileWidths& tile_widths, int tile_outputs,
                  InfeasibleReasons& found);

/// The numbers that a wgmma kernel multiplies, and how its stage buffers and accumulators take them.
struct PlainNumbers {
  Numerics numerics = Numerics::exact;
  Number operand = Number::bf16;
  ScalingKnobs scaling{};
  int block_k = 64;
};
void check_numbers(const PlainNumbers& numbers, InfeasibleReasons& found);

struct BlockNeeds {
  pipeline::Shape shape{};
  int blocks_resident = 1;
  std::int64_t experts = 1;
  int registers = 0;  ///< of a math thread, about
};
/// Registers of a thread when it starts, before any reallocation: a multiple of 8.
[[nodiscard]] int launch_registers(const pipeline::Shape& shape, int blocks_resident, const DeviceSpec& device);
/// Threads and registers.
void check_registers(const BlockNeeds& needs, const DeviceSpec& device, InfeasibleReasons& found);
/// Shared memory of a block with static tiles.
void check_static_memory(const pipeline::Shape& shape, const DeviceSpec& device, InfeasibleReasons& found);
/// The slots of a block have room for the sums of others that divide K with it, of the columns that it keeps. A thread
/// has `accumulators` for `columns`.
void check_split(const pipeline::Shape& shape, int columns, int accumulators, InfeasibleReasons& found);
inline constexpr int usual_least_tokens = 8;  ///< of tiles of several widths
struct TileKnobs {
  bool static_tiles = false;
  int least_tokens = usual_least_tokens;
};
/// Static tiles have rows that the launch knows. A block that takes no more than one tile has one width, and each that
/// divides the k steps has some.
void check_tiles(const ProductProblem& problem, const pipeline::Shape& shape, const TileKnobs& knobs,
                 std::int64_t k_steps, InfeasibleReasons& found);
/// Threads, registers, and shared memory with a directory.
void check_block(const BlockNeeds& needs, const DeviceSpec& device, InfeasibleReasons& found);

}  // namespace thresher::strategies::gemm
