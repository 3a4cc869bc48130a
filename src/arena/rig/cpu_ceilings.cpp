#include "arena/rig/cpu_ceilings.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "arena/rig/cpu_clock.hpp"
#include "arena/rig/machine_info.hpp"
#include "arena/rig/memory.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {
namespace {

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Operations of a core per clock, with its widest matrix or vector unit; 0 unknown.
int operations_per_clock(const std::string& instructions) {
  const auto has = [&](const char* name) { return instructions.find(name) != std::string::npos; };
  if (has("amx_bf16")) {
    return 1024;  // a 16×16×32 product every 16 clocks
  }
  if (has("avx512_bf16")) {
    return 128;
  }
  if (has("avx512f")) {
    return 64;  // two 16-wide fused multiply-adds
  }
  return has("avx2") && has("fma") ? 32 : 0;
}

/// Memory in large pages where the system has them: allocating a gigabyte of small ones takes longer than reading it.
struct Unmap {
  std::size_t bytes;
  void operator()(std::uint64_t* memory) const { ::munmap(memory, bytes); }
};
using Pages = std::unique_ptr<std::uint64_t[], Unmap>;

Pages map_pages(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Pages(nullptr, Unmap{0});
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return Pages(static_cast<std::uint64_t*>(memory), Unmap{bytes});
}

/// All processors read a buffer larger than any cache; the best of three passes. 0 where memory is too small.
double read_bytes_per_s(const MachineInfo& machine) {
  const std::size_t wanted = std::max<std::size_t>(2 * machine.last_level_cache_bytes, std::size_t{256} << 20);
  const std::size_t bytes = std::min({wanted, std::size_t{1} << 30, HostMemory().available_bytes() / 4});
  const auto threads = static_cast<std::size_t>(std::max(machine.processors, 1));
  const std::size_t share = bytes / sizeof(std::uint64_t) / threads;
  const Pages data = map_pages(share * threads * sizeof(std::uint64_t));
  if (data == nullptr || share == 0) {
    return 0;
  }
  std::vector<std::uint64_t> sums(threads);
  const auto on_all = [&](const std::function<void(std::size_t, std::uint64_t*)>& body) {
    return seconds([&] {
      std::vector<std::jthread> workers;
      for (std::size_t t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] { body(t, data.get() + t * share); });
      }
    });
  };
  on_all([&](std::size_t, std::uint64_t* first) { std::fill(first, first + share, 1); });
  double best_s = std::numeric_limits<double>::max();
  for (int pass = 0; pass < 3; ++pass) {
    best_s = std::min(best_s, on_all([&](std::size_t t, const std::uint64_t* first) {
                        sums[t] += std::accumulate(first, first + share, std::uint64_t{0});
                      }));
  }
  const bool all_read = std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) == 3 * share * threads;
  return all_read ? static_cast<double>(share * threads * sizeof(std::uint64_t)) / best_s : 0;
}

/// A dual GEMM on bf16 operands, which need no conversion: 0.25 s to warm up, then the best of eight.
double product_operations_per_s() {
  const DualGemmProblem problem{512, 2048, 4096, Format::bf16, Format::bf16, Format::fp32, {}};
  std::vector<std::uint16_t> a(static_cast<std::size_t>(problem.m * problem.k), 0x3F9DU);
  std::vector<std::uint16_t> b(static_cast<std::size_t>(problem.n * problem.k), 0xBC1BU);
  std::vector<float> c(static_cast<std::size_t>(problem.m * problem.n));
  const Tensor weights = Tensor::contiguous(b.data(), Format::bf16, {problem.n, problem.k});
  const Tensor tokens = Tensor::contiguous(a.data(), Format::bf16, {problem.m, problem.k});
  const Tensor output = Tensor::contiguous(c.data(), Format::fp32, {problem.m, problem.n});
  const DualGemm gemm = plan(Device::cpu(), problem, weights, weights);
  HostMemory memory;
  const GuardedBuffer workspace(memory, gemm.workspace_bytes());
  const auto call = [&] { gemm.run({}, tokens, output, workspace.data()); };
  for (double warm_s = 0; warm_s < 0.25;) {
    warm_s += seconds(call);
  }
  double best_s = std::numeric_limits<double>::max();
  for (int pass = 0; pass < 8; ++pass) {
    best_s = std::min(best_s, seconds(call));
  }
  return 4.0 * static_cast<double>(problem.m * problem.n * problem.k) / best_s;
}

}  // namespace

Ceilings measure_cpu_ceilings() {
  const MachineInfo& machine = machine_info();
  const int per_clock = operations_per_clock(machine.instructions);
  Ceilings ceilings;
  const double clock_mhz = std::max(machine.clock_mhz, measure_cpu_clock_mhz());
  ceilings.peak_operations_per_s = per_clock * machine.processors * clock_mhz * 1e6;
  ceilings.sustained_operations_per_s = product_operations_per_s();
  ceilings.bytes_per_s = read_bytes_per_s(machine);
  ceilings.method = fmt::format(
      "matrix peak: {} operations a clock on {} processors at {:.0f} MHz, the higher of the reported and the measured "
      "clock; sustained: a bf16 dual GEMM of 512x2048x4096 after 0.25 s, best of 8; memory: the best of 3 passes of "
      "reading on all processors",
      per_clock, machine.processors, clock_mhz);
  return ceilings;
}

}  // namespace thresher::arena
