// Checks and times many configurations of the packed NVFP4 dual GEMM side by side on one GPU.
//
// usage: bench_nvfp4_variants --warm                 compiles every kernel into the cache; needs no GPU
//        bench_nvfp4_variants [MxNxK ...]            a table a problem; all problems when none is named
//
// Graphs of 20 calls rotate over input sets of more than three times the L2 cache; graphs take turns. "burst": the GPU
// rests before each sample, "hot": none. What a variant is compared with is the first one that reads the same tokens.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "kernels/nvfp4/choose.hpp"
#include "kernels/nvfp4/host/launches.hpp"
#include "kernels/nvfp4/program.hpp"
#include "ops/cuda_nvfp4.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"

namespace {

using namespace thresher;
namespace device_code = kernels::nvfp4;
using device_code::Config;
using device_code::Overlap;
using device_code::Path;

constexpr int calls = 20;
constexpr int burst_rounds = 11;
constexpr int hot_rounds = 11;
constexpr double l2_bytes = 60e6;

/// Which tokens a call reads, and whether it prepares them itself.
enum class Tokens { prepared, fp16, nvfp4 };
const char* name_of(Tokens tokens) {
  return tokens == Tokens::prepared ? "prepared" : tokens == Tokens::fp16 ? "fp16" : "nvfp4";
}

struct Variant {
  Config config;
  Tokens tokens;
};

Config config(Path path, int warpgroups, int tokens, int per_slot, int stages, int split = 1, int loader = 0,
              int math = 0, Overlap overlap = Overlap::step, int resident = 1) {
  return {.path = path,
          .math_warpgroups = warpgroups,
          .block_tokens = tokens,
          .blocks_per_slot = per_slot,
          .stages = stages,
          .split_k = split,
          .blocks_resident = resident,
          .overlap = overlap,
          .loader_registers = loader,
          .math_registers = math};
}

std::vector<Config> exact_configs(const device_code::Extents& e) {
  std::vector<Config> all;
  for (const auto& choice : device_code::rank(Path::exact, e.m, e.n, e.k, 132)) {
    if (all.size() < 3) {
      all.push_back(choice.config);
    }
  }
  if (e.m <= 64) {
    const int t = all.front().block_tokens;
    all.push_back(config(Path::exact, 2, t, 2, t <= 16 ? 8 : t == 32 ? 5 : 4, 1, 0, 0, Overlap::none, 2));
    if (t == 64) {
      all.push_back(config(Path::exact, 4, t, 2, 6, 1, 0, 0, Overlap::step, 1));
    }
    return all;
  }
  for (const int split : {1, 2}) {
    all.push_back(config(Path::exact, 2, 128, 2, 5, split));  // registers left for the kernel that prepares tokens
  }
  return all;
}

std::vector<Config> fast_configs(const device_code::Extents& e) {
  std::vector<Config> all;
  if (e.m <= 64) {
    const int t = e.m <= 8 ? 8 : e.m <= 16 ? 16 : e.m <= 32 ? 32 : 64;
    all.push_back(device_code::rank(Path::fast, e.m, e.n, e.k, 132).front().config);
    all.push_back(config(Path::fast, 2, t, 1, t == 8 ? 10 : t == 64 ? 6 : 8, 1, 0, 0, Overlap::none, 2));
    all.push_back(config(Path::fast, 2, t, 1, t == 8 ? 10 : t == 64 ? 6 : 8, 1, 0, 0, Overlap::step, 2));
    all.push_back(config(Path::fast, 4, t, 1, 8, 1, 0, 0, Overlap::step, 1));
    all.push_back(config(Path::fast, 1, t, 2, t == 64 ? 2 : 4, 1, 0, 0, Overlap::none, 4));
    return all;
  }
  for (const int split : {1, 2}) {
    all.push_back(config(Path::fast, 2, 128, 1, 8, split));
    all.push_back(config(Path::fast, 2, 128, 2, 4, split));
    all.push_back(config(Path::fast, 3, 128, 1, 7, split));
    if (e.m > 128) {
      all.push_back(config(Path::fast, 2, 256, 1, 5, split, 24, 240));
    }
  }
  all.push_back(config(Path::fast, 2, 128, 1, 8, 1, 0, 0, Overlap::block));
  all.push_back(config(Path::fast, 2, 128, 1, 8, 1, 40, 216));
  all.push_back(config(Path::fast, 3, 128, 1, 7, 1, 24, 160));
  return all;
}

std::vector<Variant> variants(const device_code::Extents& e) {
  std::vector<Variant> all;
  const auto add = [&](const Config& c, Tokens tokens) {
    if (device_code::shared_bytes(c) * c.blocks_resident + 1024 * c.blocks_resident <= 228 * 1024) {
      all.push_back({c, tokens});
    }
  };
  for (const Config& c : exact_configs(e)) {
    add(c, Tokens::prepared);
    add(c, Tokens::nvfp4);
  }
  for (const Config& c : fast_configs(e)) {
    add(c, Tokens::prepared);
    add(c, Tokens::fp16);
    add(c, Tokens::nvfp4);
  }
  return all;
}

std::string words(const Variant& v) {
  const Config& c = v.config;
  return fmt::format("{:<5} {:<8} {}x{}x{} st{} split{} {}{}{}", c.path == Path::fast ? "fast" : "exact",
                     name_of(v.tokens), 64 * c.math_warpgroups, c.block_tokens,
                     c.blocks_per_slot * static_cast<int>(device_code::weight_block_k(c)), c.stages, c.split_k,
                     c.overlap == Overlap::none   ? "none"
                     : c.overlap == Overlap::step ? "step"
                                                  : "block",
                     c.math_registers > 0 ? fmt::format(" regs{}/{}", c.math_registers, c.loader_registers) : "",
                     c.blocks_resident > 1 ? fmt::format(" x{}", c.blocks_resident) : "");
}

/// A random NVFP4 matrix, about normal, on the host.
struct Nvfp4 {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;
  std::int64_t rows;
  std::int64_t k;

  Nvfp4(std::int64_t r, std::int64_t columns, std::uint64_t seed)
      : codes(static_cast<std::size_t>(r * columns / 2)),
        scales(static_cast<std::size_t>(r * columns / 16)),
        rows(r),
        k(columns) {
    std::uint64_t x = seed * 0x9E3779B97F4A7C15U + 88172645463325252U;
    const auto next = [&x] {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      return x;
    };
    // Magnitudes 0…7 as a normal variable leaves them when a block's largest is near 6.
    constexpr std::uint8_t likely[32] = {0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4,
                                         4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 0};
    for (std::uint8_t& byte : codes) {
      const std::uint64_t bits = next() >> 20;
      byte = static_cast<std::uint8_t>(likely[bits & 31] | (bits >> 5 & 8) | likely[bits >> 10 & 31] << 4 |
                                       (bits >> 15 & 128));
    }
    for (std::uint8_t& scale : scales) {
      scale = formats::float_to_e4m3(0.25F + 0.5F * static_cast<float>(next() >> 40) / 16777216.0F);
    }
  }
  [[nodiscard]] Tensor view() { return Tensor::nvfp4(codes.data(), scales.data(), rows, k); }
  /// Some rows as a matrix of their own.
  [[nodiscard]] Nvfp4 gathered(const std::vector<std::int64_t>& which) const {
    Nvfp4 out(static_cast<std::int64_t>(which.size()), k, 1);
    for (std::size_t i = 0; i < which.size(); ++i) {
      std::copy_n(codes.begin() + which[i] * k / 2, k / 2, out.codes.begin() + static_cast<std::int64_t>(i) * k / 2);
      std::copy_n(scales.begin() + which[i] * k / 16, k / 16,
                  out.scales.begin() + static_cast<std::int64_t>(i) * k / 16);
    }
    return out;
  }
};

runtime::DeviceBuffer on_gpu(const void* data, std::size_t bytes) {
  runtime::DeviceBuffer buffer(0, bytes);
  runtime::copy(buffer.data(), data, bytes, 0);
  return buffer;
}

struct GpuNvfp4 {
  runtime::DeviceBuffer codes;
  runtime::DeviceBuffer scales;
  Tensor view;
  explicit GpuNvfp4(Nvfp4& host)
      : codes(on_gpu(host.codes.data(), host.codes.size())), scales(on_gpu(host.scales.data(), host.scales.size())) {
    view = Tensor::nvfp4(codes.data(), static_cast<const std::uint8_t*>(scales.data()), host.rows, host.k, nullptr,
                         ScaleLayout::row_major, {DeviceKind::cuda, 0});
  }
};

/// What is compared: some outputs and their definition, in both numerics.
struct Samples {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> outputs;
  std::vector<double> exact;
  std::vector<double> fast;
};

std::vector<std::int64_t> some(std::int64_t count, std::int64_t limit, std::mt19937& random) {
  std::vector<std::int64_t> all{0, limit - 1};
  while (static_cast<std::int64_t>(all.size()) < std::min(count, limit)) {
    all.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit)));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

constexpr float weight_scale = 0x1p-6F;

Samples sampled(const device_code::Extents& e, const Nvfp4& a, const Nvfp4& gate, const Nvfp4& up) {
  std::mt19937 random(1);
  Samples samples{some(40, e.m, random), some(120, e.n, random), {}, {}};
  Nvfp4 some_a = a.gathered(samples.tokens);
  Nvfp4 some_gate = gate.gathered(samples.outputs);
  Nvfp4 some_up = up.gathered(samples.outputs);
  DualGemmProblem problem{.m = some_a.rows, .n = some_gate.rows, .k = e.k, .a = Format::nvfp4, .b = Format::nvfp4};
  Tensor gate_view = some_gate.view();
  Tensor up_view = some_up.view();
  gate_view.global_scale = up_view.global_scale = &weight_scale;
  const reference::Region region = reference::whole(problem);
  samples.exact = reference::dual_gemm_fast(problem, some_a.view(), gate_view, up_view, region).value;
  problem.a = problem.b = Format::fp32;
  samples.fast =
      reference::dual_gemm_fast(problem, reference::fold_tokens(some_a.view()).view,
                                reference::fold_weights(gate_view).view, reference::fold_weights(up_view).view, region)
          .value;
  return samples;
}

/// Relative error of the samples' norm; Inf when one is not finite.
double error_of(const Samples& samples, const std::vector<double>& expected, const std::vector<std::uint16_t>& c,
                std::int64_t n) {
  double squared_error = 0;
  double squared = 0;
  std::size_t i = 0;
  for (const std::int64_t token : samples.tokens) {
    for (const std::int64_t output : samples.outputs) {
      const double value = formats::fp16_to_float(c[static_cast<std::size_t>(token * n + output)]);
      squared_error += (value - expected[i]) * (value - expected[i]);
      squared += expected[i] * expected[i];
      ++i;
    }
  }
  const double error = std::sqrt(squared_error / squared);
  return std::isfinite(error) ? error : HUGE_VAL;
}

/// One input set on the GPU.
struct Set {
  std::unique_ptr<PackedWeights> exact;
  std::unique_ptr<PackedWeights> fast;
  std::unique_ptr<GpuNvfp4> a;
  runtime::DeviceBuffer a16;     ///< exact values, rows without gaps
  runtime::DeviceBuffer folded;  ///< as fold_tokens leaves them
  runtime::DeviceBuffer workspace;
  runtime::DeviceBuffer c;
};

const ops::CudaNvfp4Weights& weights_of(const Set& set, Path path) {
  return dynamic_cast<const ops::CudaNvfp4Weights&>((path == Path::fast ? *set.fast : *set.exact).storage());
}

runtime::Kernel preparation(const std::string& name) {
  return ops::load_program(0, device_code::preparation_program()).kernel(name);
}

template <class T>
machine::Global<T> global(const void* pointer) {
  return {reinterpret_cast<std::uintptr_t>(pointer)};
}

/// Writes prepared tokens to `out`.
void prepare(const device_code::Extents& e, Path path, const Tensor& a, void* out, Stream stream) {
  runtime::LaunchConfig launch;
  launch.dependent_launch = true;
  launch.stream = stream;
  if (path == Path::fast) {
    device_code::FoldTokensParams params = device_code::fold_params(a);
    params.out = global<machine::u8>(out);
    params.factors =
        global<float>(static_cast<std::uint8_t*>(out) + device_code::prepared_tokens(path, e.m, e.k).factors_offset);
    launch.grid.x = static_cast<unsigned>(e.m);
    launch.block.x = device_code::fold_threads;
    launch.dynamic_shared_bytes = device_code::fold_shared_bytes;
    preparation(device_code::fold_tokens_kernel_name(device_code::token_format(a.format))).launch_with(launch, params);
    return;
  }
  device_code::WidenTokensParams params = device_code::widen_params(a);
  params.out = global<machine::u8>(out);
  launch.grid.x = device_code::widen_blocks(a);
  launch.block.x = 128;
  preparation(device_code::widen_tokens_kernel_name()).launch_with(launch, params);
}

Tensor fp16_tokens(const device_code::Extents& e, const Set& set) {
  return Tensor::contiguous(set.a16.data(), Format::fp16, {e.m, e.k}, {DeviceKind::cuda, 0});
}

class Problem {
 public:
  explicit Problem(const device_code::Extents& e)
      : e_(e),
        a_(e.m, e.k, 1),
        gate_(e.n, e.k, 2),
        up_(e.n, e.k, 3),
        samples_(sampled(e, a_, gate_, up_)),
        weight_scale_(on_gpu(&weight_scale, sizeof weight_scale)) {
    GpuNvfp4 gate(gate_);
    GpuNvfp4 up(up_);
    gate.view.global_scale = up.view.global_scale = static_cast<const float*>(weight_scale_.data());
    const double bytes = static_cast<double>(e.n) * static_cast<double>(e.k) * 9 / 8;
    const int count = std::clamp(static_cast<int>(3 * l2_bytes / bytes) + 2, 2, 24);
    const runtime::OwnedStream stream(0);
    for (int i = 0; i < count; ++i) {
      Set set;
      const Device device = Device::cuda();
      set.exact = std::make_unique<PackedWeights>(pack(device, gate.view, up.view));
      set.fast = std::make_unique<PackedWeights>(pack(device, gate.view, up.view, {.numerics = Numerics::fast}));
      set.a = std::make_unique<GpuNvfp4>(a_);
      set.a16 = runtime::DeviceBuffer(0, static_cast<std::size_t>(e.m * e.k * 2));
      set.folded =
          runtime::DeviceBuffer(0, static_cast<std::size_t>(device_code::prepared_tokens(Path::fast, e.m, e.k).bytes));
      set.workspace = runtime::DeviceBuffer(0, static_cast<std::size_t>(e.m * (e.k + 128) * 2 + e.m * 4 + 256));
      set.c = runtime::DeviceBuffer(0, static_cast<std::size_t>(e.m * e.n * 2));
      prepare(e, Path::exact, set.a->view, set.a16.data(), stream.get());
      prepare(e, Path::fast, set.a->view, set.folded.data(), stream.get());
      sets_.push_back(std::move(set));
    }
    stream.synchronize();
  }

  [[nodiscard]] std::size_t sets() const { return sets_.size(); }

  void call(const Variant& v, std::size_t i, Stream stream) const {
    const Set& set = sets_[i % sets_.size()];
    const bool fast = v.config.path == Path::fast;
    const device_code::PreparedTokens layout = device_code::prepared_tokens(v.config.path, e_.m, e_.k);
    const void* tokens = fast ? set.folded.data() : set.a16.data();
    if (v.tokens != Tokens::prepared) {
      prepare(e_, v.config.path, v.tokens == Tokens::nvfp4 ? set.a->view : fp16_tokens(e_, set), set.workspace.data(),
              stream);
      tokens = set.workspace.data();
    }
    const ops::CudaNvfp4Weights& weights = weights_of(set, v.config.path);
    device_code::Params params = device_code::scalars(v.config, e_, e_.n, Activation{});
    params.tokens = ops::encode_for_gpu(
        device_code::tokens_map(v.config, e_, reinterpret_cast<std::uintptr_t>(tokens), layout.row_bytes), 0);
    params.weights = global<machine::u8>(weights.packed());
    params.c = global<machine::u8>(set.c.data());
    params.gate_scale = params.up_scale = global<float>(weight_scale_.data());
    if (fast) {
      params.row_factors =
          global<float>(static_cast<const std::uint8_t*>(weights.packed()) + device_code::factors_offset(e_.n, e_.k));
      params.token_factors = global<float>(static_cast<const std::uint8_t*>(tokens) + layout.factors_offset);
    }
    runtime::LaunchConfig launch;
    launch.grid.x = device_code::blocks(v.config, params);
    launch.block.x = static_cast<unsigned>(device_code::launch_threads(v.config));
    launch.cluster.x = static_cast<unsigned>(v.config.split_k);
    launch.dynamic_shared_bytes = static_cast<unsigned>(device_code::shared_bytes(v.config));
    launch.dependent_launch = true;
    launch.stream = stream;
    kernel(v.config).launch_with(launch, params);
  }

  [[nodiscard]] double error(const Variant& v) const {
    const runtime::OwnedStream stream(0);
    runtime::fill_async(sets_[0].c.data(), 0xFF, sets_[0].c.bytes(), stream.get(), 0);
    call(v, 0, stream.get());
    stream.synchronize();
    std::vector<std::uint16_t> c(sets_[0].c.bytes() / 2);
    runtime::copy(c.data(), sets_[0].c.data(), sets_[0].c.bytes(), 0);
    const auto unwritten = std::count(c.begin(), c.end(), std::uint16_t{0xFFFF});
    return unwritten > 0 ? HUGE_VAL
                         : error_of(samples_, v.config.path == Path::fast ? samples_.fast : samples_.exact, c, e_.n);
  }

 private:
  static runtime::Kernel kernel(const Config& c) {
    const kernels::DeviceProgram program = device_code::program(c);
    const runtime::Kernel kernel = ops::load_program(0, program).kernel(program.kernels.front());
    kernel.allow_dynamic_shared(static_cast<std::size_t>(device_code::shared_bytes(c)));
    return kernel;
  }

  device_code::Extents e_;
  Nvfp4 a_;
  Nvfp4 gate_;
  Nvfp4 up_;
  Samples samples_;
  runtime::DeviceBuffer weight_scale_;
  std::vector<Set> sets_;
};

struct Contestant {
  Variant variant;
  double error;
  runtime::Graph graph;
  std::vector<double> burst_us{};
  std::vector<double> hot_us{};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void time(std::vector<Contestant>& all) {
  const runtime::OwnedStream stream(0);
  const runtime::Event start(0);
  const runtime::Event end(0);
  const auto sample = [&](Contestant& one, std::vector<double>& into) {
    start.record(stream.get());
    one.graph.launch(stream.get());
    end.record(stream.get());
    into.push_back(end.elapsed_us_since(start) / calls);
  };
  for (Contestant& one : all) {
    one.graph.launch(stream.get());
  }
  stream.synchronize();
  for (int round = 0; round < burst_rounds; ++round) {
    for (Contestant& one : all) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      sample(one, one.burst_us);
    }
  }
  for (int round = 0; round < hot_rounds; ++round) {
    for (Contestant& one : all) {
      one.graph.launch(stream.get());
      sample(one, one.hot_us);
    }
  }
}

void print(const std::vector<Contestant>& all) {
  std::map<std::pair<Path, Tokens>, double> first;
  for (const Contestant& one : all) {
    const double burst = median(one.burst_us);
    const auto key = std::pair(one.variant.config.path, one.variant.tokens);
    const double base = first.try_emplace(key, burst).first->second;
    const bool is_fast = one.variant.config.path == Path::fast;
    std::printf("  %-58s %8.2f %8.2f us  %.3f  error %.1e%s\n", words(one.variant).c_str(), burst, median(one.hot_us),
                base / burst, one.error, one.error <= (is_fast ? 1.5e-2 : 1e-3) ? "" : "  WRONG");
  }
  std::fflush(stdout);
}

void run(const device_code::Extents& e) {
  std::printf("## %ldx%ldx%ld: burst, hot, against the first of its kind\n", static_cast<long>(e.m),
              static_cast<long>(e.n), static_cast<long>(e.k));
  const Problem problem(e);
  std::vector<Contestant> all;
  for (const Variant& v : variants(e)) {
    try {
      const double error = problem.error(v);
      all.push_back({v, error, runtime::Graph::capture(0, [&](Stream stream) {
                       for (std::size_t i = 0; i < calls; ++i) {
                         problem.call(v, i, stream);
                       }
                     })});
    } catch (const Error& refusal) {
      std::printf("  %s: %s\n", words(v).c_str(), refusal.what());
    }
  }
  time(all);
  print(all);
}

const std::vector<device_code::Extents> problems{{256, 4096, 7168}, {512, 4096, 7168}, {256, 3072, 4096},
                                                 {512, 3072, 7168}, {128, 4096, 7168}, {1, 14336, 4096},
                                                 {16, 14336, 4096}, {64, 14336, 4096}, {2048, 14336, 4096}};

void warm() {
  ops::warm_program(device_code::preparation_program(), "sm_90a");
  for (const device_code::Extents& e : problems) {
    for (const Variant& v : variants(e)) {
      ops::warm_program(device_code::program(v.config), "sm_90a");
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::strcmp(argv[1], "--warm") == 0) {
    warm();
    return 0;
  }
  for (const device_code::Extents& e : problems) {
    const std::string text = fmt::format("{}x{}x{}", e.m, e.n, e.k);
    const bool wanted = argc == 1 || std::any_of(argv + 1, argv + argc, [&](const char* word) { return text == word; });
    if (wanted) {
      run(e);
    }
  }
  return 0;
} catch (const thresher::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
