#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/integers.hpp"
#include "planner/combine.hpp"
#include "planner/deviation.hpp"
#include "planner/epilogue.hpp"
#include "planner/predict.hpp"
#include "planner/predict_tensor.hpp"

namespace thresher::planner {
namespace {

using strategies::LibraryProducts;
using strategies::MemoryPass;
using strategies::StepWork;
using strategies::TensorKernel;
using strategies::TiledKernel;
using strategies::WorkModel;
using strategies::WorkPart;

constexpr double lanes = 128;  ///< of a multiprocessor's four schedulers
/// Bytes that the tensor cores read for each byte that a copy or a thread moves in the same time. Tiles of 128 × 96
/// were measured at the full tensor-core rate, although their operands are 1.4 times what a common rate would allow.
constexpr double matrix_read_factor = 2;
/// Instructions to mask a logit if a row does not see every key of a step.
constexpr double hiding_instructions = 4;

double microseconds(double clocks, double clock_ghz) { return clocks / clock_ghz * 1e-3; }

/// The device, calibration and clocks of a prediction.
struct Where {
  const DeviceSpec& device;
  const Calibration& calibration;

  /// `share` of memory's rate; 0: the calibration's.
  [[nodiscard]] double dram_us(double bytes, double share = 0) const {
    return bytes / (device.dram_bytes_per_us * (share > 0 ? share : calibration.dram_efficiency));
  }
};

/// The distribution of a kernel's blocks over the machine.
struct Walk {
  std::int64_t rounds = 1;  ///< blocks of the busiest multiprocessor
  int resident = 1;         ///< resident at once
  double steps = 0;         ///< of the busiest multiprocessor
};

Walk walk(const TiledKernel& kernel, const DeviceSpec& device) {
  const int side_by_side = kernel.blocks_per_multiprocessor;
  const std::int64_t slots = device.resident_blocks(kernel.cluster, side_by_side) / side_by_side;
  Walk out;
  // A cluster's blocks fill a multiprocessor before they take the next
  // (measurements/static_tiles_h200_2026-11-29.txt.xz).
  out.rounds = std::max<std::int64_t>(std::min(kernel.cluster, side_by_side), ceil_div(kernel.blocks, slots));
  out.resident = static_cast<int>(std::min<std::int64_t>(out.rounds, side_by_side));
  // Equal blocks take whole rounds; of unequal ones, short blocks fill the gaps of long ones.
  const double steps = kernel.all_steps > 0 ? std::max(kernel.steps, kernel.all_steps / static_cast<double>(slots))
                                            : kernel.steps * static_cast<double>(out.rounds);
  out.steps = std::max(1.0, steps);
  return out;
}

/// Whether most steps need the mask: a long row needs it in one or two of many.
bool pays_for_hiding(const TiledKernel& kernel, const Walk& walked) {
  return kernel.hides_logits && walked.steps < 2 * kernel.stages;
}

double issue_clocks(const TiledKernel& kernel, const Walk& walked, const Where& where) {
  const StepWork& step = kernel.step;
  const Calibration& calibration = where.calibration;
  const double a_block =
      step.matrix_type == MatrixType::fp8 ? calibration.fast_instructions : calibration.exact_instructions;
  const double a_logit = calibration.softmax_instructions + (pays_for_hiding(kernel, walked) ? hiding_instructions : 0);
  const double instructions = step.instructions + step.converted_blocks * a_block + step.logits * a_logit / lanes;
  const double special = step.logits / where.device.special_per_clock;
  return std::max(special, instructions / calibration.issue_efficiency);
}

Loads loads_of(const TiledKernel& kernel, const Walk& walked, const Where& where) {
  const StepWork& step = kernel.step;
  const double matrix_rate = where.device.ops_per_clock(step.matrix_type) * where.calibration.matrix_efficiency;
  return {
      .matrix = step.matrix_operations / matrix_rate / (step.matrix_share > 0 ? step.matrix_share : 1),
      .shared = (step.shared_bytes + step.shared_read_bytes / matrix_read_factor) / where.device.shared_bytes_per_clock,
      .issue = issue_clocks(kernel, walked, where),
      .memory = step.l2_bytes / where.device.l2_bytes_per_clock_sm};
}

/// The visible part of the shorter of dequantization and products.
double turns_loss(const TiledKernel& kernel, const Calibration& calibration) {
  if (!kernel.converts_in_turns) {
    return 0;
  }
  return kernel.blocks_per_multiprocessor > 1 ? calibration.turns_loss : calibration.fast_loss;
}

Combined clocks_per_step(const TiledKernel& kernel, const Walk& walked, const Where& where) {
  const Loads loads = loads_of(kernel, walked, where);
  if (kernel.step.logits > 0) {
    return combine(loads, where.calibration.softmax_loss);
  }
  if (kernel.step.matrix_share > 0) {
    return combine(loads, 0);
  }
  // Resident blocks hide each other's losses.
  const Combined together = combine(loads, where.calibration.overlap_loss / walked.resident);
  const Combined in_turns =
      combine({.matrix = loads.matrix, .issue = loads.issue}, turns_loss(kernel, where.calibration));
  return in_turns.clocks > together.clocks ? in_turns : together;
}

/// All blocks together at memory's rate, and of weights each multiprocessor at the most that it draws.
double memory_us(const TiledKernel& kernel, const Where& where, double clock_ghz) {
  const double together = where.dram_us(kernel.dram_bytes, kernel.dram_share);
  if (!kernel.streams_weights) {
    return together;
  }
  const auto drawing = static_cast<double>(std::min<std::int64_t>(kernel.blocks, where.device.multiprocessors));
  return std::max(together,
                  microseconds(kernel.dram_bytes / drawing / where.calibration.sm_dram_bytes_per_clock, clock_ghz));
}

struct MainLoop {
  double us = 0;
  Bound bound = Bound::matrix;
};

MainLoop main_loop(const TiledKernel& kernel, const Walk& walked, const Where& where, double clock_ghz) {
  const Combined step = clocks_per_step(kernel, walked, where);
  const double in_flight = kernel.loads_in_flight * walked.resident;
  const double latency = in_flight > 0 ? where.calibration.load_latency_clocks / in_flight : 0;
  const auto ends = static_cast<double>(step.bound == Bound::matrix ? 0 : ceil_div(walked.rounds, walked.resident));
  const double compute_us =
      microseconds(std::max(step.clocks, latency) * walked.steps + kernel.end_clocks * ends, clock_ghz);
  const double dram_us = memory_us(kernel, where, clock_ghz);
  if (dram_us > compute_us) {
    return {dram_us, Bound::memory};
  }
  return {compute_us, latency > step.clocks ? Bound::memory : step.bound};
}

/// The epilogue is hidden if another tile's products run at the same time.
double epilogues(const TiledKernel& kernel, const Walk& walked) {
  const bool overlaps = kernel.epilogue.is_hidden || walked.resident > 1;
  return overlaps ? 1 : static_cast<double>(walked.rounds) * kernel.tiles_per_block;
}

double exchange_us(const TiledKernel& kernel, const Walk& walked, const Where& where, double clock_ghz) {
  if (kernel.exchange_clocks == 0) {
    return 0;
  }
  const double one = where.calibration.exchange_us + microseconds(kernel.exchange_clocks, clock_ghz);
  return kernel.hides_exchanges ? one : one * static_cast<double>(walked.rounds);
}

/// Launch and fill. Kernels with a softmax were fitted separately: they are so short that half of a launch can hide.
void add_start(const TiledKernel& kernel, const Walk& walked, Bound bound, const Where& where, TimeParts& parts) {
  if (kernel.shares_launch) {
    return;
  }
  if (kernel.step.logits > 0) {
    parts.launch_us = kernel.dependent_launch ? where.device.launch_us / 2 : where.device.launch_us;
    parts.fill_us = where.calibration.attention_fill_us;
    return;
  }
  const std::int64_t fills = kernel.persistent ? 1 : ceil_div(walked.rounds, kernel.blocks_per_multiprocessor);
  const bool saves = kernel.dependent_launch && bound != Bound::matrix;
  parts.launch_us = where.device.launch_us;
  parts.fill_us = std::max(0.0, where.calibration.fill_us * static_cast<double>(fills) -
                                    (saves ? where.calibration.dependent_launch_us : 0));
}

Bound final_bound(const Prediction& prediction, Bound inner) {
  if (prediction.parts.main_us < prediction.us() / 2) {
    return Bound::launch;
  }
  const bool idle = prediction.busy_share < 0.8 && inner != Bound::memory;
  return idle ? Bound::waves : inner;
}

std::string reason(const Prediction& prediction, const DeviceSpec& device) {
  const TimeParts& parts = prediction.parts;
  std::string out = fmt::format(
      "bound by {}: {} blocks in {} round{} on {} multiprocessors ({:.0f} % busy, {:.0f} % of the products useful); "
      "launch {:.1f}, fill {:.1f}, main loop {:.1f}, exchange {:.1f}, epilogue {:.1f} µs",
      name(prediction.bound), prediction.blocks, prediction.rounds, prediction.rounds == 1 ? "" : "s",
      device.multiprocessors, 100 * prediction.busy_share, 100 * prediction.useful_share, parts.launch_us,
      parts.fill_us, parts.main_us, parts.exchange_us, parts.epilogue_us);
  return prediction.calibrated ? out : out + fmt::format("; never measured on a {}", device.name);
}

Prediction predict_kernel(const TiledKernel& kernel, const Where& where, Clocks clocks) {
  const Walk walked = walk(kernel, where.device);
  double clock_ghz = where.device.clock_ghz(clocks);
  MainLoop main = main_loop(kernel, walked, where, clock_ghz);
  if (main.bound != Bound::matrix) {  // only tensor-core work lowers the clock
    clock_ghz = where.device.burst_clock_ghz;
    main = main_loop(kernel, walked, where, clock_ghz);
  }
  Prediction out;
  out.blocks = kernel.blocks;
  out.rounds = walked.rounds;
  out.busy_share =
      static_cast<double>(kernel.blocks) / (static_cast<double>(walked.rounds) * where.device.multiprocessors);
  out.useful_share = kernel.useful_share;
  out.calibrated = where.device.calibrated;
  add_start(kernel, walked, main.bound, where, out.parts);
  out.parts.main_us = main.us;
  out.parts.exchange_us = exchange_us(kernel, walked, where, clock_ghz);
  out.parts.epilogue_us = microseconds(epilogue_clocks(kernel.epilogue, where.device, where.calibration), clock_ghz) *
                          epilogues(kernel, walked);
  out.bound = final_bound(out, main.bound);
  out.why = reason(out, where.device);
  return out;
}

struct LibraryTile {
  int rows;
  int columns;
};

/// The tiles that a library is assumed to have; it may also split K in two.
constexpr std::array library_tiles{LibraryTile{128, 256}, LibraryTile{128, 128}, LibraryTile{128, 64},
                                   LibraryTile{64, 64}};
constexpr double library_split_us = 2.0;

struct Product {
  double us = 0;
  double busy_share = 1;
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;
  bool memory_bound = false;
};

Product with_tile(const LibraryProducts& work, const LibraryTile& tile, int split, const Where& where,
                  double clock_ghz) {
  const double memory_us = where.dram_us(static_cast<double>(work.n + work.m) * static_cast<double>(work.k) * 2);
  Product out;
  out.blocks = ceil_div(work.m, tile.rows) * ceil_div(work.n, tile.columns) * split;
  out.rounds = ceil_div(out.blocks, where.device.multiprocessors);
  const double clocks = 2.0 * tile.rows * tile.columns * static_cast<double>(ceil_div(work.k, split)) /
                        where.device.ops_per_clock_16bit / where.calibration.library_efficiency *
                        static_cast<double>(out.rounds);
  const double compute_us = microseconds(clocks, clock_ghz);
  out.us = std::max(memory_us, compute_us) + where.calibration.fill_us + (split - 1) * library_split_us;
  out.busy_share = static_cast<double>(out.blocks) / static_cast<double>(out.rounds) / where.device.multiprocessors;
  out.memory_bound = memory_us > compute_us;
  return out;
}

Prediction predict_products(const LibraryProducts& work, const Where& where, Clocks clocks) {
  Product best{.us = std::numeric_limits<double>::max()};
  for (const LibraryTile& tile : library_tiles) {
    for (const int split : {1, 2}) {
      const Product product = with_tile(work, tile, split, where, where.device.clock_ghz(clocks));
      best = product.us < best.us ? product : best;
    }
  }
  Prediction out;
  out.parts.launch_us = where.device.launch_us * work.count;
  out.parts.main_us = work.count * best.us;
  out.blocks = best.blocks;
  out.rounds = best.rounds;
  out.busy_share = best.busy_share;
  out.calibrated = where.device.calibrated;
  out.bound = best.memory_bound ? Bound::memory : best.busy_share < 0.8 ? Bound::waves : Bound::matrix;
  out.why = fmt::format("bound by {}: {} library products of {:.1f} µs", name(out.bound), work.count, best.us);
  return out;
}

void add_pass(const MemoryPass& pass, const Where& where, Prediction& out) {
  const double us = where.calibration.fill_us + where.dram_us(pass.bytes);
  out.parts.passes_us += us;
  out.parts.launch_us += pass.is_hidden_launch ? 0 : where.device.launch_us;
  out.why += fmt::format("; {} {:.1f} µs", pass.title, us);
}

/// The time of a part by itself; empty for memory passes, which have no products.
std::optional<Prediction> predict_part(const WorkPart& part, const Where& where, Clocks clocks) {
  if (const auto* const kernel = std::get_if<TiledKernel>(&part)) {
    return predict_kernel(*kernel, where, clocks);
  }
  if (const auto* const products = std::get_if<LibraryProducts>(&part)) {
    return predict_products(*products, where, clocks);
  }
  if (const auto* const tensor = std::get_if<TensorKernel>(&part)) {
    return predict_tensor(*tensor, where.device, where.calibration, clocks);
  }
  return std::nullopt;
}

/// Kernels that run one after another: times add up, and shares are weighted by them. The longest decides the bound.
Prediction together(const std::vector<Prediction>& kernels) {
  if (kernels.empty()) {
    return {};
  }
  Prediction out = *std::max_element(kernels.begin(), kernels.end(),
                                     [](const Prediction& a, const Prediction& b) { return a.us() < b.us(); });
  if (kernels.size() == 1) {
    return out;
  }
  out.parts = {};
  out.blocks = out.rounds = 0;
  double busy_us = 0;
  double useful_us = 0;
  std::vector<std::string> times;
  for (const Prediction& kernel : kernels) {
    out.parts += kernel.parts;
    out.blocks += kernel.blocks;
    out.rounds += kernel.rounds;
    busy_us += kernel.busy_share * kernel.parts.main_us;
    useful_us += kernel.useful_share * kernel.parts.main_us;
    times.push_back(fmt::format("{:.1f}", kernel.us()));
  }
  out.busy_share = busy_us / out.parts.main_us;
  out.useful_share = useful_us / out.parts.main_us;
  out.why = fmt::format("{} parts of {} µs; the longest is {}", kernels.size(), fmt::join(times, " and "), out.why);
  return out;
}

Prediction predict_once(const WorkModel& work, const DeviceSpec& device, const Calibration& calibration,
                        Clocks clocks) {
  const Where where{device, calibration};
  std::vector<Prediction> kernels;
  for (const WorkPart& part : work.parts) {
    if (std::optional<Prediction> kernel = predict_part(part, where, clocks)) {
      kernels.push_back(*std::move(kernel));
    }
  }
  Prediction out = together(kernels);
  for (const WorkPart& part : work.parts) {
    if (const auto* const pass = std::get_if<MemoryPass>(&part)) {
      add_pass(*pass, where, out);
    }
  }
  if (out.parts.passes_us > out.parts.main_us) {
    out.bound = Bound::memory;
  }
  return out;
}

bool has_tensor_kernel(const WorkModel& work) {
  return std::any_of(work.parts.begin(), work.parts.end(),
                     [](const auto& part) { return std::holds_alternative<TensorKernel>(part); });
}

}  // namespace

Prediction predict(const WorkModel& work, const DeviceSpec& device, const Calibration& calibration, Clocks clocks) {
  Prediction out = predict_once(work, device, calibration, clocks);
  if (has_tensor_kernel(work)) {
    const Deviation deviation = deviation_of(
        device, out.us(), [&](const DeviceSpec& other) { return predict_once(work, other, calibration, clocks).us(); });
    out.interval = {out.us() - deviation.down, out.us() + deviation.up};
    out.why += fmt::format("; {:.1f} to {:.1f} µs between the ends of what is known", out.interval->low_us,
                           out.interval->high_us);
  }
  return out;
}

}  // namespace thresher::planner
