// The plain product on a Hopper GPU through the public API, by every strategy and configuration, against the definition
// on the CPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/gemm_case.hpp"
#include "support/gpu_grouped_case.hpp"
#include "thresher/thresher.hpp"

namespace thresher {
namespace {

using test::for_every_choice;
using test::GemmCase;
using test::GroupedStrategy;
using test::OnGpu;
using test::TensorOnGpu;

/// A plan on the operands of a case, all of them between guard zones.
class GpuGemm {
 public:
  GpuGemm(GemmCase& host, const GemmOptions& options, bool is_packed)
      : host_(host),
        numerics_(options.knobs.text().find("numerics=fast") != std::string::npos ? Numerics::fast : Numerics::exact),
        b_(host.weights().b),
        bias_(host.weights().bias),
        a_(host.tensors().a),
        c_(host.tensors().c),
        gemm_(planned(options, is_packed)),
        workspace_(gemm_.workspace_bytes()) {}

  void enqueue(std::int64_t rows) const {
    Tensor a = a_.tensor();
    Tensor c = c_.tensor();
    a.shape[0] = c.shape[0] = rows;
    gemm_.run({}, a, c, workspace_.data());
  }
  [[nodiscard]] std::vector<std::uint8_t> bytes() const { return c_.values().download<std::uint8_t>(); }

  /// What is wrong with what so many rows give, in words; empty when nothing is.
  std::string run_and_judge(std::int64_t rows) {
    c_.values().fill(0xFF);
    enqueue(rows);
    runtime::synchronize({}, 0);
    c_.fetch(host_.tensors().c);
    for (const TensorOnGpu* tensor : {&b_, &bias_, &a_, &c_}) {
      if (!tensor->guards_intact()) {
        return "memory around a tensor was written";
      }
    }
    if (!workspace_.guards_intact()) {
      return "memory around the workspace was written";
    }
    if (!host_.gaps_intact() || (rows < host_.problem().m && !host_.is_untouched(rows))) {
      return "what is no row of the call was written";
    }
    const reference::PlainSums sums =
        reference::plain_sums(host_.problem().a, host_.problem().b, numerics_, DeviceKind::cuda);
    const reference::Verdict verdict =
        host_.judged(rows, sums.is_folded ? Numerics::fast : Numerics::exact, sums.accumulation);
    return verdict.passed ? "" : verdict.explain();
  }

 private:
  [[nodiscard]] Gemm planned(const GemmOptions& options, bool is_packed) const {
    const Device device = Device::cuda(0);
    const GemmWeights weights{.b = b_.tensor(), .bias = bias_.tensor()};
    return is_packed ? plan(device, host_.problem(), pack(device, weights, {.numerics = numerics_}), options)
                     : plan(device, host_.problem(), weights, options);
  }

  GemmCase& host_;
  Numerics numerics_;
  TensorOnGpu b_;
  TensorOnGpu bias_;
  TensorOnGpu a_;
  TensorOnGpu c_;
  Gemm gemm_;
  OnGpu workspace_;
};

struct GemmOperands {
  Format a;
  Format b;
  Format out;
};
constexpr GemmOperands all_gemm_operands[] = {
    {Format::bf16, Format::bf16, Format::bf16},           {Format::fp16, Format::fp16, Format::fp32},
    {Format::fp16, Format::nvfp4, Format::fp16},          {Format::bf16, Format::nvfp4, Format::bf16},
    {Format::nvfp4, Format::nvfp4, Format::fp32},         {Format::fp8_tensor, Format::fp8_tensor, Format::bf16},
    {Format::fp8_row, Format::fp8_row, Format::fp16},     {Format::fp8_block, Format::fp8_block, Format::bf16},
    {Format::fp8_row, Format::fp8_tensor, Format::fp32},  {Format::fp8_block, Format::fp8_row, Format::fp16},
    {Format::fp8_tensor, Format::fp8_block, Format::bf16}};

/// A test of each kind: their kernels take a while to compile.
using CudaGemmOf = ::testing::TestWithParam<GemmOperands>;
INSTANTIATE_TEST_SUITE_P(All, CudaGemmOf, ::testing::ValuesIn(all_gemm_operands),
                         [](const auto& of) { return fmt::format("{}_with_{}", name(of.param.a), name(of.param.b)); });

GemmProblem gemm_problem(const GemmOperands& operands, bool bias) {
  return {.m = 300, .n = 200, .k = 528, .a = operands.a, .b = operands.b, .out = operands.out, .bias = bias};
}

/// Every strategy and configuration, from weights as they are and from packed ones.
TEST_P(CudaGemmOf, IsRightForAnyNumberOfRows) {
  SKIP_WITHOUT_HOPPER();
  int choices = 0;
  for (const std::int64_t most : {16, 300}) {
    GemmProblem problem = gemm_problem(GetParam(), most == 300);
    problem.m = most;
    for_every_choice(
        strategies::gemm::ProductProblem(problem).grouped(), [&](const GroupedStrategy& strategy, const Knobs& knobs) {
          ++choices;
          for (const bool is_packed : {false, true}) {
            GemmCase host(problem, Format::bf16, {.out_row_gap = is_packed ? 3 : 0});
            GpuGemm gemm(host, {.strategy = std::string(strategy.name()), .knobs = knobs}, is_packed);
            for (const std::int64_t rows : {most, most - 7, most / 3, std::int64_t{1}, std::int64_t{0}}) {
              EXPECT_EQ(gemm.run_and_judge(rows), "") << rows << " of " << most << (is_packed ? ", packed" : "");
            }
          }
        });
  }
  EXPECT_GT(choices, 0);
}

/// What a plan chooses by itself.
TEST_P(CudaGemmOf, EdgeShapes) {
  SKIP_WITHOUT_HOPPER();
  for (const auto& [n, k] : {std::pair{1, 16}, {8, 16}, {24, 64}, {65, 80}, {136, 208}, {500, 1040}}) {
    for (const std::int64_t rows : {1, 65, 129}) {
      GemmProblem problem = gemm_problem(GetParam(), rows == 65);
      problem.m = rows;
      problem.n = n;
      problem.k = k;
      GemmCase host(problem);
      EXPECT_EQ(GpuGemm(host, {}, false).run_and_judge(rows), "") << rows << "x" << n << "x" << k;
    }
  }
}

TEST_P(CudaGemmOf, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_HOPPER();
  const GemmProblem problem = gemm_problem(GetParam(), false);
  for_every_choice(strategies::gemm::ProductProblem(problem).grouped(),
                   [&](const GroupedStrategy& strategy, const Knobs& knobs) {
                     GemmCase host(problem);
                     GpuGemm gemm(host, {.strategy = std::string(strategy.name()), .knobs = knobs}, false);
                     ASSERT_EQ(gemm.run_and_judge(problem.m), "");
                     const std::vector<std::uint8_t> first = gemm.bytes();
                     for (int repeat = 0; repeat < 1000; ++repeat) {
                       gemm.enqueue(problem.m);
                       if (repeat % 50 == 49) {
                         runtime::synchronize({}, 0);
                         ASSERT_EQ(gemm.bytes(), first) << repeat;
                       }
                     }
                   });
}

}  // namespace
}  // namespace thresher
