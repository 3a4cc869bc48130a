#include "ops/validate_product.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/tensor_checks.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

const DualGemmProblem problem{.m = 2, .n = 4, .k = 16, .a = Format::fp16, .b = Format::nvfp4, .out = Format::fp16};

/// The sentence of the Error that `call` throws, or nothing.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return {};
}

/// Valid arguments for `problem`, to be spoiled one at a time.
struct Arguments {
  alignas(16) std::uint16_t a_data[2 * 16] = {};
  std::uint8_t b_data[4 * 8] = {};
  std::uint8_t scales[4] = {};
  alignas(16) std::uint16_t c_data[2 * 4] = {};
  Tensor a = Tensor::contiguous(a_data, Format::fp16, {2, 16});
  Tensor b1 = Tensor::nvfp4(b_data, scales, 4, 16);
  Tensor b2 = b1;
  Tensor c = Tensor::contiguous(c_data, Format::fp16, {2, 4});

  Arguments() = default;
  Arguments(const Arguments&) = delete;  // the views point into the object
  Arguments& operator=(const Arguments&) = delete;

  [[nodiscard]] std::string weights() const {
    return refusal([&] { validate_weights(problem, b1, b2, DeviceId{}); });
  }
  [[nodiscard]] std::string run(const void* workspace = nullptr, std::size_t bytes = 0) const {
    return refusal([&] { validate_run(problem, a, c, {}, {workspace, bytes, 16, DeviceId{}}); });
  }
};

TEST(ValidateProblem, AcceptsEveryMixOfOperands) {
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
        const DualGemmProblem mix{.m = 0, .n = 1, .k = 32, .a = a, .b = b, .out = out};
        EXPECT_EQ(refusal([&] { validate(mix); }), "");
      }
    }
  }
}

TEST(ValidateProblem, NamesWhatIsWrong) {
  DualGemmProblem wrong = problem;
  wrong.k = 24;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "problem.k is 24, expected a multiple of 16 for nvfp4 operands");
  wrong = problem;
  wrong.m = -1;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "problem.m is -1, expected 0 to 2147483647");
  wrong = problem;
  wrong.n = std::int64_t{1} << 31;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "problem.n is 2147483648, expected 0 to 2147483647");
  --wrong.n;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "");
  wrong = problem;
  wrong.out = Format::uint8;
  EXPECT_EQ(refusal([&] { validate(wrong); }),
            "problem.out is uint8, expected fp32, fp16, bf16, nvfp4, fp8_tensor, fp8_row or fp8_block");
  wrong.out = Format::nvfp4;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "problem.n is 4, expected a multiple of 16 for nvfp4 outputs");
  wrong.out = Format::fp8_block;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "problem.n is 4, expected a multiple of 128 for fp8_block outputs");
  wrong = problem;
  wrong.k = 0;
  EXPECT_EQ(refusal([&] { validate(wrong); }), "problem.k is 0, expected at least 1");
  wrong = problem;
  wrong.activation = {.kind = ActivationKind::swiglu_clamped, .limit = -7.0F};
  EXPECT_EQ(refusal([&] { validate(wrong); }), "activation.limit is -7, expected a number above 0");
}

/// The refusal after `spoil` has changed one thing.
template <class Spoil>
std::string weights_refusal(Spoil&& spoil) {
  Arguments arguments;
  spoil(arguments);
  return arguments.weights();
}

template <class Spoil>
std::string run_refusal(Spoil&& spoil) {
  Arguments arguments;
  spoil(arguments);
  return arguments.run();
}

TEST(ValidateWeights, NamesTheRoleOfTheOperand) {
  EXPECT_EQ(weights_refusal([](Arguments&) {}), "");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b2.shape[0] = 3; }), "b2 (up) is [3, 16], expected [4, 16]");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b1.scales.data = nullptr; }),
            "b1 (gate) is nvfp4 but has no scales: set Tensor::scales.data");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b1.scales.format = Format::uint8; }),
            "b1 (gate).scales are uint8, expected fp8_e4m3 for nvfp4");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b1.scales.block = {128, 128}; }),
            "b1 (gate).scales are one for 128 rows and 128 columns, expected 1 and 16 for nvfp4");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b1.strides[0] = 17; }),
            "b1 (gate) has row stride 17, expected a multiple of 2 (nvfp4 rows start on a byte)");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b1.format = Format::bf16; }),
            "b1 (gate) is bf16, but the problem says nvfp4");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.b1.device = {DeviceKind::cuda, 1}; }),
            "b1 (gate) is in the memory of GPU 1, expected the CPU: copy it there first");
}

const DualGemmProblem fp8_problem{
    .m = 2, .n = 130, .k = 144, .a = Format::fp8_block, .b = Format::fp8_block, .out = Format::fp16};

/// What is said of FP8 weights [130, 144] after `spoil` has changed those of the gate.
template <class Spoil>
std::string fp8_refusal(Format format, Spoil&& spoil) {
  std::vector<std::uint8_t> values(130 * 144);
  std::vector<float> scales(130 * 2);
  DualGemmProblem of = fp8_problem;
  of.a = of.b = format;
  Tensor gate = Tensor::fp8(values.data(), format, OperandRole::weights, scales.data(), 130, 144);
  const Tensor up = gate;
  spoil(gate);
  return refusal([&] { validate_weights(of, gate, up, DeviceId{}); });
}

TEST(ValidateWeights, ScalesOfFp8AreThoseOfWeights) {
  for (const Format format : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    EXPECT_EQ(fp8_refusal(format, [](Tensor&) {}), "");
  }
  EXPECT_EQ(fp8_refusal(Format::fp8_tensor, [](Tensor& x) { x.global_scale = nullptr; }), "");
  EXPECT_EQ(fp8_refusal(Format::fp8_row, [](Tensor& x) { x.scales.data = nullptr; }),
            "b1 (gate) is fp8_row but has no scales: set Tensor::scales.data");
  EXPECT_EQ(fp8_refusal(Format::fp8_block, [](Tensor& x) { x.describe_scales(OperandRole::tokens); }),
            "b1 (gate).scales are one for 1 rows and 128 columns, expected 128 and 128 for fp8_block");
  EXPECT_EQ(fp8_refusal(Format::fp8_block, [](Tensor& x) { x.scales.layout = ScaleLayout::column_major; }),
            "b1 (gate).scales are column-major, which scales of weights in fp8_block cannot be");
  EXPECT_EQ(fp8_refusal(Format::fp8_row, [](Tensor& x) { x.scales.layout = ScaleLayout::blocked; }),
            "b1 (gate).scales are blocked, which scales of weights in fp8_row cannot be");
  EXPECT_EQ(fp8_refusal(Format::fp8_row, [](Tensor& x) { x.scales.format = Format::fp8_e4m3; }),
            "b1 (gate).scales are fp8_e4m3, expected fp32 for fp8_row");
  const float one = 1;
  EXPECT_EQ(fp8_refusal(Format::fp8_block, [&](Tensor& x) { x.global_scale = &one; }),
            "b1 (gate) is fp8_block with a global scale, expected its scales alone");
  EXPECT_NE(
      fp8_refusal(Format::fp8_row, [](Tensor& x) { x.scales.data = static_cast<const std::byte*>(x.scales.data) + 2; })
          .find("expected an address that is a multiple of 4 bytes"),
      std::string::npos);
}

/// Whether C [rows, 4] at element `c_at` is refused beside A [2, 16] at element `a_at` of rows of 24 elements.
bool overlap_is_refused(std::int64_t c_at, std::int64_t rows, std::int64_t c_stride, std::int64_t a_at) {
  std::vector<std::uint16_t> memory(128);
  Tensor a = Tensor::contiguous(memory.data() + a_at, Format::fp16, {2, 16});
  a.strides[0] = 24;
  Tensor c = Tensor::contiguous(memory.data() + c_at, Format::fp16, {rows, 4});
  c.strides[0] = c_stride;
  return !refusal([&] { check_not_overlapping(c, "a", a); }).empty();
}

TEST(ValidateRun, TheOutputLiesApartFromTheOperands) {
  EXPECT_FALSE(overlap_is_refused(40, 2, 4, 0));   // behind A
  EXPECT_FALSE(overlap_is_refused(0, 2, 4, 8));    // before A
  EXPECT_FALSE(overlap_is_refused(16, 2, 24, 0));  // beside A, in the same rows
  EXPECT_FALSE(overlap_is_refused(0, 2, 24, 4));   // the same, on the other side
  EXPECT_FALSE(overlap_is_refused(16, 1, 4, 0));   // one row, in the gap between A's
  EXPECT_FALSE(overlap_is_refused(0, 0, 4, 0));    // nothing is written
  EXPECT_TRUE(overlap_is_refused(0, 2, 4, 0));     // A itself
  EXPECT_TRUE(overlap_is_refused(39, 2, 4, 0));    // A's last element
  EXPECT_TRUE(overlap_is_refused(0, 2, 4, 7));     // A's first element
  EXPECT_TRUE(overlap_is_refused(15, 2, 24, 0));   // the last column of A
  EXPECT_TRUE(overlap_is_refused(22, 2, 24, 0));   // out of one row into the next
  EXPECT_TRUE(overlap_is_refused(16, 2, 25, 0));   // beside A in the first row only
  const Arguments arguments;
  Tensor c = arguments.c;
  c.data = arguments.a.data;
  EXPECT_EQ(refusal([&] { validate_run(problem, arguments.a, c, {}, {nullptr, 0, 16, DeviceId{}}); }),
            "c shares memory with a, expected an output apart from every operand");
}

TEST(ValidateRun, NothingOfACallLiesInItsWorkspace) {
  Arguments arguments;
  alignas(256) static std::array<std::byte, 1024> workspace;
  EXPECT_EQ(arguments.run(workspace.data(), workspace.size()), "");
  arguments.a.data = workspace.data() + 992;
  EXPECT_EQ(arguments.run(workspace.data(), workspace.size()),
            "a shares memory with the workspace, expected a workspace apart from every tensor");
  EXPECT_EQ(arguments.run(workspace.data(), 512), "");  // beside it
  EXPECT_EQ(arguments.run(nullptr, 0), "");
  DualGemmProblem to_rows = problem;
  to_rows.out = Format::fp8_row;
  Tensor c = Tensor::contiguous(arguments.c_data, Format::fp8_row, {2, 4});
  c.describe_scales(OperandRole::tokens);
  c.scales.data = workspace.data() + 16;
  EXPECT_EQ(refusal([&] { validate_run(to_rows, Arguments().a, c, {}, {workspace.data(), 64, 16, DeviceId{}}); }),
            "c.scales share memory with the workspace, expected a workspace apart from every tensor");
}

TEST(ValidateRun, ScalesOfAFormatWithoutThemHaveNoLayout) {
  Arguments arguments;
  arguments.a.scales.layout = ScaleLayout::blocked;
  EXPECT_EQ(arguments.run(), "a.scales are blocked, but fp16 has none: leave the layout row-major");
}

TEST(ValidateRun, QuantizedOutputsHaveTheScalesOfTheirFormat) {
  const DualGemmProblem to_fp8{
      .m = 2, .n = 128, .k = 16, .a = Format::fp16, .b = Format::nvfp4, .out = Format::fp8_block};
  const Arguments arguments;
  alignas(16) std::uint8_t codes[2 * 128] = {};
  float scales[4] = {};
  const auto refused = [&](auto&& spoil) {
    Tensor c = Tensor::fp8(codes, Format::fp8_block, OperandRole::tokens, scales, 2, 128);
    spoil(c);
    return refusal([&] { validate_run(to_fp8, arguments.a, c, {}, {nullptr, 0, 16, DeviceId{}}); });
  };
  EXPECT_EQ(refused([](Tensor&) {}), "");
  EXPECT_EQ(refused([](Tensor& c) { c.scales.powers_of_two = true; }), "");
  EXPECT_EQ(refused([](Tensor& c) { c.scales.layout = ScaleLayout::column_major; }), "");
  EXPECT_EQ(refused([](Tensor& c) { c.scales.data = nullptr; }),
            "c is fp8_block but has no scales: set Tensor::scales.data");
  EXPECT_EQ(refused([](Tensor& c) { c.scales.layout = ScaleLayout::blocked; }),
            "c.scales are blocked, which scales of tokens in fp8_block cannot be");
  EXPECT_EQ(refused([&](Tensor& c) { c.global_scale = scales; }),
            "c is fp8_block with a global scale, expected its scales alone");
  EXPECT_EQ(refused([&](Tensor& c) { c.scales.data = codes + 252; }),
            "c.scales share memory with the values of c, expected scales apart from every tensor");
  EXPECT_EQ(refused([&](Tensor& c) { c.scales.data = arguments.a.data; }),
            "c.scales share memory with a, expected scales apart from every tensor");
  DualGemmProblem to_tensor = to_fp8;
  to_tensor.out = Format::fp8_tensor;
  Tensor c = Tensor::fp8(codes, Format::fp8_tensor, OperandRole::tokens, scales, 2, 128);
  c.scales.powers_of_two = true;
  EXPECT_EQ(refusal([&] { validate_run(to_tensor, arguments.a, c, {}, {nullptr, 0, 16, DeviceId{}}); }),
            "c.scales are to be powers of two, which fp8_tensor has none of: fp8_row and fp8_block outputs may have "
            "them");
}

TEST(ValidateRun, ChecksStridesAlignmentAndWorkspace) {
  EXPECT_EQ(run_refusal([](Arguments&) {}), "");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.a.strides[1] = 2; }),
            "a has stride 2 along its last dimension, expected 1 (contiguous)");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.a.shape[0] = 3; }),
            "a has 3 rows, expected 0 to 2, which the plan was made for");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.c.strides[0] = 3; }),
            "c has row stride 3, which is less than its row length 4");
  EXPECT_EQ(
      run_refusal([](Arguments& x) { x.c.strides[0] = std::int64_t{1} << 62; }),
      "c has stride 4611686018427387904 along dimension 0, expected at most 72057594037927936 with an extent of 2");
  EXPECT_NE(run_refusal([](Arguments& x) {
              x.a.data = x.a_data + 1;
            }).find("expected an address that is a multiple of 16 bytes"),
            std::string::npos);
  EXPECT_NE(run_refusal([](Arguments& x) {
              x.c.data = x.c_data + 4;  // 8 bytes on
            }).find("c starts at"),
            std::string::npos);
  EXPECT_EQ(run_refusal([](Arguments& x) { x.c.data = nullptr; }), "c has a null data pointer");
  const Arguments arguments;
  alignas(256) const std::uint8_t workspace[512] = {};
  EXPECT_EQ(arguments.run(workspace, 256), "");
  EXPECT_NE(arguments.run(workspace + 128, 256).find("expected an address that is a multiple of 256 bytes"),
            std::string::npos);
  EXPECT_EQ(arguments.run(nullptr, 512), "workspace is null, expected 512 bytes (workspace_bytes())");
}

}  // namespace
}  // namespace thresher::ops
