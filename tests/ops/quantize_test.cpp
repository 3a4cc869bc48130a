#include "thresher/quantize.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <unordered_map>

#include "support/quantize_case.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

using test::QuantizeCase;

std::string fault(QuantizeCase& host, int threads = 2) {
  return host.fault_after([&] { plan(Device::cpu(), host.problem, {.threads = threads}).run({}, host.x, host.out); });
}

TEST(Quantize, GivesTheBitsOfTheDefinition) {
  for (const Format x : {Format::fp16, Format::bf16}) {
    for (const bool powers_of_two : {false, true}) {
      QuantizeCase blocks({.rows = 22, .columns = 304, .x = x},
                          {.scales = ScaleLayout::column_major, .powers_of_two = powers_of_two, .gap = 5});
      EXPECT_EQ(fault(blocks), "");
      QuantizeCase rows({.rows = 22, .columns = 304, .x = x, .out = Format::fp8_row}, {.powers_of_two = powers_of_two});
      EXPECT_EQ(fault(rows, 1), "");
    }
  }
}

/// Fewer rows than planned, and none at all.
TEST(Quantize, ServesEveryNumberOfRows) {
  QuantizeCase host({.rows = 8, .columns = 256});
  for (const std::int64_t rows : {5, 0}) {
    host.x.shape[0] = host.out.shape[0] = rows;
    EXPECT_EQ(fault(host), "");
  }
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Quantize, RejectsProblemsInOneSentence) {
  const auto error = [](const QuantizeProblem& problem) {
    return error_of([&] { (void)plan(Device::cpu(), problem); });
  };
  EXPECT_EQ(error({.rows = -1, .columns = 16}), "problem.rows is -1, expected 0 to 2147483647");
  EXPECT_EQ(error({.rows = 1, .columns = 0}), "problem.columns is 0, expected 1 to 2147483647");
  EXPECT_EQ(error({.rows = 1, .columns = 24}),
            "problem.columns is 24, expected a multiple of 16 for fp8_block operands");
  EXPECT_EQ(error({.rows = 1, .columns = 16, .x = Format::fp32}), "problem.x is fp32, expected fp16 or bf16");
  EXPECT_EQ(error({.rows = 1, .columns = 16, .out = Format::nvfp4}),
            "problem.out is nvfp4, expected fp8_row or fp8_block");
}

TEST(Quantize, RejectsTensorsInOneSentenceAndWritesNothing) {
  QuantizeCase host({.rows = 4, .columns = 128});
  const auto error = [&](const std::function<void(Tensor & x, Tensor & out)>& change) {
    Tensor x = host.x;
    Tensor out = host.out;
    change(x, out);
    return error_of([&] { plan(Device::cpu(), host.problem).run({}, x, out); });
  };
  EXPECT_EQ(error([](Tensor& x, Tensor&) { x.shape[0] = 5; }),
            "x has 5 rows, expected 0 to 4, which the plan was made for");
  EXPECT_EQ(error([](Tensor& x, Tensor&) { x.rank = 1; }), "x has 1 dimensions, expected 2");
  EXPECT_EQ(error([](Tensor&, Tensor& out) { out.shape[0] = 3; }), "out is [3, 128], expected [4, 128]");
  EXPECT_EQ(error([](Tensor&, Tensor& out) { out.scales.data = nullptr; }),
            "out is fp8_block but has no scales: set Tensor::scales.data");
  EXPECT_EQ(error([&](Tensor&, Tensor& out) { out.data = host.values.data(); }),
            "out shares memory with x, expected an output apart from every operand");
  EXPECT_EQ(error([&](Tensor&, Tensor& out) { out.scales.data = host.values.data(); }),
            "out.scales share memory with x, expected scales apart from every tensor");
  EXPECT_EQ(error([&](Tensor&, Tensor& out) { out.scales.data = host.codes.data(); }),
            "out.scales share memory with the values of out, expected scales apart from every tensor");
  EXPECT_EQ(host.fault_after([&] { plan(Device::cpu(), host.problem).run({}, host.x, host.out); }), "");
}

TEST(Quantize, ProblemsAreKeysOfHashMaps) {
  std::unordered_map<QuantizeProblem, int> plans{{{.rows = 4, .columns = 128}, 1}};
  EXPECT_EQ(plans.count({.rows = 4, .columns = 128}), 1U);
  EXPECT_EQ(plans.count({.rows = 4, .columns = 128, .out = Format::fp8_row}), 0U);
}

}  // namespace
}  // namespace thresher
