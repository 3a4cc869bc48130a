#include "nvfp4_variants_problem.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "ops/cuda_packed_weights.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"
#include "runtime/stream.hpp"
#include "strategies/dual_gemm/packed/program.hpp"

namespace thresher::bench {
namespace {

using device_code::Numerics;

constexpr double l2_bytes = 60e6;

runtime::DeviceBuffer on_gpu(const void* data, std::size_t bytes) {
  runtime::DeviceBuffer buffer(0, bytes);
  runtime::copy(buffer.data(), data, bytes, 0);
  return buffer;
}

template <class T>
machine::Global<T> global(const void* pointer) {
  return {reinterpret_cast<std::uintptr_t>(pointer)};
}

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

const ops::CudaPackedWeights& weights_of(const Set& set, Numerics numerics) {
  return dynamic_cast<const ops::CudaPackedWeights&>((numerics == Numerics::fast ? *set.fast : *set.exact).storage());
}

Tensor fp16_tokens(const device_code::Extents& e, const Set& set) {
  return Tensor::contiguous(set.a16.data(), Format::fp16, {e.m, e.k}, {DeviceKind::cuda, 0});
}

std::string preparation_name(const Variant& v) {
  if (v.config.numerics == Numerics::exact) {
    return device_code::widen_tokens_kernel_name();
  }
  return device_code::fold_tokens_kernel_name(v.tokens == Tokens::fp16 ? device_code::TokenFormat::fp16
                                                                       : device_code::TokenFormat::nvfp4);
}

}  // namespace

Nvfp4::Nvfp4(std::int64_t r, std::int64_t columns, std::uint64_t seed)
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

Nvfp4 Nvfp4::gathered(const std::vector<std::int64_t>& which) const {
  Nvfp4 out(static_cast<std::int64_t>(which.size()), k, 1);
  for (std::size_t i = 0; i < which.size(); ++i) {
    std::copy_n(codes.begin() + which[i] * k / 2, k / 2, out.codes.begin() + static_cast<std::int64_t>(i) * k / 2);
    std::copy_n(scales.begin() + which[i] * k / 16, k / 16, out.scales.begin() + static_cast<std::int64_t>(i) * k / 16);
  }
  return out;
}

GpuNvfp4::GpuNvfp4(const Nvfp4& host)
    : codes(on_gpu(host.codes.data(), host.codes.size())), scales(on_gpu(host.scales.data(), host.scales.size())) {
  view = Tensor::nvfp4(codes.data(), static_cast<const std::uint8_t*>(scales.data()), host.rows, host.k, nullptr,
                       ScaleLayout::row_major, {DeviceKind::cuda, 0});
}

Loaded load(const Variant& v) {
  const strategies::DeviceProgram program = device_code::program(v.config);
  const ops::LoadedProgram& loaded = ops::load_program(0, program);
  const ops::LoadedProgram& preparation = ops::load_program(0, device_code::preparation_program());
  Loaded result{loaded.kernel(program.kernels.front()), preparation.kernel(preparation_name(v)),
                loaded.origin == ops::CodeOrigin::compiled};
  result.product.allow_dynamic_shared(static_cast<std::size_t>(device_code::shared_bytes(v.config)));
  return result;
}

Problem::Problem(const device_code::Extents& e)
    : extents_(e),
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
  const ops::LoadedProgram& preparation = ops::load_program(0, device_code::preparation_program());
  for (int i = 0; i < count; ++i) {
    Set set;
    const Device device = Device::cuda();
    set.exact = std::make_unique<PackedWeights>(pack(device, gate.view, up.view));
    set.fast =
        std::make_unique<PackedWeights>(pack(device, gate.view, up.view, {.numerics = thresher::Numerics::fast}));
    set.a = std::make_unique<GpuNvfp4>(a_);
    set.a16 = runtime::DeviceBuffer(0, static_cast<std::size_t>(e.m * e.k * 2));
    set.folded = runtime::DeviceBuffer(
        0, static_cast<std::size_t>(device_code::prepared_tokens(Numerics::fast, e.m, e.k).bytes));
    set.workspace = runtime::DeviceBuffer(0, static_cast<std::size_t>(e.m * (e.k + 128) * 2 + e.m * 4 + 256));
    set.c = runtime::DeviceBuffer(0, static_cast<std::size_t>(e.m * e.n * 2));
    for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
      const Variant v{{.numerics = numerics}, Tokens::nvfp4};
      prepare(v, preparation.kernel(preparation_name(v)), set.a->view,
              numerics == Numerics::exact ? set.a16.data() : set.folded.data(), stream.get());
    }
    sets_.push_back(std::move(set));
  }
  stream.synchronize();
}

void Problem::prepare(const Variant& v, const runtime::Kernel& kernel, const Tensor& a, void* out,
                      Stream stream) const {
  runtime::LaunchConfig launch;
  launch.dependent_launch = true;
  launch.stream = stream;
  if (v.config.numerics == Numerics::fast) {
    device_code::FoldTokensParams params = device_code::fold_params(a);
    params.out = global<machine::u8>(out);
    params.factors = global<float>(static_cast<std::uint8_t*>(out) +
                                   device_code::prepared_tokens(Numerics::fast, extents_.m, extents_.k).factors_offset);
    launch.grid.x = static_cast<unsigned>(extents_.m);
    launch.block.x = device_code::fold_threads;
    launch.dynamic_shared_bytes = device_code::fold_shared_bytes;
    kernel.launch_with(launch, params);
    return;
  }
  device_code::WidenTokensParams params = device_code::widen_params(a);
  params.out = global<machine::u8>(out);
  launch.grid.x = device_code::widen_blocks(a);
  launch.block.x = device_code::widen_threads;
  kernel.launch_with(launch, params);
}

void Problem::call(const Variant& v, const Loaded& loaded, std::size_t i, Stream stream) const {
  const Set& set = sets_[i % sets_.size()];
  const bool fast = v.config.numerics == Numerics::fast;
  const device_code::PreparedTokens layout = device_code::prepared_tokens(v.config.numerics, extents_.m, extents_.k);
  const void* tokens = fast ? set.folded.data() : set.a16.data();
  if (v.tokens != Tokens::prepared) {
    prepare(v, loaded.preparation, v.tokens == Tokens::nvfp4 ? set.a->view : fp16_tokens(extents_, set),
            set.workspace.data(), stream);
    tokens = set.workspace.data();
  }
  const ops::CudaPackedWeights& weights = weights_of(set, v.config.numerics);
  device_code::Params params = device_code::scalars(v.config, extents_, extents_.n, Activation{});
  params.tokens = ops::encode_for_gpu(
      device_code::tokens_map(v.config, extents_, reinterpret_cast<std::uintptr_t>(tokens), layout.row_bytes), 0);
  params.weights = global<machine::u8>(weights.packed());
  params.c = global<machine::u8>(set.c.data());
  params.gate_scale = params.up_scale = global<float>(weight_scale_.data());
  if (fast) {
    params.row_factors = global<float>(static_cast<const std::uint8_t*>(weights.packed()) +
                                       device_code::factors_offset(extents_.n, extents_.k));
    params.token_factors = global<float>(static_cast<const std::uint8_t*>(tokens) + layout.factors_offset);
  }
  runtime::LaunchConfig launch;
  launch.grid.x = device_code::blocks(v.config, params);
  launch.block.x = static_cast<unsigned>(device_code::launch_threads(v.config));
  launch.cluster.x = static_cast<unsigned>(v.config.split_k);
  launch.dynamic_shared_bytes = static_cast<unsigned>(device_code::shared_bytes(v.config));
  launch.dependent_launch = true;
  launch.stream = stream;
  loaded.product.launch_with(launch, params);
}

double Problem::error(const Variant& v, const Loaded& loaded) const {
  const runtime::OwnedStream stream(0);
  runtime::fill_async(sets_[0].c.data(), 0xFF, sets_[0].c.bytes(), stream.get(), 0);
  call(v, loaded, 0, stream.get());
  stream.synchronize();
  std::vector<std::uint16_t> c(sets_[0].c.bytes() / 2);
  runtime::copy(c.data(), sets_[0].c.data(), sets_[0].c.bytes(), 0);
  const auto unwritten = std::count(c.begin(), c.end(), std::uint16_t{0xFFFF});
  return unwritten > 0
             ? HUGE_VAL
             : error_of(samples_, v.config.numerics == Numerics::fast ? samples_.fast : samples_.exact, c, extents_.n);
}

}  // namespace thresher::bench
