#pragma once
/// Runs a kernel on the CPU, thread by thread, and checks it.
///
/// The kernel is a function written in the vocabulary of machine/; it is called once for each GPU thread. Clusters run
/// one after the other, the threads of a cluster interleaved as the schedule says.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "machine/emulator/engine/finding.hpp"
#include "machine/emulator/engine/global_memory.hpp"
#include "machine/emulator/engine/launch_shape.hpp"
#include "machine/emulator/engine/schedule.hpp"

namespace thresher::emulator {

/// How products into tensor memory are summed.
enum class TensorSums : std::uint8_t {
  hardware,  ///< bit for bit as a tensor core of Blackwell does it (tensor_arithmetic.hpp)
  float32,   ///< one product after the other in ascending k, each sum rounded to float32, as wgmma's are here
};

struct Options {
  Schedule schedule;
  TensorSums tensor_sums = TensorSums::hardware;
  /// Takes it for granted that a copy of scales comes after all that its thread issued before, which PTX does not
  /// promise and many kernels rely on.
  bool copies_in_order = false;
  std::uint32_t max_findings = 8;  ///< the launch ends when it has so many
  /// So many plain accesses by all threads without anyone synchronising or ending are taken for a spin without end.
  std::uint64_t patience_accesses = 400'000'000;
  std::uint32_t stack_bytes = 96 * 1024;  ///< for each thread
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

/// Runs every block once. Whatever the kernel does wrong is a finding, never an exception or a crash; a launch that the
/// driver would refuse is a finding too. Reentrant: several host threads may launch at once, on memory of their own.
[[nodiscard]] Report launch(const LaunchShape& shape, const Options& options, const GlobalMemory& memory,
                            const std::function<void()>& kernel);

}  // namespace thresher::emulator
