// Times the dense dual GEMM with FP8 and NVFP4 outputs on one GPU, by each strategy that supports them and by plan's
// choice. Weights come from DRAM. Graphs of a few calls alternate, so that clocks are the same for all. The tests check
// the outputs (CudaQuantizedDense).
//
// usage: bench_requantised_outputs [MxNxK...]   [256x4096x7168 16x14336x4096]
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "formats/numbers.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"
#include "thresher/thresher.hpp"

namespace {

using namespace thresher;

constexpr std::int64_t cold_bytes = 240 << 20;  ///< several times the L2
constexpr int rounds = 25;

struct Extents {
  long m = 0;
  long n = 0;
  long k = 0;
};

/// Bytes of numbers of moderate size in a format, with a period that divides no row.
std::vector<std::uint8_t> numbers(Format format, std::size_t bytes) {
  constexpr std::size_t period = 4'194'301;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<std::uint8_t> first;
  while (first.size() < std::min(bytes, 2 * period)) {
    if (format == Format::bf16) {
      const std::uint16_t word = formats::float_to_bf16(normal(random));
      first.push_back(static_cast<std::uint8_t>(word & 0xFFU));
      first.push_back(static_cast<std::uint8_t>(word >> 8U));
    } else {
      first.push_back(static_cast<std::uint8_t>(random()));
    }
  }
  std::vector<std::uint8_t> all(bytes);
  for (std::size_t at = 0; at < bytes; at += first.size()) {
    std::copy_n(first.begin(), std::min(first.size(), bytes - at), all.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return all;
}

/// A matrix on the GPU; its scales are all 1.
class GpuMatrix {
 public:
  GpuMatrix(Format format, std::int64_t rows, std::int64_t columns, OperandRole role)
      : tensor_(Tensor::contiguous(nullptr, format, {rows, columns}, {DeviceKind::cuda, 0})) {
    values_ = runtime::DeviceBuffer(0, static_cast<std::size_t>(rows * columns * bits(format) / 8));
    const std::vector<std::uint8_t> host = numbers(format, values_.bytes());
    runtime::copy(values_.data(), host.data(), host.size(), 0);
    tensor_.data = values_.data();
    tensor_.describe_scales(role);
    if (format_traits(format).has_scales()) {
      scales_ = runtime::DeviceBuffer(0, scale_bytes(tensor_));
      constexpr std::uint8_t one_in_e4m3 = 0x38;
      runtime::fill_async(scales_.data(), one_in_e4m3, scales_.bytes(), Stream{}, 0);
      runtime::synchronize({}, 0);
    }
    tensor_.scales.data = scales_.data();
  }
  [[nodiscard]] const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  runtime::DeviceBuffer values_;
  runtime::DeviceBuffer scales_;
};

/// A few calls, each with its own weights.
class Timed {
 public:
  Timed(const DualGemmProblem& problem, const DualGemmOptions& options, const std::vector<PackedWeights>& weights,
        const Tensor& a, const Tensor& c) {
    for (const PackedWeights& one : weights) {
      plans_.push_back(plan(Device::cuda(), problem, one, options));
    }
    workspace_ = std::make_unique<const Workspace>(Device::cuda(), plans_.front().workspace_bytes());
    const auto all = [&](Stream stream) {
      for (const DualGemm& one : plans_) {
        one.run(stream, a, c, workspace_->data());
      }
    };
    all({});
    runtime::synchronize({}, 0);
    graph_ = std::make_unique<const runtime::Graph>(runtime::Graph::capture(0, all));
  }

  void run(Stream stream) {
    const runtime::Event start(0);
    const runtime::Event stop(0);
    start.record(stream);
    graph_->launch(stream);
    stop.record(stream);
    samples_.push_back(stop.elapsed_us_since(start) / static_cast<double>(plans_.size()));
  }
  [[nodiscard]] double median() {
    std::sort(samples_.begin(), samples_.end());
    return samples_[samples_.size() / 2];
  }
  [[nodiscard]] const std::string& strategy() const { return plans_.front().strategy(); }

 private:
  std::vector<DualGemm> plans_;
  std::unique_ptr<const Workspace> workspace_;
  std::unique_ptr<const runtime::Graph> graph_;
  std::vector<double> samples_;
};

/// Times plan's choice first, then each strategy that supports the problem, beside the unquantized output.
void time_all(const DualGemmProblem& problem, const std::vector<PackedWeights>& weights, const Tensor& a) {
  const GpuMatrix c(problem.out, problem.m, problem.n, OperandRole::tokens);
  std::vector<std::string> asked = dual_gemm_strategies(Device::cuda());
  asked.insert(asked.begin(), "");
  std::vector<std::unique_ptr<Timed>> all;
  for (const std::string& strategy : asked) {
    try {
      all.push_back(std::make_unique<Timed>(problem, DualGemmOptions{.strategy = strategy}, weights, a, c.tensor()));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || strategy.empty()) {
        throw;
      }
    }
  }
  const runtime::OwnedStream stream(0);
  for (int round = 0; round < rounds; ++round) {
    for (const auto& one : all) {
      one->run(stream.get());
    }
  }
  std::string line = fmt::format("{}x{}x{} {} with {} to {}:", problem.m, problem.n, problem.k, name(problem.a),
                                 name(problem.b), name(problem.out));
  for (std::size_t i = 0; i < all.size(); ++i) {
    line += fmt::format("{}{} {:.1f}",
                        i == 0   ? " chosen "
                        : i == 1 ? " us; "
                                 : ", ",
                        all[i]->strategy(), all[i]->median());
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void time_operands(Format a, Format b, const Extents& extents) {
  const GpuMatrix tokens(a, extents.m, extents.k, OperandRole::tokens);
  std::vector<PackedWeights> weights;
  const auto bytes = static_cast<std::int64_t>(2 * static_cast<double>(extents.n * extents.k) *
                                               format_traits(b).stored_bits(OperandRole::weights) / 8);
  const std::int64_t copies = std::clamp<std::int64_t>(cold_bytes / std::max<std::int64_t>(bytes, 1) + 1, 2, 16);
  const GpuMatrix one(b, extents.n, extents.k, OperandRole::weights);
  while (std::ssize(weights) < copies) {
    weights.push_back(pack(Device::cuda(), one.tensor(), one.tensor()));
  }
  for (const Format out : output_formats) {
    time_all({.m = extents.m, .n = extents.n, .k = extents.k, .a = a, .b = b, .out = out}, weights, tokens.tensor());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<Extents> all;
  for (int i = 1; i < argc; ++i) {
    Extents one;
    if (std::sscanf(argv[i], "%ldx%ldx%ld", &one.m, &one.n, &one.k) != 3) {
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no MxNxK", argv[i]));
    }
    all.push_back(one);
  }
  if (all.empty()) {
    all = {{256, 4096, 7168}, {16, 14336, 4096}};
  }
  if (const std::string& problem = runtime::driver_status().problem; !problem.empty()) {
    throw Error(ErrorCode::device, problem);
  }
  for (const Extents& extents : all) {
    time_operands(Format::bf16, Format::bf16, extents);
    time_operands(Format::bf16, Format::nvfp4, extents);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
