#pragma once
/// One dual GEMM on a GPU, with its operands between guard zones, judged against the definition on the CPU.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/packed_content.hpp"
#include "ops/product_choice.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/fold.hpp"
#include "reference/plain_sums.hpp"
#include "reference/tolerance.hpp"
#include "runtime/stream.hpp"
#include "support/dual_gemm_case.hpp"
#include "support/gpu.hpp"

namespace thresher::test {

/// A copy of a CPU matrix in GPU memory.
class GpuOperand {
 public:
  explicit GpuOperand(const Tensor& host)
      : values_(bytes_at(host.data, ops::extent_bytes(host))),
        scales_(bytes_at(host.scales.data, scale_bytes(host))),
        global_scale_(bytes_at(host.global_scale, host.global_scale == nullptr ? 0 : sizeof(float))),
        gpu_(host) {
    gpu_.device = {DeviceKind::cuda, 0};
    gpu_.data = values_.data();
    gpu_.scales.data = host.scales.data == nullptr ? nullptr : scales_.data();
    gpu_.global_scale = host.global_scale == nullptr ? nullptr : static_cast<const float*>(global_scale_.data());
  }
  [[nodiscard]] const Tensor& tensor() const { return gpu_; }
  [[nodiscard]] bool guards_intact() const { return values_.guards_intact() && scales_.guards_intact(); }
  void spoil() const { values_.fill(0xFF); }

 private:
  static std::vector<std::uint8_t> bytes_at(const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::uint8_t*>(data);
    return {first, first + bytes};
  }
  OnGpu values_;
  OnGpu scales_;
  OnGpu global_scale_;
  Tensor gpu_;
};

/// How the products of the GPU's strategies add up: on the matrix unit, or in plain float32 for fp16 with bf16.
inline reference::Accumulation accumulation(const DualGemmProblem& problem, Numerics numerics) {
  if (bits(problem.a) == 8) {
    return reference::plain_sums(problem.a, problem.b, numerics, DeviceKind::cuda).accumulation;
  }
  const bool is_mixed = problem.a != problem.b && bits(problem.a) == 16 && bits(problem.b) == 16;
  return is_mixed ? reference::Accumulation::float32 : reference::Accumulation::float32_truncated;
}

class GpuDualGemmCase {
 public:
  explicit GpuDualGemmCase(DualGemmCase of, DualGemmOptions with = {}, bool packed = false)
      : host(std::move(of)),
        problem(host.problem),
        options(std::move(with)),
        packed_(packed),
        a(host.a.view()),
        b1(host.b1_gate.view()),
        b2(host.b2_up.view()),
        c(host.c.bytes()),
        c_scales(host.c.scales()),
        c_global_scale(sizeof(float)) {
    out = host.c.view();
    out.device = {DeviceKind::cuda, 0};
    out.data = c.data();
    out.scales.data = host.c.scales().empty() ? nullptr : c_scales.data();
    if (out.global_scale != nullptr) {
      runtime::copy(c_global_scale.data(), out.global_scale, sizeof(float), 0);
      out.global_scale = static_cast<const float*>(c_global_scale.data());
    }
  }

  [[nodiscard]] Numerics numerics() const { return ops::numerics_of(options.knobs); }

  [[nodiscard]] DualGemm planned() const {
    const Device device = Device::cuda();
    return packed_ ? plan(device, problem, pack(device, b1.tensor(), b2.tensor(), {.numerics = numerics()}), options)
                   : plan(device, problem, b1.tensor(), b2.tensor(), options);
  }

  /// Runs and judges. The workspace is full of NaN before.
  [[nodiscard]] std::string run_and_judge(reference::Rule rule = reference::Rule::general) {
    const DualGemm gemm = planned();
    const OnGpu workspace(gemm.workspace_bytes());
    workspace.fill(0xFF);
    const runtime::OwnedStream stream(0);
    gemm.run(stream.get(), a.tensor(), out, gemm.workspace_bytes() == 0 ? nullptr : workspace.data());
    stream.synchronize();
    return workspace.guards_intact() ? judged(c, rule) : "memory outside the workspace was written";
  }

  /// Empty when `result`, as large as C, is right and nothing around it or the operands was written.
  [[nodiscard]] std::string judged(const OnGpu& result, reference::Rule rule = reference::Rule::general) {
    if (!result.guards_intact() || !c_scales.guards_intact() || !a.guards_intact() || !b1.guards_intact() ||
        !b2.guards_intact()) {
      return "memory outside a buffer was written";
    }
    const Tensor c_host = host.c.view();
    runtime::copy(c_host.data, result.data(), result.bytes(), 0);
    if (c_scales.bytes() > 0) {
      runtime::copy(const_cast<void*>(c_host.scales.data), c_scales.data(), c_scales.bytes(), 0);
    }
    if (!host.c.gaps_intact()) {
      return "a gap between rows was written";
    }
    const reference::Verdict verdict =
        numerics() == Numerics::fast && problem.b == Format::nvfp4
            ? reference::judge_fast_dual_gemm(problem, rule, host.a.view(), host.b1_gate.view(), host.b2_up.view(),
                                              c_host, reference::whole(problem))
            : reference::judge_dual_gemm(problem, rule, host.a.view(), host.b1_gate.view(), host.b2_up.view(), c_host,
                                         reference::whole(problem), accumulation(problem, numerics()));
    return verdict.passed ? "" : verdict.explain();
  }

  /// Prepares A once, spoils its elements, and runs twice; empty when both are right. For plans that prepare A.
  [[nodiscard]] std::string prepared_once_and_judged() {
    const DualGemm gemm = planned();
    const OnGpu workspace(gemm.workspace_bytes());
    const runtime::OwnedStream stream(0);
    gemm.prepare(stream.get(), a.tensor(), workspace.data());
    stream.synchronize();
    a.spoil();
    std::string complaints;
    for (int number = 0; number < 2; ++number) {
      runtime::fill_async(c.data(), 0xFF, c.bytes(), stream.get(), 0);
      gemm.run_prepared(stream.get(), a.tensor(), out, workspace.data());
      stream.synchronize();
      complaints += judged(c);
    }
    return complaints;
  }

  /// Runs again and again into poisoned memory; empty when every run gives the bits of the first.
  [[nodiscard]] std::string same_bits(int runs) {
    const DualGemm gemm = planned();
    const OnGpu workspace(gemm.workspace_bytes());
    const runtime::OwnedStream stream(0);
    std::vector<std::uint8_t> first;
    for (int number = 0; number < runs; ++number) {
      runtime::fill_async(c.data(), 0xFF, c.bytes(), stream.get(), 0);
      gemm.run(stream.get(), a.tensor(), out, workspace.data());
      stream.synchronize();
      std::vector<std::uint8_t> bits = c.download<std::uint8_t>();
      const std::vector<std::uint8_t> scales = c_scales.download<std::uint8_t>();
      bits.insert(bits.end(), scales.begin(), scales.end());
      if (number == 0) {
        first = std::move(bits);
      } else if (bits != first) {
        return "run " + std::to_string(number) + " differs from run 0";
      }
    }
    return "";
  }

  /// Threads with streams of their own share one plan; empty when all of them compute the right thing.
  [[nodiscard]] std::string shared_by_threads() {
    const DualGemm gemm = planned();
    std::vector<OnGpu> results;
    while (results.size() < 6) {
      results.emplace_back(c.bytes());
    }
    std::vector<std::thread> threads;
    for (const OnGpu& result : results) {
      threads.emplace_back([&] {
        const runtime::OwnedStream stream(0);
        const OnGpu workspace(gemm.workspace_bytes());
        Tensor own = out;
        own.data = result.data();
        for (int round = 0; round < 20; ++round) {
          gemm.run(stream.get(), a.tensor(), own, workspace.data());
        }
        stream.synchronize();
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const OnGpu& result : results) {
      if (!result.guards_intact() || result.download<std::uint8_t>() != results[0].download<std::uint8_t>()) {
        return "two threads' results differ";
      }
    }
    return judged(results[0]);
  }

  DualGemmCase host;
  DualGemmProblem problem;
  DualGemmOptions options;

 private:
  bool packed_;

 public:
  GpuOperand a;
  GpuOperand b1;
  GpuOperand b2;
  OnGpu c;
  OnGpu c_scales;  ///< of a quantized output
  OnGpu c_global_scale;
  Tensor out;
};

}  // namespace thresher::test
