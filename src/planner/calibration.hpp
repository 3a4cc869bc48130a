#pragma once
/// The parameters of the prediction that no data sheet gives. `thresher calibrate` fits them to measurements.
#include <array>
#include <string_view>

namespace thresher::planner {

/// Defaults: fitted to early kernels on an H200 (docs/design/planner.md).
struct Calibration {
  double matrix_efficiency = 1.0;       ///< of the tensor cores' rate at the measured clock, in a steady main loop
  double library_efficiency = 0.835;    ///< the same for cuBLASLt
  double dram_efficiency = 0.885;       ///< of a long read's bandwidth
  double sm_dram_bytes_per_clock = 57;  ///< that one multiprocessor draws from memory at the most
  double issue_efficiency = 0.77;       ///< instructions issued per clock and scheduler under load
  double overlap_loss = 0.138;          ///< of the second longest resource, not hidden under the longest
  double turns_loss = 0.43;             ///< of the shorter of dequantization and products, where blocks alternate them
  double fast_loss = 0.64;              ///< the same for numerics `fast`, one block per multiprocessor
  double exact_instructions = 84;       ///< issued per warp to dequantize a 64×64 block of NVFP4 weights to 16 bits
  double fast_instructions = 67;        ///< the same to e4m3
  double load_latency_clocks = 1300;    ///< from a copy's issue until its reader sees the bytes at the barrier
  double fill_us = 1.72;                ///< block start, barriers, first stage
  double exchange_us = 0.35;            ///< of a cluster, in addition to its bytes
  double dependent_launch_us = 1.18;    ///< saved by PDL if a kernel waits for memory first
  double attention_fill_us = 1.3;       ///< attention: from the first launch to the first product, without the launch
  double softmax_loss = 0.52;           ///< of the shorter of attention's products and softmax, which stays visible
  double softmax_instructions = 8.5;    ///< per logit, in addition to its exponential
  bool operator==(const Calibration&) const = default;
};

struct CalibrationField {
  std::string_view name;
  double Calibration::* member;
  double low;  ///< the bounds of `calibrate`
  double high;
};

inline constexpr std::array calibration_fields{
    CalibrationField{"matrix_efficiency", &Calibration::matrix_efficiency, 0.5, 1.0},
    CalibrationField{"library_efficiency", &Calibration::library_efficiency, 0.4, 1.0},
    CalibrationField{"dram_efficiency", &Calibration::dram_efficiency, 0.4, 1.0},
    CalibrationField{"sm_dram_bytes_per_clock", &Calibration::sm_dram_bytes_per_clock, 20, 128},
    CalibrationField{"issue_efficiency", &Calibration::issue_efficiency, 0.3, 1.0},
    CalibrationField{"overlap_loss", &Calibration::overlap_loss, 0.0, 1.0},
    CalibrationField{"turns_loss", &Calibration::turns_loss, 0.0, 1.0},
    CalibrationField{"fast_loss", &Calibration::fast_loss, 0.0, 1.0},
    CalibrationField{"exact_instructions", &Calibration::exact_instructions, 30, 300},
    CalibrationField{"fast_instructions", &Calibration::fast_instructions, 20, 300},
    CalibrationField{"load_latency_clocks", &Calibration::load_latency_clocks, 400, 4000},
    CalibrationField{"fill_us", &Calibration::fill_us, 0.2, 4.0},
    CalibrationField{"exchange_us", &Calibration::exchange_us, 0.0, 4.0},
    CalibrationField{"dependent_launch_us", &Calibration::dependent_launch_us, 0.0, 4.0},
    CalibrationField{"attention_fill_us", &Calibration::attention_fill_us, 0.05, 4.0},
    CalibrationField{"softmax_loss", &Calibration::softmax_loss, 0.0, 1.0},
    CalibrationField{"softmax_instructions", &Calibration::softmax_instructions, 2, 40},
};

}  // namespace thresher::planner
