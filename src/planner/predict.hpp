#pragma once
/// How long a contestant takes and what bounds it, predicted from the device table.
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/attention_config.hpp"
#include "planner/calibration.hpp"
#include "planner/dual_gemm_config.hpp"
#include "strategies/work_model.hpp"

namespace thresher::planner {

/// What the time mostly is.
enum class Bound : std::uint8_t {
  matrix,  ///< the matrix unit
  memory,  ///< DRAM, L2 or the latency of loads
  shared,  ///< shared memory's bandwidth
  issue,   ///< instructions: conversions, exponentials
  waves,   ///< multiprocessors that stand idle beside or after the others
  launch,  ///< launch, first loads, epilogue: what does not grow with the problem
};

[[nodiscard]] std::string_view name(Bound bound) noexcept;

/// The parts add up to the time.
struct TimeParts {
  double launch_us = 0;
  double fill_us = 0;      ///< from the start of a block to its first product
  double main_us = 0;      ///< the main loop, or the library's products
  double exchange_us = 0;  ///< partial results of split K or split keys
  double epilogue_us = 0;  ///< the part of it that nothing hides
  double passes_us = 0;    ///< separate passes of two_pass: conversion and activation

  [[nodiscard]] double total_us() const noexcept {
    return launch_us + fill_us + main_us + exchange_us + epilogue_us + passes_us;
  }
};

struct Prediction {
  TimeParts parts;
  Bound bound = Bound::matrix;
  std::int64_t blocks = 0;
  std::int64_t rounds = 0;  ///< tiles that the busiest multiprocessor computes one after another
  double busy_share = 1;    ///< of multiprocessor time, over all rounds
  double useful_share = 1;  ///< of the matrix work; the rest is padding of tiles
  bool calibrated = false;  ///< on this kind of device
  std::string why;          ///< one sentence

  [[nodiscard]] double us() const noexcept { return parts.total_us(); }
  [[nodiscard]] double epilogue_share() const noexcept { return parts.epilogue_us / us(); }
};

/// What a planned call takes on `device`: the one predictor, which reads what the strategy says of its work and nothing
/// else. `work` has a kernel or products. One call in a graph of many, inputs cold.
[[nodiscard]] Prediction predict(const strategies::WorkModel& work, const DeviceSpec& device,
                                 const Calibration& calibration = {}, Clocks clocks = Clocks::burst);

/// `config` is feasible on `device`. One call in a graph of many, inputs cold.
[[nodiscard]] Prediction predict(const DualGemmProblem& problem, const DualGemmConfig& config, const DeviceSpec& device,
                                 const Calibration& calibration = {}, Clocks clocks = Clocks::burst);
[[nodiscard]] Prediction predict(const AttentionProblem& problem, const AttentionConfig& config,
                                 const DeviceSpec& device, const Calibration& calibration = {},
                                 Clocks clocks = Clocks::burst);

/// A kernel that reads and writes `bytes` of memory and does little else, in a row of kernels.
[[nodiscard]] double pass_us(double bytes, const DeviceSpec& device, const Calibration& calibration);

/// No kernel is faster: operations at the matrix unit's rate at the maximum clock, or the compulsory bytes.
[[nodiscard]] double floor_us(const DualGemmProblem& problem, MatrixType type, const DeviceSpec& device);

}  // namespace thresher::planner
