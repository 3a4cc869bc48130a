#include "core/device_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

#include "thresher/error.hpp"

namespace thresher {
namespace {

// Compute capability 9.0: technical specifications of the CUDA C++ Programming Guide. Tensor core and special function
// rates: Hopper architecture white paper, 989 TFLOP/s of 16-bit products on 132 multiprocessors at 1.83 GHz.
constexpr DeviceSpec hopper() {
  DeviceSpec spec;
  spec.arch = Arch::sm_90a;
  spec.matrix_unit = MatrixUnit::wgmma;
  spec.multiprocessors = 132;
  spec.max_clock_ghz = 1.98;
  spec.ops_per_clock_16bit = 4096;
  spec.ops_per_clock_fp8 = 8192;
  spec.special_per_clock = 16;
  spec.l2_bytes_per_clock_sm = 80;  // 75 were measured while the tensor cores ran at full rate
  spec.shared_bytes_per_clock = 128;
  spec.shared_bytes_per_block = 227 * 1024;
  spec.shared_bytes_per_multiprocessor = 228 * 1024;
  spec.registers_per_multiprocessor = 65536;
  spec.max_registers_per_thread = 255;
  spec.max_threads_per_block = 1024;
  spec.max_threads_per_multiprocessor = 2048;
  spec.max_cluster = 8;
  return spec;
}

// Measured on an H200 (November 2026, driver and toolkit of CUDA 13): a long DRAM read, an empty kernel in a graph,
// resident clusters from the occupancy query. The burst clock is what `thresher profile` reads inside kernels (1.71 to
// 1.76). The sustained clock is 1.11 times slower, as in long matrix products.
constexpr DeviceSpec h200() {
  DeviceSpec spec = hopper();
  spec.name = "H200";
  spec.burst_clock_ghz = 1.73;
  spec.sustained_clock_ghz = 1.56;
  spec.dram_bytes_per_us = 4.30e6;
  spec.l2_bytes = std::int64_t{60} << 20;
  spec.resident_clusters = {66, 30, 15};
  spec.launch_us = 1.16;
  spec.calibrated = true;
  spec.source = "measured on an H200: clocks, DRAM, launch, clusters; NVIDIA's Hopper white paper: rates a clock";
  return spec;
}

// The H200's multiprocessors with 3.35 TB/s of HBM3 (data sheet), of which the same reachable share is assumed.
constexpr DeviceSpec h100() {
  DeviceSpec spec = h200();
  spec.name = "H100";
  spec.dram_bytes_per_us = 3.00e6;
  spec.l2_bytes = std::int64_t{50} << 20;
  spec.calibrated = false;
  spec.source = "NVIDIA's H100 SXM data sheet and Hopper white paper; clocks and launch as measured on an H200";
  return spec;
}

// Published measurements of B200s; we have measured none. "SemiAnalysis" is SemiAnalysisAI/microbench-blackwell,
// "gau-nernst" is gau-nernst/gpu-mode-kernels, both with their tables.
constexpr TensorUnitSpec b200_tensor() {
  return {
      .clock_ghz = {1.85, 1.5, 1.965, Trust::derived,
                    "SemiAnalysis' tests ran at 1.92 and more, the contest's formula takes 1.5; the data sheet's boost "
                    "is 1.965"},
      .nvfp4_operations_per_clock = {32768, 26100, 32768, Trust::derived,
                                     "CUTLASS's table of tcgen05 rates; lowest: gau-nernst's ceiling of 5.8 PFLOP/s at "
                                     "1.5 GHz"},
      .operand_bytes_per_clock = {128, 120, 128, Trust::published,
                                  "SemiAnalysis: products of M = 128 and 256 take (rows + columns)/4 clocks where N is "
                                  "small"},
      .pair_overhead_clocks = {3, 0, 6, Trust::published, "SemiAnalysis: products of a pair, M = 256, N = 64 to 112"},
      .multiprocessor_bytes_per_us = {159e3, 120e3, 159e3, Trust::derived,
                                      "SemiAnalysis: one tile of CUTLASS, 82 bytes a clock at best, 120 to 134 GB/s "
                                      "with wide tiles"},
      .card_bytes_per_us = {16.9e6, 13.7e6, 16.9e6, Trust::published,
                            "SemiAnalysis: 16.9 TB/s delivered at most, 13.7 where pairs share and DRAM bounds"},
      .dram_bytes_per_us = {6.6e6, 5.9e6, 7.25e6, Trust::published,
                            "SemiAnalysis: 7.2 to 7.3 TB/s with 64 KiB in flight a multiprocessor; gau-nernst's "
                            "kernels reach 5.9"},
      .load_latency_us =
          {0.84, 0.67, 1.06, Trust::derived,
           "SemiAnalysis: 16 and 32 KiB in flight a multiprocessor reach 3.6 and 5.6 TB/s; boxes of up to "
           "8 KiB take 0.72 to 1.06 us"},
      .tensor_memory_bytes_per_clock = {512, 256, 512, Trust::assumed, "a column of 128 lanes a clock"},
      .epilogue_factor =
          {1.0, 0.4, 1.2, Trust::assumed,
           "instructions and stores cost what they do on an H200; the contest's kernels leave about 1 us"},
      .launch_us = {1.2, 0.8, 1.5, Trust::assumed, "1.16 were measured on an H200"},
      .prologue_us = {1.0, 0.6, 1.8, Trust::assumed,
                      "one load's latency, and 2.05 us, a step of the contest's timer, that gau-nernst saved by "
                      "allocating beside the first loads"},
  };
}

// Data sheet: 2.25 / 4.5 / 9 PFLOP/s dense of 16-bit, FP8 and FP4 products, 8 TB/s, 148 multiprocessors; PTX ISA:
// 512 columns of tensor memory. Clocks under load and launch cost are assumptions from Hopper's.
constexpr DeviceSpec b200() {
  DeviceSpec spec = hopper();
  spec.name = "B200";
  spec.arch = Arch::sm_100a;
  spec.matrix_unit = MatrixUnit::tcgen05;
  spec.multiprocessors = 148;
  spec.max_clock_ghz = 1.965;
  spec.burst_clock_ghz = 1.85;
  spec.sustained_clock_ghz = 1.60;
  spec.ops_per_clock_16bit = 8192;
  spec.ops_per_clock_fp8 = 16384;
  spec.ops_per_clock_nvfp4 = 32768;
  spec.dram_bytes_per_us = 7.2e6;
  spec.l2_bytes = std::int64_t{126} << 20;
  spec.tensor_memory_columns = 512;
  spec.resident_clusters = {74, 36, 18};
  spec.launch_us = 1.2;
  spec.tensor = b200_tensor();
  spec.calibrated = false;
  spec.source = "NVIDIA's B200 data sheet and the PTX ISA; clocks under load, clusters and launch are assumed";
  return spec;
}

// The same multiprocessors as far as is known. The full FP4 rate needs products of 96 along K, which an sm_100f program
// does not have.
constexpr TensorUnitSpec gb300_tensor() {
  TensorUnitSpec tensor = b200_tensor();
  tensor.clock_ghz = {1.85, 1.5, 1.92, Trust::assumed, "as B200; NVIDIA's boost clock of Blackwell Ultra"};
  tensor.nvfp4_operations_per_clock = {32768, 26100, 49152, Trust::assumed,
                                       "B200's with products of 64 along K; 1.5 times that is NVIDIA's rate with 96"};
  for (Constant TensorUnitSpec::* const as_b200 :
       {&TensorUnitSpec::operand_bytes_per_clock, &TensorUnitSpec::pair_overhead_clocks,
        &TensorUnitSpec::multiprocessor_bytes_per_us, &TensorUnitSpec::card_bytes_per_us,
        &TensorUnitSpec::dram_bytes_per_us, &TensorUnitSpec::load_latency_us}) {
    (tensor.*as_b200).trust = Trust::assumed;
  }
  return tensor;
}

// NVIDIA's description of Blackwell Ultra: up to 160 multiprocessors; dense 15 PFLOP/s of FP4, 2.5 of 16-bit and 5 of
// FP8; 10.7 T exponentials a second (twice B200's per multiprocessor).
constexpr DeviceSpec gb300() {
  DeviceSpec spec = b200();
  spec.name = "GB300";
  spec.arch = Arch::sm_103a;
  spec.multiprocessors = 160;
  spec.max_clock_ghz = 1.92;
  spec.burst_clock_ghz = 1.85;
  spec.sustained_clock_ghz = 1.65;
  spec.ops_per_clock_nvfp4 = 49152;
  spec.special_per_clock = 32;
  spec.dram_bytes_per_us = 7.2e6;
  spec.resident_clusters = {80, 38, 19};
  spec.tensor = gb300_tensor();
  spec.source =
      "NVIDIA's description of Blackwell Ultra (up to 160 multiprocessors); clocks under load, clusters and launch are "
      "assumed";
  return spec;
}

constexpr std::array specs{h100(), h200(), b200(), gb300()};

}  // namespace

std::string_view name(MatrixType type) noexcept {
  switch (type) {
    case MatrixType::bits16: return "16-bit";
    case MatrixType::fp8: return "fp8";
    case MatrixType::nvfp4: return "nvfp4";
  }
  return "?";
}

std::string_view name(Trust trust) noexcept {
  switch (trust) {
    case Trust::published: return "published";
    case Trust::derived: return "derived";
    case Trust::assumed: return "assumed";
  }
  return "?";
}

int DeviceSpec::ops_per_clock(MatrixType type) const noexcept {
  switch (type) {
    case MatrixType::bits16: return ops_per_clock_16bit;
    case MatrixType::fp8: return ops_per_clock_fp8;
    case MatrixType::nvfp4: return ops_per_clock_nvfp4;
  }
  return 0;
}

int DeviceSpec::resident_blocks(int cluster, int blocks) const noexcept {
  if (cluster <= 1) {
    return multiprocessors * blocks;
  }
  // Clusters of another size leave as many multiprocessors idle as the next larger one that is known.
  const std::size_t index = cluster <= 2 ? 0 : cluster <= 4 ? 1 : 2;
  const int used = resident_clusters[index] * (2 << index);
  return used / cluster * cluster * blocks;
}

std::span<const DeviceSpec> device_specs() noexcept { return specs; }

const DeviceSpec& cpu_device_spec() noexcept {
  static constexpr DeviceSpec spec = [] {
    DeviceSpec cpu;
    cpu.name = "CPU";
    cpu.arch = Arch::cpu;
    cpu.matrix_unit = MatrixUnit::none;
    return cpu;
  }();
  return spec;
}

namespace {

/// Whether `word` is a whole word of `text`: "H200" is in "NVIDIA H200 NVL" but not in "NVIDIA GH200".
bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

const DeviceSpec* find_device_spec(std::string_view name) noexcept {
  const DeviceSpec* found = nullptr;
  for (const DeviceSpec& spec : specs) {
    if (std::ranges::equal(name, spec.name, {}, [](unsigned char letter) { return std::toupper(letter); })) {
      return &spec;
    }
    if (has_word(name, spec.name)) {
      found = &spec;
    }
  }
  return found;
}

const DeviceSpec& device_spec(std::string_view name) {
  if (const DeviceSpec* spec = find_device_spec(name)) {
    return *spec;
  }
  std::string known;
  for (const DeviceSpec& spec : specs) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", spec.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("device \"{}\" is not in the planner's table: use one of {}", name, known));
}

const DeviceSpec* find_device_spec(Arch arch) noexcept {
  const DeviceSpec* found = nullptr;
  for (const DeviceSpec& spec : specs) {
    if (runs_on(arch, spec.arch) && (found == nullptr || (spec.calibrated && !found->calibrated))) {
      found = &spec;
    }
  }
  return found;
}

const DeviceSpec& device_spec_of_arch(std::string_view arch) {
  const std::optional<Arch> parsed = parse_arch(arch);
  if (const DeviceSpec* const spec = parsed ? find_device_spec(*parsed) : nullptr) {
    return *spec;
  }
  std::string known;
  for (const Arch one : all_archs) {
    if (find_device_spec(one) != nullptr) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name(one));
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("no device of the planner's table has the architecture \"{}\": use one of {}", arch, known));
}

}  // namespace thresher
