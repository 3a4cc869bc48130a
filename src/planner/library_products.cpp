#include "planner/library_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace thresher::planner {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct LibraryTile {
  int rows;
  int columns;
};

/// Tiles that a library is expected to have; it may also split K in two.
constexpr std::array library_tiles{LibraryTile{128, 256}, LibraryTile{128, 128}, LibraryTile{128, 64},
                                   LibraryTile{64, 64}};

struct Product {
  double us = 0;
  double busy_share = 1;
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;
  bool memory_bound = false;
};

Product product_us(const DualGemmProblem& problem, const DeviceSpec& device, const Calibration& calibration,
                   double clock_ghz) {
  const double bytes =
      (static_cast<double>(problem.n) + static_cast<double>(problem.m)) * static_cast<double>(problem.k) * 2;
  const double memory_us = bytes / (device.dram_bytes_per_us * calibration.dram_efficiency);
  Product best{.us = std::numeric_limits<double>::max()};
  for (const LibraryTile& tile : library_tiles) {
    for (const int split : {1, 2}) {
      const std::int64_t blocks = ceil_div(problem.m, tile.rows) * ceil_div(problem.n, tile.columns) * split;
      const std::int64_t rounds = ceil_div(blocks, device.multiprocessors);
      const double clocks = 2.0 * tile.rows * tile.columns * static_cast<double>(ceil_div(problem.k, split)) /
                            device.ops_per_clock_16bit / calibration.library_efficiency * static_cast<double>(rounds);
      const double us = std::max(memory_us, clocks / clock_ghz * 1e-3) + calibration.fill_us + (split - 1) * 2.0;
      if (us < best.us) {
        const double busy = static_cast<double>(blocks) / static_cast<double>(rounds) / device.multiprocessors;
        best = {us, busy, blocks, rounds, memory_us * 1e3 * clock_ghz > clocks};
      }
    }
  }
  return best;
}

struct Passes {
  double us = 0;
  int kernels = 0;
};

/// A separate pass over memory: `read` and `written` bytes.
void add_pass(Passes& passes, double read, double written, const DeviceSpec& device, const Calibration& calibration) {
  passes.us += pass_us(read + written, device, calibration);
  ++passes.kernels;
}

Passes passes_of(const DualGemmProblem& problem, const DeviceSpec& device, const Calibration& calibration) {
  Passes passes;
  const double weights = 2.0 * static_cast<double>(problem.n * problem.k);
  const double tokens = static_cast<double>(problem.m * problem.k);
  const double outputs = static_cast<double>(problem.m * problem.n);
  const double nvfp4_bytes = 4.5 / 8;
  if (problem.b == Format::nvfp4) {
    add_pass(passes, weights * nvfp4_bytes, weights * 2, device, calibration);
  }
  if (problem.a == Format::nvfp4) {
    add_pass(passes, tokens * nvfp4_bytes, tokens * 2, device, calibration);
  }
  add_pass(passes, outputs * 2 * 4, outputs * bits(problem.out) / 8, device, calibration);
  return passes;
}

}  // namespace

Prediction predict_library(const DualGemmProblem& problem, const DeviceSpec& device, const Calibration& calibration,
                           Clocks clocks) {
  const Product product = product_us(problem, device, calibration, device.clock_ghz(clocks));
  const Passes passes = passes_of(problem, device, calibration);
  Prediction out;
  out.parts.launch_us = device.launch_us * (2 + passes.kernels);
  out.parts.main_us = 2 * product.us;
  out.parts.passes_us = passes.us;
  out.blocks = product.blocks;
  out.rounds = product.rounds;
  out.busy_share = product.busy_share;
  out.calibrated = device.calibrated;
  out.bound = passes.us > out.parts.main_us || product.memory_bound ? Bound::memory
              : product.busy_share < 0.8                            ? Bound::waves
                                                                    : Bound::matrix;
  out.why = fmt::format("bound by {}: two library products of {:.1f} µs and {} separate passes of {:.1f} µs together",
                        name(out.bound), product.us, passes.kernels, passes.us);
  return out;
}

}  // namespace thresher::planner
