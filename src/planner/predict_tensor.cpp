#include "planner/predict_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/integers.hpp"
#include "planner/epilogue.hpp"

namespace thresher::planner {
namespace {

using strategies::TensorKernel;
using strategies::TensorTiles;

/// For one multiprocessor, or for the whole GPU where that is longer.
struct Body {
  double products_us = 0;
  double l2_us = 0;
  double latency_us = 0;
  double dram_us = 0;

  [[nodiscard]] double us() const noexcept { return std::max({products_us, l2_us, latency_us, dram_us}); }
  [[nodiscard]] Bound bound() const noexcept {
    return us() == products_us ? Bound::matrix
           : us() == l2_us     ? Bound::l2
           : us() == dram_us   ? Bound::dram
                               : Bound::memory;
  }
};

/// The distribution of a kernel's tiles over a GPU, and the time that each resource needs for them.
class Course {
 public:
  Course(const TensorKernel& kernel, const DeviceSpec& device, Clocks clocks)
      : kernel_(kernel), device_(device), clock_ghz_(device.tensor.clock_ghz.value) {
    for (const TensorTiles& tiles : kernel.tiles) {
      tiles_ += tiles.count;
    }
    groups_ = std::max<std::int64_t>(1, device.resident_blocks(kernel.cluster, 1) / kernel.cluster);
    rounds_ = std::max<std::int64_t>(1, ceil_div(tiles_, groups_));
    if (clocks == Clocks::sustained && body().bound() == Bound::matrix) {  // only tensor-core work lowers the clock
      clock_ghz_ *= device.sustained_clock_ghz / device.burst_clock_ghz;
    }
  }

  [[nodiscard]] Body body() const {
    const TensorUnitSpec& unit = device_.tensor;
    const double rate = std::min(unit.multiprocessor_bytes_per_us.value,
                                 unit.card_bytes_per_us.value / static_cast<double>(running_blocks()));
    const double in_flight = std::max(1.0, kernel_.loads_in_flight);
    Body out;
    out.products_us =
        of_busiest([&](const TensorTiles& tile) { return us(tile.steps * tile.products * product_clocks(tile)); });
    out.l2_us = of_busiest([&](const TensorTiles& tile) { return tile.steps * tile.l2_bytes / rate; });
    out.latency_us =
        of_busiest([&](const TensorTiles& tile) { return tile.steps * unit.load_latency_us.value / in_flight; });
    out.dram_us = kernel_.dram_bytes / unit.dram_bytes_per_us.value;
    return out;
  }

  /// A persistent block runs every epilogue except the last under the products of the next tile.
  [[nodiscard]] double epilogue_us(const Calibration& calibration) const {
    double longest = 0;
    for (const TensorTiles& tile : kernel_.tiles) {
      const double load = tile.tensor_memory_bytes / device_.tensor.tensor_memory_bytes_per_clock.value;
      const double finish = epilogue_clocks(tile.epilogue, device_, calibration) * device_.tensor.epilogue_factor.value;
      longest = std::max(longest, us(load + finish));
    }
    return longest * static_cast<double>(starts());
  }

  [[nodiscard]] double exchange_us(const Calibration& calibration) const {
    return kernel_.exchange_clocks == 0
               ? 0
               : (calibration.exchange_us + us(kernel_.exchange_clocks)) * static_cast<double>(starts());
  }

  /// Block starts per multiprocessor.
  [[nodiscard]] std::int64_t starts() const noexcept { return kernel_.persistent ? 1 : rounds_; }
  [[nodiscard]] std::int64_t rounds() const noexcept { return rounds_; }
  [[nodiscard]] std::int64_t tile_blocks() const noexcept { return tiles_ * kernel_.cluster; }

 private:
  [[nodiscard]] double us(double clocks) const noexcept { return clocks / clock_ghz_ * 1e-3; }
  [[nodiscard]] std::int64_t running_blocks() const noexcept { return std::min(tiles_, groups_) * kernel_.cluster; }

  /// The tensor cores' time, or that of reading the operands from shared memory if it is longer.
  [[nodiscard]] double product_clocks(const TensorTiles& tile) const noexcept {
    const TensorUnitSpec& unit = device_.tensor;
    const double reading =
        tile.operand_bytes / unit.operand_bytes_per_clock.value + (kernel_.pairs ? unit.pair_overhead_clocks.value : 0);
    return std::max(tile.product_operations / operations_per_clock(), reading);
  }

  /// A product takes 32 bytes of K in the same time, in any format.
  [[nodiscard]] double operations_per_clock() const noexcept {
    const double share = kernel_.matrix_type == MatrixType::nvfp4 ? 1
                         : kernel_.matrix_type == MatrixType::fp8 ? 0.5
                                                                  : 0.25;
    return share * device_.tensor.nvfp4_operations_per_clock.value;
  }

  /// Equal tiles take whole rounds; of unequal ones, short tiles fill the gaps of long ones.
  template <class TileUs>
  [[nodiscard]] double of_busiest(const TileUs& tile_us) const {
    if (kernel_.tiles.size() == 1) {
      return tile_us(kernel_.tiles.front()) * static_cast<double>(rounds_);
    }
    double longest = 0;
    double all = 0;
    for (const TensorTiles& tile : kernel_.tiles) {
      longest = std::max(longest, tile_us(tile));
      all += tile_us(tile) * static_cast<double>(tile.count);
    }
    return std::max(longest, all / static_cast<double>(groups_));
  }

  const TensorKernel& kernel_;
  const DeviceSpec& device_;
  double clock_ghz_;
  std::int64_t tiles_ = 0;
  std::int64_t groups_ = 1;  ///< groups of blocks that share one tile each, running concurrently
  std::int64_t rounds_ = 1;
};

std::string bound_words(Bound bound) {
  return bound == Bound::launch ? "the prologue (launch, tensor memory, first loads)" : std::string(name(bound));
}

std::string reason(const Prediction& prediction, const Body& body, const DeviceSpec& device) {
  const TimeParts& parts = prediction.parts;
  return fmt::format(
      "bound by {}: products {:.1f}, L2 to shared memory {:.1f}, DRAM {:.1f}, latency of loads {:.1f} µs; {} blocks in "
      "{} round{} on {} multiprocessors ({:.0f} % busy, {:.0f} % of the products useful); launch {:.1f}, prologue "
      "{:.1f}, main loop {:.1f}, exchange {:.1f}, epilogue {:.1f} µs; never measured on a {}",
      bound_words(prediction.bound), body.products_us, body.l2_us, body.dram_us, body.latency_us, prediction.blocks,
      prediction.rounds, prediction.rounds == 1 ? "" : "s", device.multiprocessors, 100 * prediction.busy_share,
      100 * prediction.useful_share, parts.launch_us, parts.fill_us, parts.main_us, parts.exchange_us,
      parts.epilogue_us, device.name);
}

}  // namespace

Prediction predict_tensor(const TensorKernel& kernel, const DeviceSpec& device, const Calibration& calibration,
                          Clocks clocks) {
  const Course course(kernel, device, clocks);
  const Body body = course.body();
  Prediction out;
  out.blocks = course.tile_blocks();
  out.rounds = course.rounds();
  out.busy_share = static_cast<double>(out.blocks) / (static_cast<double>(out.rounds) * device.multiprocessors);
  out.useful_share = kernel.useful_share;
  out.parts.launch_us = device.tensor.launch_us.value;
  out.parts.fill_us = device.tensor.prologue_us.value * static_cast<double>(course.starts());
  out.parts.main_us = body.us();
  out.parts.exchange_us = course.exchange_us(calibration);
  out.parts.epilogue_us = course.epilogue_us(calibration);
  out.bound = out.parts.main_us < out.us() / 2 ? Bound::launch : body.bound();
  out.why = reason(out, body, device);
  return out;
}

}  // namespace thresher::planner
