// `thresher run grouped-dual-gemm`, `run grouped-gemm`, `run gemm` and `plan` of all as a user calls them: results
// against another computation of the formula, and one sentence with status 2 for bad input.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/refusal.hpp"
#include "cli/stored_file.hpp"
#include "formats/numbers.hpp"
#include "formats/safetensors.hpp"
#include "support/silu.hpp"

namespace thresher::testing {
namespace {

using formats::Dtype;

template <class Element>
Stored stored(Dtype dtype, std::vector<std::int64_t> shape, const std::vector<Element>& values) {
  Stored made{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(Element))};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

constexpr std::int64_t experts = 3;
constexpr std::int64_t rows = 7;
constexpr std::int64_t n = 4;
constexpr std::int64_t k = 16;

/// Small numbers that bf16 holds.
float number(std::int64_t i) { return static_cast<float>((i * 7 + i / 5) % 9 - 4) / 4.0F; }

std::vector<float> numbers(std::int64_t count, std::int64_t from) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(number(from + i));
  }
  return values;
}

Stored bf16(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) {
    bits.push_back(formats::float_to_bf16(value));
  }
  return stored(Dtype::bf16, std::move(shape), bits);
}

Stored i32(const std::vector<std::int32_t>& values) { return stored(Dtype::i32, {std::ssize(values)}, values); }
Stored f32(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return stored(Dtype::f32, std::move(shape), values);
}

/// Rows 1 and 2 are expert 0's, none expert 1's, 3 to 5 expert 2's.
const std::vector<std::int32_t> offsets{1, 3, 3, 6};

struct Numbers {
  std::vector<float> a = numbers(rows * k, 1);
  std::vector<float> gate = numbers(experts * n * k, 500);
  std::vector<float> up = numbers(experts * n * k, 900);

  [[nodiscard]] double product(const std::vector<float>& weights, std::int64_t a_row, std::int64_t expert,
                               std::int64_t column) const {
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      sum += static_cast<double>(a[static_cast<std::size_t>(a_row * k + i)]) *
             static_cast<double>(weights[static_cast<std::size_t>((expert * n + column) * k + i)]);
    }
    return sum;
  }
};

File grouped_file() {
  const Numbers of;
  return {{"a", bf16({rows, k}, of.a)},
          {"b1", bf16({experts, n, k}, of.gate)},
          {"b2", bf16({experts, n, k}, of.up)},
          {"offsets", i32(offsets)}};
}

class Grouped : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path(const char* name) const { return folder_.path() / name; }
  [[nodiscard]] Outcome thresher(const std::string& arguments) const { return run_thresher(folder_.path(), arguments); }
  [[nodiscard]] Outcome run(const File& file, const std::string& more = "",
                            const std::string& operation = "grouped-dual-gemm") const {
    write(path("in.safetensors"), file);
    return thresher("run " + operation + " --in in.safetensors --out out.safetensors --device cpu --out-type fp32 " +
                    more);
  }
  void expect_refusal(const Outcome& outcome, const std::string& part) const {
    thresher::testing::expect_refused(outcome, folder_.path(), part);
  }
  [[nodiscard]] std::vector<float> result(const std::vector<std::int64_t>& shape) const {
    const formats::SafetensorsFile file(path("out.safetensors"));
    EXPECT_EQ(file.find("c")->shape, shape);
    const std::vector<std::byte> bytes = file.read(*file.find("c"));
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  /// silu(gate)·up on the rows that experts own, 0 elsewhere.
  void expect_result(double gate_factor = 1, double up_factor = 1) const {
    const Numbers of;
    const std::vector<float> c = result({rows, n});
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t expert = row < 3 ? 0 : 2;
      for (std::int64_t column = 0; column < n; ++column) {
        const double gate = gate_factor * of.product(of.gate, row, expert, column);
        const double up = up_factor * of.product(of.up, row, expert, column);
        const bool is_owned = row >= 1 && row < 6;
        EXPECT_NEAR(c[static_cast<std::size_t>(row * n + column)], is_owned ? silu(gate) * up : 0.0, 1e-4)
            << row << ", " << column;
      }
    }
  }

  ScratchFolder folder_;
};

TEST_F(Grouped, EachExpertTakesItsOwnRowsAndWeights) {
  const Outcome outcome = run(grouped_file());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("c [7, 4] fp32 of 3 experts, packed rows"), std::string::npos) << outcome.out;
  expect_result();
}

TEST_F(Grouped, GateAndUpInOneTensorNeedTheirOrder) {
  const Numbers of;
  File file = grouped_file();
  file.erase("b1");
  file.erase("b2");
  std::vector<float> interleaved;
  for (std::int64_t row = 0; row < experts * n; ++row) {
    const auto at = static_cast<std::ptrdiff_t>(row * k);
    interleaved.insert(interleaved.end(), of.gate.begin() + at, of.gate.begin() + at + k);
    interleaved.insert(interleaved.end(), of.up.begin() + at, of.up.begin() + at + k);
  }
  file["gate_up"] = bf16({experts, 2 * n, k}, interleaved);
  ASSERT_EQ(run(file, "--gate-up gate_up --gate-up-order interleaved").status, 0);
  expect_result();
  std::filesystem::remove(path("out.safetensors"));
  EXPECT_EQ(run(file, "--gate-up gate_up").status, 2);
}

/// Codes of 1 with scales of 1: only the global scales tell experts and matrices apart.
File nvfp4_file(const std::string& values_ending = "") {
  File file{{"a", bf16({rows, k}, std::vector<float>(rows * k, 1.0F))}, {"offsets", i32(offsets)}};
  for (const char* name : {"b1", "b2"}) {
    file[name + values_ending] =
        stored(Dtype::u8, {experts, n, k / 2}, std::vector<std::uint8_t>(experts * n * k / 2, 0x22));
    file[std::string(name) + "_scale"] =
        stored(Dtype::f8_e4m3, {experts, n, 1}, std::vector<std::uint8_t>(experts * n, 0x38));
  }
  return file;
}

TEST_F(Grouped, Nvfp4WeightsHaveAGlobalScaleForEachExpert) {
  File multiplies = nvfp4_file();
  multiplies["b1_scale_2"] = f32({experts}, {0.25F, 1.0F, 0.5F});
  multiplies["b2_scale_2"] = f32({experts}, {2.0F, 1.0F, 4.0F});
  File divides = nvfp4_file("_packed");
  divides["b1_global_scale"] = f32({experts}, {4.0F, 1.0F, 2.0F});
  divides["b2_global_scale"] = f32({experts}, {0.5F, 1.0F, 0.25F});
  for (const File& file : {multiplies, divides}) {
    const Outcome outcome = run(file);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<float> c = result({rows, n});
    EXPECT_NEAR(c[1 * n], silu(16 * 0.25) * 32, 1e-3);
    EXPECT_NEAR(c[5 * n], silu(16 * 0.5) * 64, 1e-3);
    EXPECT_EQ(c[6 * n], 0.0F);
    std::filesystem::remove(path("out.safetensors"));
  }
}

/// What would change what the weights mean is not passed over.
TEST_F(Grouped, PartsOfWeightsThatAreNotReadAreRefused) {
  File either = nvfp4_file();
  either["b1_global_scale"] = f32({experts}, {4.0F, 1.0F, 2.0F});
  expect_refusal(run(either), "'b1_global_scale' beside 'b1', which may multiply or divide");
  File without = nvfp4_file("_packed");
  expect_refusal(run(without), "but its global scale 'b1_global_scale' is missing");
  File zeros = grouped_file();
  zeros["b2_zero_point"] = f32({experts, n}, numbers(experts * n, 0));
  expect_refusal(run(zeros), "'b2_zero_point' beside 'b2': quantization with a zero point is not read");
  File biased = grouped_file();
  biased["a_bias"] = f32({rows}, numbers(rows, 0));
  expect_refusal(run(biased), "'a_bias' beside 'a': no bias is added here");
}

TEST_F(Grouped, PaddingOfEveryExpertsBlockedScalesIsZero) {
  File file = nvfp4_file();
  std::vector<std::uint8_t> scales(experts * 512, 0);
  file["b1_scale"] = file["b2_scale"] = stored(Dtype::f8_e4m3, {experts, 512}, scales);
  EXPECT_EQ(run(file, "--scale-layout blocked").status, 0);
  std::filesystem::remove(path("out.safetensors"));
  scales[2 * 512 + 511] = 0x38;
  file["b2_scale"] = stored(Dtype::f8_e4m3, {experts, 512}, scales);
  expect_refusal(run(file, "--scale-layout blocked"), "tensor 'b2_scale' of in.safetensors");
}

TEST_F(Grouped, LayersAreNamedWithOrWithoutTheirWeight) {
  const Numbers of;
  File file{{"x.weight", bf16({rows, k}, of.a)},
            {"down.weight", bf16({experts, n, k}, of.gate)},
            {"down.bias", f32({experts, n}, numbers(experts * n, 40))},
            {"offsets", i32(offsets)}};
  for (const char* names : {"--a x --b down", "--a x.weight --b down.weight"}) {
    const Outcome outcome = run(file, names, "grouped-gemm");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NEAR(result({rows, n})[1 * n + 2], of.product(of.gate, 1, 0, 2) + static_cast<double>(number(42)), 1e-5);
  }
}

TEST_F(Grouped, TheDownProjectionHasOneMatrix) {
  const Numbers of;
  File file{{"a", bf16({rows, k}, of.a)},
            {"b", bf16({experts, n, k}, of.gate)},
            {"b_bias", f32({experts, n}, numbers(experts * n, 40))},
            {"row_weights", f32({rows}, {9, 0.5F, 2, 1, 1, -1, 9})},
            {"offsets", i32(offsets)}};
  const Outcome outcome = run(file, "", "grouped-gemm");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<float> c = result({rows, n});
  const auto bias = [](std::int64_t expert, std::int64_t column) {
    return static_cast<double>(number(40 + expert * n + column));
  };
  EXPECT_NEAR(c[1 * n + 2], (of.product(of.gate, 1, 0, 2) + bias(0, 2)) * 0.5, 1e-5);
  EXPECT_NEAR(c[5 * n + 3], (of.product(of.gate, 5, 2, 3) + bias(2, 3)) * -1, 1e-5);
}

TEST_F(Grouped, AGemmTakesOneMatrixAndItsBias) {
  const Numbers of;
  const std::vector<float> one(of.gate.begin(), of.gate.begin() + n * k);
  File file{{"a", bf16({rows, k}, of.a)}, {"b", bf16({n, k}, one)}, {"b_bias", f32({n}, numbers(n, 40))}};
  const Outcome outcome = run(file, "", "gemm");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("c [7, 4] fp32 = a·bᵀ + bias, strategy by_expert"), std::string::npos) << outcome.out;
  const std::vector<float> c = result({rows, n});
  for (std::int64_t row = 0; row < rows; ++row) {
    EXPECT_NEAR(c[static_cast<std::size_t>(row * n + 2)],
                of.product(of.gate, row, 0, 2) + static_cast<double>(number(42)), 1e-5);
  }
  std::filesystem::remove(path("out.safetensors"));

  const File layer{
      {"x.weight", bf16({rows, k}, of.a)}, {"down.weight", bf16({n, k}, one)}, {"down.bias", f32({n}, numbers(n, 40))}};
  ASSERT_EQ(run(layer, "--a x --b down", "gemm").status, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    EXPECT_NEAR(result({rows, n})[static_cast<std::size_t>(row * n + 2)],
                of.product(of.gate, row, 0, 2) + static_cast<double>(number(42)), 1e-5);
  }
  std::filesystem::remove(path("out.safetensors"));

  File stack = layer;
  stack["down.weight"] = bf16({experts, n, k}, of.gate);
  expect_refusal(run(stack, "--a x --b down", "gemm"), "must have 2 dimensions: [rows, K]");
  File shallow = layer;
  shallow["x.weight"] = bf16({2 * rows, k / 2}, of.a);
  expect_refusal(run(shallow, "--a x --b down", "gemm"),
                 "has K = 8, but tensor 'down.weight' of in.safetensors has K = 16");
  File biased = layer;
  biased["down.bias"] = f32({n + 1}, numbers(n + 1, 0));
  expect_refusal(run(biased, "--a x --b down", "gemm"), "bias is [5], expected [4]");
}

TEST_F(Grouped, CountsMeanSlotsAndIdsMeanGatheredRows) {
  const Numbers of;
  File slots = grouped_file();
  slots.erase("offsets");
  slots["a"] = bf16({experts, 2, k}, numbers(experts * 2 * k, 1));
  slots["counts"] = i32({2, 0, 1});
  const Outcome in_slots = run(slots);
  ASSERT_EQ(in_slots.status, 0) << in_slots.err;
  EXPECT_NE(in_slots.out.find("of 3 experts, rows in slots, "), std::string::npos) << in_slots.out;
  const std::vector<float> of_slots = result({experts, 2, n});
  EXPECT_NEAR(of_slots[1 * n], silu(of.product(of.gate, 1, 0, 0)) * of.product(of.up, 1, 0, 0), 1e-4);
  EXPECT_NEAR(of_slots[4 * n], silu(of.product(of.gate, 4, 2, 0)) * of.product(of.up, 4, 2, 0), 1e-4);
  EXPECT_EQ(of_slots[5 * n], 0.0F);

  File gathered = grouped_file();
  gathered["offsets"] = i32({0, 2, 2, 4});
  gathered["row_ids"] = i32({12, 12, -1, 7});
  ASSERT_EQ(run(gathered, "--row-ids-divisor 2").status, 0);
  const std::vector<float> of_ids = result({4, n});
  EXPECT_NEAR(of_ids[1 * n], silu(of.product(of.gate, 6, 0, 0)) * of.product(of.up, 6, 0, 0), 1e-4);
  EXPECT_EQ(of_ids[2 * n], 0.0F);
  EXPECT_NEAR(of_ids[3 * n], silu(of.product(of.gate, 3, 2, 0)) * of.product(of.up, 3, 2, 0), 1e-4);
}

TEST_F(Grouped, OffsetsThatMakeNoSenseAreSaidToBeLimited) {
  File file = grouped_file();
  file["offsets"] = i32({1, 3, 2, 100});
  const Outcome outcome = run(file);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("warning: offsets decrease; an offset or a count exceeds the rows there are"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Grouped, BadInputIsOneSentence) {
  File without = grouped_file();
  without.erase("offsets");
  expect_refusal(run(without), "there are none of offsets [E+1] and counts [E], expected one");
  File floats = grouped_file();
  floats["offsets"] = f32({experts + 1}, {0, 1, 2, 3});
  expect_refusal(run(floats), "tensor 'offsets' of in.safetensors is F32 [4], but must be I32");
  File few = grouped_file();
  few["offsets"] = i32({0, 3, 7});
  expect_refusal(run(few), "offsets is [3], expected [4]");
  File flat = grouped_file();
  flat["b1"] = bf16({experts * n, k}, Numbers().gate);
  expect_refusal(run(flat), "must have 3 dimensions: [experts, rows, K]");
  File other = grouped_file();
  other["b2"] = bf16({experts, n + 1, k}, numbers(experts * (n + 1) * k, 0));
  expect_refusal(run(other), "b2 (up) is [3, 5, 16], expected [3, 4, 16]");
  File half = grouped_file();
  half["b1_bias"] = f32({experts, n}, numbers(experts * n, 0));
  expect_refusal(run(half), "bias1 is given without bias2");
  File deep = grouped_file();
  deep["a"] = bf16({rows, 2 * k}, numbers(rows * 2 * k, 0));
  expect_refusal(run(deep), "tensor 'b1' of in.safetensors has K = 16, but tensor 'a' of in.safetensors has K = 32");
  expect_refusal(run(grouped_file(), "--gate b1 --up b1"), "--gate and --up both name 'b1'");
  expect_refusal(run(grouped_file(), "--row-ids-divisor 2"), "there are no row_ids: leave it out");
  File unscaled = grouped_file();
  unscaled["b1"] = stored(Dtype::u8, {experts, n, k / 2}, std::vector<std::uint8_t>(experts * n * k / 2));
  expect_refusal(run(unscaled), "but its scales 'b1_scale' are missing");
}

TEST_F(Grouped, PlanSaysWhatACardWouldRun) {
  const Outcome missing = thresher("plan grouped-dual-gemm --experts 8 --rows 64 --n 64");
  expect_refusal(missing, "plan grouped-dual-gemm: --k is missing");
  expect_refusal(thresher("plan grouped-gemm --experts 8 --rows 64 --n 7 --k 7"),
                 "problem.k is 7, expected a multiple of 8 for bf16 operands");
  expect_refusal(thresher("plan grouped-gemm --experts 8 --rows 64 --n 64 --k 64 --tokens 9"),
                 "plan grouped-gemm: --tokens is of --layout gathered");
  expect_refusal(thresher("plan --device B200 grouped-gemm --experts 8 --rows 64 --n 64 --k 64"),
                 "plan grouped-gemm: --device stands before grouped-gemm");
  expect_refusal(thresher("plan 64x64x64 attention --queries 64"), "plan attention: problem stands before attention");
  const Outcome planned = thresher("plan gemm --m 64 --n 4096 --k 7168 --a fp8_block --b fp8_block");
  EXPECT_EQ(planned.status, 0);
  EXPECT_NE(planned.out.find("columns"), std::string::npos) << planned.out;
  EXPECT_NE(thresher("plan gemm --m 64 --n 8").err.find("plan gemm: --k is missing"), std::string::npos);
  const Outcome asked = thresher("plan grouped-gemm --experts 8 --rows 64 --n 64 --k 64 --json");
  EXPECT_NE(asked.out.find("\"choices\""), std::string::npos) << asked.out << asked.err;
}

}  // namespace
}  // namespace thresher::testing
