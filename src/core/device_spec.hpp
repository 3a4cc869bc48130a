#pragma once
/// The planner's knowledge of each GPU, so that it can judge and predict for GPUs that are not present.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/arch.hpp"
#include "core/tensor_unit.hpp"

namespace thresher {

/// The instructions that issue matrix products.
enum class MatrixUnit : std::uint8_t {
  none,     ///< this CPU
  wgmma,    ///< Hopper: a warpgroup of 128 threads, accumulators in registers
  tcgen05,  ///< Blackwell: one thread, accumulators in tensor memory, block-scaled FP4
};

/// Types that tensor cores multiply.
enum class MatrixType : std::uint8_t { bits16, fp8, nvfp4 };

[[nodiscard]] std::string_view name(MatrixType type) noexcept;

/// The clock of the multiprocessors during a matrix product.
enum class Clocks : std::uint8_t {
  burst,      ///< a cool card, the first milliseconds
  sustained,  ///< after a quarter of a second of back-to-back calls: limited by power
};

struct DeviceSpec {
  std::string_view name{};   ///< "H200", as on the command line
  Arch arch = Arch::sm_90a;  ///< the target of its machine code
  MatrixUnit matrix_unit = MatrixUnit::wgmma;

  int multiprocessors = 0;
  double max_clock_ghz = 0;
  double burst_clock_ghz = 0;
  double sustained_clock_ghz = 0;
  /// Multiply and add count as two, per clock and multiprocessor; 0 where the type does not exist.
  int ops_per_clock_16bit = 0;
  int ops_per_clock_fp8 = 0;
  int ops_per_clock_nvfp4 = 0;
  /// Exponentials, reciprocals and the like, per clock and multiprocessor.
  int special_per_clock = 0;

  double dram_bytes_per_us = 0;       ///< as measured by a long read, not as advertised
  double l2_bytes_per_clock_sm = 0;   ///< from L2 into one multiprocessor
  double shared_bytes_per_clock = 0;  ///< of one multiprocessor's shared memory
  std::int64_t l2_bytes = 0;

  int shared_bytes_per_block = 0;
  int shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int max_registers_per_thread = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int tensor_memory_columns = 0;  ///< of 128 lanes × 4 bytes; 0 without tensor memory

  int max_cluster = 0;  ///< that every card of the kind schedules
  /// Clusters of 2, 4 and 8 blocks that are resident at once with one block per multiprocessor.
  std::array<int, 3> resident_clusters{};

  double launch_us = 0;       ///< of one empty kernel in a graph of many
  TensorUnitSpec tensor{};    ///< for MatrixUnit::tcgen05; otherwise zeros
  bool calibrated = false;    ///< whether the prediction's parameters were fitted on this kind
  std::string_view source{};  ///< the source of the numbers

  [[nodiscard]] double clock_ghz(Clocks clocks) const noexcept {
    return clocks == Clocks::burst ? burst_clock_ghz : sustained_clock_ghz;
  }
  [[nodiscard]] int ops_per_clock(MatrixType type) const noexcept;
  /// Blocks that are resident at once in clusters of `cluster` blocks, with `blocks` of them on a multiprocessor.
  [[nodiscard]] int resident_blocks(int cluster, int blocks) const noexcept;
};

/// H100, H200, B200, GB300.
[[nodiscard]] std::span<const DeviceSpec> device_specs() noexcept;

/// This CPU, for which the table knows only that it is not a GPU: arch "cpu".
[[nodiscard]] const DeviceSpec& cpu_device_spec() noexcept;

/// The entry for `name` ("H200", "h200", or a system's "NVIDIA H200"); null when there is none.
[[nodiscard]] const DeviceSpec* find_device_spec(std::string_view name) noexcept;

/// The same; throws Error(invalid_argument) naming the known devices.
[[nodiscard]] const DeviceSpec& device_spec(std::string_view name);

/// The representative of an architecture where no GPU decides. It is the calibrated entry among those that run the
/// architecture's code, otherwise the first; null when there is none.
[[nodiscard]] const DeviceSpec* find_device_spec(Arch arch) noexcept;

/// The same for an architecture's name; throws Error(invalid_argument) naming the known architectures.
[[nodiscard]] const DeviceSpec& device_spec_of_arch(std::string_view arch);

}  // namespace thresher
