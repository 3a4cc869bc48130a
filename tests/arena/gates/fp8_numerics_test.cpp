// FP8 on a GPU is judged by sums that are promoted every 128 of K, and without promotion only where `fast` is declared.
#include <gtest/gtest.h>

#include <cstring>

#include "arena/gemm/generate.hpp"
#include "arena/gemm/judge.hpp"
#include "arena/random.hpp"
#include "formats/numbers.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;

/// One call by a kernel that sums so.
struct SummedCall {
  SummedCall(const DualGemmProblem& of, Distribution from, Accumulation accumulation)
      : problem(of),
        distribution(from),
        inputs(dual_gemm_inputs(dense_task(of), from, 11)),
        c(make_host_tensor("c", of.out, {of.m, of.n})) {
    const reference::Outputs outputs = reference::plain_low_precision(
        of, inputs[0].view(), inputs[1].view(), inputs[2].view(), reference::whole(of), accumulation);
    for (std::size_t i = 0; i < outputs.value.size(); ++i) {
      store(i, static_cast<float>(outputs.value[i]));
    }
  }

  void store(std::size_t i, float value) {
    if (problem.out == Format::fp16) {
      const std::uint16_t code = formats::float_to_fp16(value);
      std::memcpy(&c.values[i * sizeof code], &code, sizeof code);
    } else {
      std::memcpy(&c.values[i * sizeof value], &value, sizeof value);
    }
  }

  [[nodiscard]] Finding judged_as(Numerics numerics) const {
    return make_product_judge(dense_task(problem), distribution, inputs, {DeviceKind::cuda, numerics}, 7)->judge({c});
  }

  /// What the inspector says against the first of some looks that it does not like.
  [[nodiscard]] std::string fault_as(Numerics numerics) const {
    const auto inspector =
        make_product_inspector(dense_task(problem), distribution, inputs, {DeviceKind::cuda, numerics}, 7);
    Random random(5);
    for (int i = 0; i < 40; ++i) {
      Look look = inspector->choose(random);
      for (RowPart& part : look.parts) {
        const std::int64_t element_bytes = bits(problem.out) / 8;
        const auto* const from = c.values.data() + (part.row * problem.n + part.first_column) * element_bytes;
        part.bytes.assign(from, from + part.columns * element_bytes);
      }
      if (std::string fault = inspector->fault_in(look, {&inputs[0], &inputs[1], &inputs[2]}, 0xA5); !fault.empty()) {
        return fault;
      }
    }
    return "";
  }

  DualGemmProblem problem;
  Distribution distribution;
  std::vector<HostTensor> inputs;
  HostTensor c;
};

constexpr std::array fp8_formats{Format::fp8_tensor, Format::fp8_row, Format::fp8_block};

TEST(Fp8Numerics, HonestKernelsPassEveryDistributionAndFormat) {
  for (const auto& [format, out] :
       {std::pair{Format::fp8_tensor, Format::fp32}, std::pair{Format::fp8_row, Format::fp32},
        std::pair{Format::fp8_block, Format::fp32}, std::pair{Format::fp8_row, Format::fp16}}) {
    const DualGemmProblem problem{40, 72, 528, format, format, out, {}};
    for (const Distribution distribution : all_distributions) {
      for (const auto& [accumulation, numerics] : {std::pair{Accumulation::float14_promoted, Numerics::exact},
                                                   std::pair{Accumulation::float32_truncated, Numerics::exact},
                                                   std::pair{Accumulation::float14_truncated, Numerics::fast}}) {
        const SummedCall call(problem, distribution, accumulation);
        const Finding finding = call.judged_as(numerics);
        EXPECT_TRUE(finding.correct) << name(format) << " " << name(distribution) << " " << name(numerics) << ": "
                                     << finding.sentence;
        EXPECT_EQ(call.fault_as(numerics), "") << name(format) << " " << name(distribution) << " " << name(numerics);
      }
    }
  }
}

TEST(Fp8Numerics, SumsThatAreNotPromotedAreNotExact) {
  for (const Format format : fp8_formats) {
    const DualGemmProblem problem{40, 72, 16384, format, format, Format::fp32, {}};
    const SummedCall call(problem, Distribution::normal, Accumulation::float14_truncated);
    EXPECT_FALSE(call.judged_as(Numerics::exact).correct) << name(format);
    EXPECT_NE(call.fault_as(Numerics::exact), "") << name(format);
  }
}

}  // namespace
}  // namespace thresher::arena
