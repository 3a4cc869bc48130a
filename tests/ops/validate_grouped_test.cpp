// Every kind of bad input of the grouped products: one sentence each, before anything is written.
#include "ops/validate_product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "thresher/error.hpp"

namespace thresher::ops::grouped {
namespace {

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

/// Valid arguments, to be spoiled one at a time: 2 experts, 3 rows, N = 4, K = 16.
struct Arguments {
  GroupedProblem problem{.experts = 2,
                         .rows = 3,
                         .n = 4,
                         .k = 16,
                         .tokens = 5,
                         .a = Format::fp16,
                         .b = Format::nvfp4,
                         .out = Format::fp16,
                         .activation = Activation{},
                         .bias = true,
                         .row_weights = true};
  alignas(16) std::uint16_t a_data[2 * 3 * 16] = {};
  alignas(16) std::uint16_t c_data[2 * 3 * 4] = {};
  std::uint8_t b_data[2 * 8 * 8] = {};
  std::uint8_t scale_data[2 * 8] = {};
  float globals[2] = {};
  float bias_data[2 * 8] = {};
  alignas(16) std::int32_t group_data[3] = {};
  alignas(16) std::int32_t id_data[3] = {};
  alignas(16) float weight_data[6] = {};
  GroupedWeights weights;
  GroupedTensors tensors;

  explicit Arguments(RowLayout layout = RowLayout::packed) {
    problem.layout = layout;
    weights.b1 = stack(4);
    weights.b2 = stack(4);
    weights.bias1 = Tensor::contiguous(bias_data, Format::fp32, {2, 4});
    weights.bias2 = Tensor::contiguous(bias_data + 8, Format::fp32, {2, 4});
    const bool has_slots = layout == RowLayout::slots;
    tensors.a = has_slots ? Tensor::contiguous(a_data, Format::fp16, {2, 3, 16})
                          : Tensor::contiguous(a_data, Format::fp16, {3, 16});
    tensors.c = has_slots ? Tensor::contiguous(c_data, Format::fp16, {2, 3, 4})
                          : Tensor::contiguous(c_data, Format::fp16, {3, 4});
    (has_slots ? tensors.counts : tensors.offsets) = Tensor::contiguous(group_data, Format::int32, {has_slots ? 2 : 3});
    if (layout == RowLayout::gathered) {
      tensors.row_ids = Tensor::contiguous(id_data, Format::int32, {3});
    }
    tensors.row_weights = has_slots ? Tensor::contiguous(weight_data, Format::fp32, {2, 3})
                                    : Tensor::contiguous(weight_data, Format::fp32, {3});
  }
  Arguments(const Arguments&) = delete;

  Tensor stack(std::int64_t rows) {
    Tensor tensor = Tensor::contiguous(b_data, Format::nvfp4, {2, rows, 16});
    tensor.scales.data = scale_data;
    tensor.global_scale = globals;
    return tensor;
  }
  /// Gate and up in one tensor.
  void fuse(GateUpOrder order) {
    weights.b1 = stack(8);
    weights.b2 = {};
    weights.order = order;
    weights.bias1 = Tensor::contiguous(bias_data, Format::fp32, {2, 8});
    weights.bias2 = {};
  }
};

using Spoil = std::function<void(Arguments&)>;

std::string problem_refusal(const Spoil& spoil, RowLayout layout = RowLayout::packed) {
  Arguments x(layout);
  spoil(x);
  return refusal([&] { validate(x.problem); });
}

std::string weights_refusal(const Spoil& spoil) {
  Arguments x;
  spoil(x);
  return refusal([&] {
    validate_weights(x.weights, DeviceId{});
    validate_weights(x.problem, shape_of(x.weights));
  });
}

std::string run_refusal(const Spoil& spoil, RowLayout layout = RowLayout::packed) {
  Arguments x(layout);
  spoil(x);
  return refusal([&] { validate_run(x.problem, x.tensors, x.weights, {nullptr, 0, 16, DeviceId{}}); });
}

TEST(ValidateGrouped, AcceptsEveryLayoutAndEveryFormOfWeights) {
  for (const RowLayout layout : all_row_layouts) {
    EXPECT_EQ(problem_refusal([](Arguments&) {}, layout), "");
    EXPECT_EQ(run_refusal([](Arguments&) {}, layout), "");
  }
  EXPECT_EQ(weights_refusal([](Arguments&) {}), "");
  for (const GateUpOrder order : all_gate_up_orders) {
    EXPECT_EQ(weights_refusal([&](Arguments& x) { x.fuse(order); }), "");
  }
  EXPECT_EQ(weights_refusal([](Arguments& x) {
              x.problem.activation.reset();
              x.weights.b2 = x.weights.bias2 = {};
            }),
            "");
}

TEST(ValidateGroupedProblem, NamesWhatIsWrong) {
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.experts = 0; }),
            "problem.experts is 0, expected 1 to 2147483647");
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.rows = -1; }), "problem.rows is -1, expected 0 to 2147483647");
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.k = 24; }),
            "problem.k is 24, expected a multiple of 16 for nvfp4 operands");
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.k = 0; }), "problem.k is 0, expected at least 1");
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.a = Format::fp8_e4m3; }),
            "problem.a is fp8_e4m3, expected fp16, bf16, nvfp4, fp8_tensor, fp8_row or fp8_block");
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.out = Format::nvfp4; }),
            "problem.n is 4, expected a multiple of 16 for nvfp4 outputs");
  EXPECT_EQ(problem_refusal([](Arguments& x) { x.problem.row_ids_divisor = 0; }, RowLayout::gathered),
            "problem.row_ids_divisor is 0, expected 1 to 2147483647");
  EXPECT_EQ(problem_refusal(
                [](Arguments& x) {
                  x.problem.experts = 1 << 16;
                  x.problem.rows = 1 << 16;
                },
                RowLayout::slots),
            "problem.experts times problem.rows (the capacity of a slot) is 65536 times 65536, expected at most "
            "2147483647");
  EXPECT_EQ(problem_refusal(
                [](Arguments& x) {
                  x.problem.tokens = std::int64_t{1} << 30;
                  x.problem.row_ids_divisor = 8;
                },
                RowLayout::gathered),
            "problem.tokens times problem.row_ids_divisor is 1073741824 times 8, expected at most 2147483648: ids are "
            "int32");
  for (const float limit : {0.0F, -7.0F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_NE(problem_refusal([&](Arguments& x) {
                x.problem.activation->kind = ActivationKind::swiglu_clamped;
                x.problem.activation->limit = limit;
              }).find("expected a number above 0"),
              std::string::npos);
  }
}

TEST(ValidateGroupedWeights, NamesWhatIsWrong) {
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b1.rank = 2; }),
            "b1 (gate) has 2 dimensions, expected 3: [experts, n, k]");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b1.data = nullptr; }), "b1 (gate) has a null data pointer");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b1.format = x.weights.b2.format = Format::fp8_e4m3; }),
            "b1 (gate) is fp8_e4m3, expected fp16, bf16, nvfp4, fp8_tensor, fp8_row or fp8_block");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b1.scales.data = nullptr; }),
            "b1 (gate) is nvfp4 but has no scales: set Tensor::scales.data");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b2.scales.block = {128, 128}; }),
            "b2 (up).scales are one for 128 rows and 128 columns, expected 1 and 16 for nvfp4");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b2.scales.layout = ScaleLayout::blocked; }),
            "b2 (up) has blocked scales, expected row-major ones, as b1 (gate)");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b2.shape[1] = 3; }),
            "b2 (up) is [2, 3, 16], expected [2, 4, 16]");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b2.format = Format::fp16; }),
            "b2 (up) is fp16, expected nvfp4, as b1 (gate)");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b1.strides[0] = 80; }),
            "b1 (gate) is nvfp4 with the strides [80, 16, 1], expected a contiguous tensor, whose scales are too");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b1.device = {DeviceKind::cuda, 1}; }),
            "b1 (gate) is in the memory of GPU 1, expected the CPU: copy it there first");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.problem.experts = 3; }),
            "the weights have 2 experts, but the problem says 3");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.problem.n = 5; }),
            "the weights have 4 rows an expert (n), but the problem says 5");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.problem.k = 32; }),
            "the weights have 16 columns (k), but the problem says 32");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.problem.b = Format::bf16; }),
            "the weights are nvfp4, but the problem says bf16");
}

TEST(ValidateGroupedWeights, TheOrderOfGateAndUpMustBeSaid) {
  EXPECT_EQ(weights_refusal([](Arguments& x) {
              x.fuse(GateUpOrder::gate_first);
              x.weights.order.reset();
              x.weights.bias1 = {};
              x.problem.bias = false;
            }),
            "b1 is [2, 8, 16], the rows of gate and up, but weights.order is missing: say gate-first, up-first or "
            "interleaved, for a wrong order gives wrong numbers and no error");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.order = GateUpOrder::up_first; }),
            "weights.order is up-first, which is of one tensor of gate and up, but b2 is given too: leave one of them "
            "out");
  EXPECT_EQ(weights_refusal([](Arguments& x) {
              x.fuse(GateUpOrder::interleaved);
              x.weights.b1 = x.stack(7);
            }),
            "b1 (gate and up) has 7 rows for each expert, expected an even number: half of them gate, half up");
  EXPECT_EQ(weights_refusal([](Arguments& x) {
              x.fuse(GateUpOrder::interleaved);
              x.weights.b1.scales.layout = ScaleLayout::blocked;
            }),
            "b1 (gate and up) has blocked scales, expected row-major ones in one tensor of both: give two tensors");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.up_global_scale = x.globals; }),
            "weights.up_global_scale is given without weights.order, expected it with one tensor of gate and up alone: "
            "set b2.global_scale");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.problem.activation.reset(); }),
            "the weights are gate and up, but the problem has no activation: expected one matrix an expert");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.b2 = x.weights.bias2 = {}; }),
            "the weights are one matrix an expert, but the problem has an activation: expected gate and up");
}

TEST(ValidateGroupedWeights, BiasesAreAsTheWeightsAre) {
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.problem.bias = false; }),
            "the weights have a bias, but problem.bias is false");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.bias1 = x.weights.bias2 = {}; }),
            "the weights have no bias, but problem.bias is true");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.bias2 = {}; }),
            "bias1 is given without bias2, expected both or neither");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.bias1 = {}; }),
            "bias2 is given without bias1, expected it beside bias1 and b2 alone");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.bias1.shape[1] = 8; }), "bias1 is [2, 8], expected [2, 4]");
  EXPECT_EQ(weights_refusal([](Arguments& x) { x.weights.bias2.format = Format::int32; }),
            "bias2 is int32, expected fp32, fp16 or bf16");
}

TEST(ValidateGroupedRun, OffsetsAndCountsAreInt32OfTheRightLengthAndPlace) {
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.offsets.format = Format::fp32; }),
            "offsets is fp32, expected int32");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.offsets.shape[0] = 2; }), "offsets is [2], expected [3]");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.counts.shape[0] = 3; }, RowLayout::slots),
            "counts is [3], expected [2]");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.offsets.device = {DeviceKind::cuda, 0}; }),
            "offsets is in the memory of GPU 0, expected the CPU: copy it there first");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.offsets = {}; }), "offsets is fp16, expected int32");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.offsets.strides[0] = 2; }),
            "offsets is not contiguous, expected elements one behind the other");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.counts = x.tensors.offsets; }),
            "counts is given, but these rows have offsets: counts are for slots");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.offsets = x.tensors.counts; }, RowLayout::slots),
            "offsets is given, but slots have counts");
}

TEST(ValidateGroupedRun, NamesWhatIsWrong) {
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.shape[0] = 4; }),
            "c has 4 rows, expected 0 to 3, which the plan was made for");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.shape[1] = 4; }, RowLayout::slots),
            "c has 4 rows in a slot, expected 0 to 3, which the plan was made for");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.rank = 1; }), "c has 1 dimensions, expected 2 with packed rows");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.a.rank = 2; }, RowLayout::slots),
            "a has 2 dimensions, expected 3 with slots rows");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.a.shape[0] = 2; }), "a is [2, 16], expected [3, 16]");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.a.shape[0] = 6; }, RowLayout::gathered),
            "a has 6 rows, expected 0 to 5, the tokens that the plan was made for");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.a.format = Format::bf16; }),
            "a is bf16, but the problem says fp16");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.data = nullptr; }), "c has a null data pointer");
  const std::string unaligned =
      run_refusal([](Arguments& x) { x.tensors.a.data = static_cast<std::uint16_t*>(x.tensors.a.data) + 1; });
  EXPECT_NE(unaligned.find("expected an address that is a multiple of 16 bytes"), std::string::npos) << unaligned;
  const std::string unaligned_output =
      run_refusal([](Arguments& x) { x.tensors.c.data = static_cast<std::uint16_t*>(x.tensors.c.data) + 4; });
  EXPECT_EQ(unaligned_output.find("c starts at "), 0) << unaligned_output;
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.row_ids.shape[0] = 2; }, RowLayout::gathered),
            "row_ids is [2], expected [3]");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.row_ids = x.tensors.offsets; }),
            "row_ids is given, but only gathered rows have ids");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.row_weights.format = Format::fp16; }),
            "row_weights is fp16, expected fp32");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.row_weights.shape[0] = 1; }), "row_weights is [1], expected [3]");
  EXPECT_EQ(run_refusal([](Arguments& x) { x.problem.row_weights = false; }),
            "row_weights is given, but problem.row_weights is false");
}

TEST(ValidateGroupedRun, TheWorkspaceIsThereAndAligned) {
  const Arguments x;
  EXPECT_EQ(refusal([&] { validate_run(x.problem, x.tensors, x.weights, {nullptr, 64, 16, DeviceId{}}); }),
            "workspace is null, expected 64 bytes (workspace_bytes())");
  alignas(256) std::byte memory[512];
  EXPECT_EQ(refusal([&] { validate_run(x.problem, x.tensors, x.weights, {memory, 64, 16, DeviceId{}}); }), "");
  EXPECT_NE(refusal([&] {
              validate_run(x.problem, x.tensors, x.weights, {memory + 8, 64, 16, DeviceId{}});
            }).find("multiple of 256 bytes"),
            std::string::npos);
}

TEST(ValidateGroupedRun, TheOutputLiesApartFromEverythingElse) {
  const auto shared = [](const char* argument) {
    return std::string("c shares memory with ") + argument + ", expected an output apart from every operand";
  };
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.data = x.tensors.a.data; }), shared("a"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.data = x.tensors.offsets.data; }), shared("offsets"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.data = x.tensors.counts.data; }, RowLayout::slots),
            shared("counts"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.data = x.tensors.row_ids.data; }, RowLayout::gathered),
            shared("row_ids"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.c.data = x.tensors.row_weights.data; }), shared("row_weights"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.weights.b1.data = x.tensors.c.data; }), shared("b1"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.weights.bias2.data = x.tensors.c.data; }), shared("bias2"));
  EXPECT_EQ(run_refusal([](Arguments& x) { x.tensors.counts.data = x.c_data + 3 * 4; }, RowLayout::slots),
            shared("counts"));  // where the second slot of C begins
}

/// B1 of two experts has 64 bytes, and begins so many before C.
std::string refusal_of_weights_before_the_output(std::ptrdiff_t bytes) {
  alignas(16) std::byte memory[128] = {};
  return run_refusal([&](Arguments& x) {
    x.weights.b1.data = memory + 80 - bytes;
    x.tensors.c.data = memory + 80;
  });
}

TEST(ValidateGroupedRun, TheOutputLiesApartFromEveryByteOfAStack) {
  const std::string shared = "c shares memory with b1, expected an output apart from every operand";
  EXPECT_EQ(refusal_of_weights_before_the_output(64), "");
  EXPECT_EQ(refusal_of_weights_before_the_output(63), shared);  // in B1's last byte
  EXPECT_EQ(refusal_of_weights_before_the_output(32), shared);  // where the second expert's matrix begins
  EXPECT_EQ(refusal_of_weights_before_the_output(-23), shared);
  EXPECT_EQ(refusal_of_weights_before_the_output(-24), "");  // behind the 3 rows of C
}

}  // namespace
}  // namespace thresher::ops::grouped
