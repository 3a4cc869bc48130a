#pragma once
/// The device code of attention, and the names of its kernels.
#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "strategies/device_program.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::attention {

/// One program a kernel: a plan compiles only what it launches.
DeviceProgram simple_program(Format format, int head_dim);
/// Of head dimension `row_head_dim`.
DeviceProgram rows_program(Format format, Staging staging);
DeviceProgram pipelined_program(Format format, const pipeline::attention::StreamConfig& config, Logits logits);
DeviceProgram split_program(Format format, const pipeline::attention::SplitConfig& config, Logits logits);

}  // namespace thresher::strategies::attention
