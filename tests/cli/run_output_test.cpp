// The type of what `thresher run` writes, and what it says of values that the type does not hold.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/stored_file.hpp"
#include "formats/numbers.hpp"
#include "formats/safetensors.hpp"

namespace thresher::testing {
namespace {

using formats::Dtype;

template <class Element>
Stored constant(Dtype dtype, std::vector<std::int64_t> shape, Element element) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  const std::vector<Element> elements(static_cast<std::size_t>(count), element);
  const auto bytes = std::as_bytes(std::span(elements));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

Stored sixteen_bits(Dtype dtype, std::vector<std::int64_t> shape, float value) {
  return constant<std::uint16_t>(dtype, std::move(shape),
                                 dtype == Dtype::bf16 ? formats::float_to_bf16(value) : formats::float_to_fp16(value));
}

Stored fp8(std::vector<std::int64_t> shape) { return constant<std::uint8_t>(Dtype::f8_e4m3, std::move(shape), 0x38); }

Stored offsets_of(std::int32_t last) {
  Stored stored = constant<std::int32_t>(Dtype::i32, {2}, 0);
  std::memcpy(&stored.bytes[4], &last, sizeof last);
  return stored;
}

class RunOutputs : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome run(const std::string& command, const File& file, const std::string& rest = "") const {
    write(folder_ / "in", file);
    Outcome outcome = run_thresher(folder_.path(), "run " + command + " --in in --out out --device cpu " + rest);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome;
  }

  [[nodiscard]] Dtype type() const {
    const formats::SafetensorsFile file(folder_ / "out");
    return file.find("c")->dtype;
  }

  ScratchFolder folder_;
};

/// That of the tokens, else of the weights, else bf16, in every command that has --out-type; the line says which.
TEST_F(RunOutputs, AreOfTheTokensTypeElseOfTheWeightsElseBf16) {
  struct Case {
    Dtype tokens, weights, out;
  };
  for (const Case& one :
       {Case{Dtype::bf16, Dtype::bf16, Dtype::bf16}, Case{Dtype::f16, Dtype::f16, Dtype::f16},
        Case{Dtype::f8_e4m3, Dtype::f16, Dtype::f16}, Case{Dtype::bf16, Dtype::f8_e4m3, Dtype::bf16},
        Case{Dtype::f16, Dtype::f8_e4m3, Dtype::f16}, Case{Dtype::f8_e4m3, Dtype::f8_e4m3, Dtype::bf16}}) {
    const auto tensor = [](Dtype dtype, const std::vector<std::int64_t>& shape) {
      return dtype == Dtype::f8_e4m3 ? fp8(shape) : sixteen_bits(dtype, shape, 1.0F);
    };
    for (const std::string command : {"dual-gemm", "gemm", "grouped-dual-gemm", "grouped-gemm"}) {
      SCOPED_TRACE(command);
      const bool is_grouped = command.starts_with("grouped");
      File file{{"a", tensor(one.tokens, {3, 16})}};
      if (is_grouped) {
        file.emplace("offsets", offsets_of(3));
      }
      const std::vector<std::int64_t> shape =
          is_grouped ? std::vector<std::int64_t>{1, 4, 16} : std::vector<std::int64_t>{4, 16};
      for (const std::string& name :
           command.ends_with("dual-gemm") ? std::vector<std::string>{"b1", "b2"} : std::vector<std::string>{"b"}) {
        file.emplace(name, tensor(one.weights, shape));
        if (one.weights == Dtype::f8_e4m3) {
          file.emplace(name + "_scale", constant(Dtype::f32, {1}, 1.0F));
        }
      }
      if (one.tokens == Dtype::f8_e4m3) {
        file.emplace("a_scale", constant(Dtype::f32, {1}, 1.0F));
      }
      const Outcome outcome = run(command, file);
      EXPECT_EQ(type(), one.out);
      EXPECT_NE(outcome.out.find(one.out == Dtype::f16 ? "] fp16 " : "] bf16 "), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.err, "");
    }
  }
}

TEST_F(RunOutputs, OfPackedWeightsTheTypeIsFoundAlike) {
  write(folder_ / "weights",
        {{"b1", sixteen_bits(Dtype::f16, {4, 16}, 1.0F)}, {"b2", sixteen_bits(Dtype::f16, {4, 16}, 1.0F)}});
  const Outcome packed = run_thresher(folder_.path(), "pack --in weights --out packed --device cpu");
  ASSERT_EQ(packed.status, 0) << packed.err;
  (void)run("dual-gemm", {{"a", fp8({3, 16})}, {"a_scale", constant(Dtype::f32, {1}, 1.0F)}}, "--weights packed");
  EXPECT_EQ(type(), Dtype::f16);
}

/// 2^14 twice over 16 is 2^18, more than fp16 has.
TEST_F(RunOutputs, ValuesThatTheTypeDoesNotHoldAreCounted) {
  const File gemm{{"a", sixteen_bits(Dtype::bf16, {3, 16}, 16384.0F)}, {"b", sixteen_bits(Dtype::bf16, {4, 16}, 1.0F)}};
  EXPECT_EQ(run("gemm", gemm).err, "");
  EXPECT_EQ(run("gemm", gemm, "--out-type fp16").err,
            "warning: 12 of the 12 values of c are Inf or NaN: fp16 ends at 65504, --out-type bf16 and fp32 do not\n");
  const File dual{{"a", sixteen_bits(Dtype::f16, {3, 16}, 1024.0F)},
                  {"b1", sixteen_bits(Dtype::f16, {4, 16}, 1.0F)},
                  {"b2", sixteen_bits(Dtype::f16, {4, 16}, 1.0F)}};
  EXPECT_NE(run("dual-gemm", dual).err.find("warning: 12 of the 12 values of c are Inf or NaN"), std::string::npos);
  EXPECT_EQ(run("dual-gemm", dual, "--out-type fp32").err, "");
  File attention;
  for (const char* const name : {"q", "k", "v"}) {
    attention.emplace(
        name, sixteen_bits(Dtype::bf16, {1, 1, 2, 64}, name[0] == 'v' ? std::numeric_limits<float>::infinity() : 1.0F));
  }
  write(folder_ / "model", {{"layers.0.mlp.gate_proj.weight", sixteen_bits(Dtype::f16, {16, 16}, 1.0F)},
                            {"layers.0.mlp.up_proj.weight", sixteen_bits(Dtype::f16, {16, 16}, 1.0F)},
                            {"layers.0.mlp.down_proj.weight", sixteen_bits(Dtype::f16, {16, 16}, 16384.0F)}});
  const File x{{"x", sixteen_bits(Dtype::f16, {1, 16}, 1.0F)}};
  EXPECT_NE(run("gated-mlp", x, "--checkpoint model --layer 0 --out-type fp16 --activation silu")
                .err.find("warning: 16 of the 16 values of out are Inf or NaN: fp16 ends at 65504"),
            std::string::npos);
  const Outcome outcome = run("attention", attention);
  EXPECT_EQ(outcome.err, "warning: 128 of the 128 values of o are Inf or NaN\n");
  EXPECT_NE(outcome.out.find(", scale 0.125: o [1, 1, 2, 64] bf16 and lse are in out\n"), std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace thresher::testing
