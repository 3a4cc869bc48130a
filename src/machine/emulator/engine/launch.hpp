#pragma once
/// Runs a kernel on the CPU, thread by thread, and checks it.
///
/// The kernel is a function written in the vocabulary of machine/; it is called once per GPU thread. Clusters run one
/// after the other, and the schedule interleaves the threads of a cluster.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "machine/emulator/engine/finding.hpp"
#include "machine/emulator/engine/global_memory.hpp"
#include "machine/emulator/engine/launch_shape.hpp"
#include "machine/emulator/engine/schedule.hpp"

namespace thresher::emulator {

/// How products accumulate in tensor memory.
enum class TensorSums : std::uint8_t {
  hardware,  ///< bit for bit as Blackwell's tensor cores (tensor_arithmetic.hpp)
  float32,   ///< one product after the other in ascending k, each sum rounded to float32, as wgmma's are here
};

struct Options {
  Schedule schedule;
  TensorSums tensor_sums = TensorSums::hardware;
  /// Assumes that a copy of scales is ordered after all that its thread issued before. PTX does not guarantee that, but
  /// many kernels rely on it.
  bool copies_in_order = false;
  std::uint32_t max_findings = 8;  ///< the launch ends at this number
  /// This many plain accesses by all threads, without a synchronisation or the end of a thread, count as an endless
  /// spin.
  std::uint64_t patience_accesses = 400'000'000;
  std::uint32_t stack_bytes = 96 * 1024;  ///< per thread
};

struct Statistics {
  std::uint64_t clusters = 0;
  std::uint64_t switches = 0;       ///< resumptions of a thread
  std::uint64_t completions = 0;    ///< pieces of asynchronous work
  std::uint64_t products = 0;       ///< wgmma instructions
  std::uint64_t product_flops = 0;  ///< 2·m·n·k of them
  std::uint64_t copied_bytes = 0;   ///< by TMA
};

struct Report {
  std::vector<Finding> findings;
  Statistics statistics;
  [[nodiscard]] bool clean() const { return findings.empty(); }
};

/// Runs every block once. A defect of the kernel is a finding, never an exception or a crash; so is a launch that the
/// driver would reject. Reentrant: several host threads may launch at once, with separate memory.
[[nodiscard]] Report launch(const LaunchShape& shape, const Options& options, const GlobalMemory& memory,
                            const std::function<void()>& kernel);

}  // namespace thresher::emulator
