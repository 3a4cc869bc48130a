// Measures the emulator's multiplication rate with every check on: the dual GEMM's kernel, one block, on one core. The
// counter is wgmma's floating-point operations per second of CPU time.
#include <benchmark/benchmark.h>

#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "strategies/gemm/wgmma/fused/device/operation.hpp"

namespace {

using namespace thresher;
using namespace thresher::strategies::gemm::fused;

machine::TensorMap map_of(const std::vector<std::uint16_t>& data, std::uint64_t rows, std::uint64_t columns,
                          std::uint32_t box_rows) {
  machine::TensorMapDescription description;
  description.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data.data()));
  description.element = machine::ElementType::bf16;
  description.swizzle = machine::Swizzle::b128;
  description.rank = 2;
  description.extent[0] = columns;
  description.extent[1] = rows;
  description.stride_bytes[1] = columns * 2;
  description.box[0] = panel_k;
  description.box[1] = box_rows;
  return emulator::encode_tensor_map(description);
}

template <Config config>
void emulate(benchmark::State& state) {
  constexpr std::uint32_t m = block_tokens(config);
  constexpr std::uint32_t n = config.block_outputs;
  constexpr std::uint32_t k = 4096;
  const std::vector<std::uint16_t> a(std::size_t{m} * k, 0x3F80);
  const std::vector<std::uint16_t> b(std::size_t{n} * k, 0x3F80);
  std::vector<std::uint16_t> c(std::size_t{m} * n);
  emulator::GlobalMemory memory;
  memory.add("a", a.data(), a.size() * 2, emulator::Use::input);
  memory.add("b", b.data(), b.size() * 2, emulator::Use::input);
  memory.add("c", c.data(), c.size() * 2, emulator::Use::output);
  Params params{};
  params.tokens = map_of(a, m, k, m);
  params.gate = map_of(b, n, k, piece_rows(config));
  params.up = params.gate;
  params.c = {static_cast<machine::u64>(reinterpret_cast<std::uintptr_t>(c.data()))};
  params.c_row_stride = n;
  params.m = m;
  params.n = n;
  params.k = k;
  params.c_wide = 1;
  params.token_tiles = 1;
  params.output_tiles = 1;
  emulator::LaunchShape shape;
  shape.block = pipeline::threads(shape_of(config));
  shape.dynamic_shared_bytes = pipeline::shared_bytes(shape_of(config));
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(static_cast<std::uint64_t>(state.range(0)));
  std::uint64_t flops = 0;
  std::uint64_t switches = 0;
  for (auto _ : state) {
    const emulator::Report report = emulator::launch(shape, options, memory, [&] { kernel<config>(params); });
    if (!report.clean()) {
      state.SkipWithError(to_string(report.findings.front()).c_str());
      break;
    }
    flops += report.statistics.product_flops;
    switches += report.statistics.switches;
  }
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(flops), benchmark::Counter::kIsRate);
  state.counters["switches/s"] = benchmark::Counter(static_cast<double>(switches), benchmark::Counter::kIsRate);
  state.SetLabel(to_string(options.schedule));
}

constexpr Config wide{};
constexpr Config narrow{.block_outputs = 32};

BENCHMARK(emulate<wide>)->Name("m64n256k16")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK(emulate<narrow>)->Name("m64n64k16")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
