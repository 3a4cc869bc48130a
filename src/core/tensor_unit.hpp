#pragma once
/// The limits of kernels that accumulate in tensor memory (MatrixUnit::tcgen05), for GPUs that are not present. Each
/// number has an interval, a source and a level of trust.
#include <array>
#include <cstdint>
#include <string_view>

namespace thresher {

enum class Trust : std::uint8_t {
  published,  ///< measured on such a GPU by others, who document how
  derived,    ///< computed from others' measurements, of which it is one explanation
  assumed,    ///< taken over from another GPU, or from how such hardware is built
};

[[nodiscard]] std::string_view name(Trust trust) noexcept;

/// low <= value <= high.
struct Constant {
  double value = 0;
  double low = 0;
  double high = 0;
  Trust trust = Trust::assumed;
  std::string_view source{};
};

struct TensorUnitSpec {
  Constant clock_ghz{};                      ///< of the multiprocessors in the first milliseconds
  Constant nvfp4_operations_per_clock{};     ///< per multiprocessor, products of 64 along K
  Constant operand_bytes_per_clock{};        ///< that tensor cores read from one multiprocessor's shared memory
  Constant pair_overhead_clocks{};           ///< of a product of a CTA pair that is bound by reading operands
  Constant multiprocessor_bytes_per_us{};    ///< from L2 into one multiprocessor's shared memory
  Constant card_bytes_per_us{};              ///< from L2 into all of them together
  Constant dram_bytes_per_us{};              ///< as kernels reach
  Constant load_latency_us{};                ///< of one TMA box, under load
  Constant tensor_memory_bytes_per_clock{};  ///< that threads load from one multiprocessor's tensor memory
  Constant epilogue_factor{};  ///< of the time to write outputs after the accumulators are loaded, as on Hopper
  Constant launch_us{};        ///< of one empty kernel in a graph of many
  Constant prologue_us{};  ///< barriers, the pair's cluster barrier, allocation of tensor memory and the first loads
};

struct TensorUnitField {
  std::string_view name;
  std::string_view unit;
  Constant TensorUnitSpec::* member;
};

inline constexpr std::array tensor_unit_fields{
    TensorUnitField{"clock", "GHz", &TensorUnitSpec::clock_ghz},
    TensorUnitField{"NVFP4 products", "operations/clock", &TensorUnitSpec::nvfp4_operations_per_clock},
    TensorUnitField{"operands from shared memory", "bytes/clock", &TensorUnitSpec::operand_bytes_per_clock},
    TensorUnitField{"overhead of a pair's product", "clocks", &TensorUnitSpec::pair_overhead_clocks},
    TensorUnitField{"L2 to one shared memory", "bytes/us", &TensorUnitSpec::multiprocessor_bytes_per_us},
    TensorUnitField{"L2 to all shared memory", "bytes/us", &TensorUnitSpec::card_bytes_per_us},
    TensorUnitField{"DRAM", "bytes/us", &TensorUnitSpec::dram_bytes_per_us},
    TensorUnitField{"latency of a load", "us", &TensorUnitSpec::load_latency_us},
    TensorUnitField{"tensor memory", "bytes/clock", &TensorUnitSpec::tensor_memory_bytes_per_clock},
    TensorUnitField{"epilogue as on Hopper", "times", &TensorUnitSpec::epilogue_factor},
    TensorUnitField{"launch", "us", &TensorUnitSpec::launch_us},
    TensorUnitField{"prologue", "us", &TensorUnitSpec::prologue_us},
};

}  // namespace thresher
