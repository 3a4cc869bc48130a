#include "formats/operands.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/nvfp4.hpp"
#include "formats/scales.hpp"
#include "formats/stacks.hpp"
#include "formats/weight_parts.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

/// Zeros of the right size for a tensor, so that a test need only say names, types and shapes.
struct Blank {
  std::string name;
  Dtype dtype;
  std::vector<std::int64_t> shape;
};

class Operands : public testing::Test {
 protected:
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "in.safetensors";

  void write(const std::vector<Blank>& blanks) const {
    std::vector<std::vector<std::byte>> storage;
    std::vector<TensorToWrite> tensors;
    for (const Blank& blank : blanks) {
      StoredTensor stored{blank.name, blank.dtype, blank.shape, 0, 0};
      storage.emplace_back(stored_bytes(stored, "f"));
      tensors.push_back({blank.name, blank.dtype, blank.shape, storage.back()});
    }
    write_safetensors(path, tensors);
  }

  /// What is said against operand `name` of a file with these tensors.
  [[nodiscard]] std::string refusal(const std::vector<Blank>& blanks, const std::string& name,
                                    ScaleLayout layout = ScaleLayout::row_major) const {
    write(blanks);
    const Checkpoint file(path);
    try {
      (void)load_operand(file, name, layout);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find(path.string()), std::string::npos) << sentence;
      EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
      return sentence;
    }
    return "";
  }

  void expect_refused(const std::vector<Blank>& blanks, const std::string& part,
                      ScaleLayout layout = ScaleLayout::row_major) const {
    const std::string sentence = refusal(blanks, "b1", layout);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
};

/// Writes NVFP4 operand parts under the given names and expects to read back what was quantised.
void expect_nvfp4(const std::filesystem::path& path, const std::string& name, const std::string& values,
                  const std::string& global, ScaleLayout layout, const std::vector<std::int64_t>& scale_shape) {
  std::vector<float> x;
  for (int i = 0; i < 3 * 32; ++i) {
    x.push_back(static_cast<float>(i % 17) - 8.0F);
  }
  Nvfp4Matrix matrix = quantize_nvfp4(Tensor::contiguous(x.data(), Format::fp32, {3, 32}), "x", layout);
  std::vector<TensorToWrite> tensors{
      {values, Dtype::u8, {3, 16}, std::as_bytes(std::span(matrix.values))},
      {values + "_scale", Dtype::f8_e4m3, scale_shape, std::as_bytes(std::span(matrix.scales))}};
  if (global.empty()) {
    matrix.global_scale = 1.0F;
  } else {
    tensors.push_back({global, Dtype::f32, {1}, std::as_bytes(std::span(&matrix.global_scale, 1))});
  }
  write_safetensors(path, tensors);
  const Checkpoint file(path);
  const Operand operand = load_operand(file, name, layout);
  EXPECT_EQ(operand.format(), Format::nvfp4);
  EXPECT_EQ(operand.rows(), 3);
  EXPECT_EQ(operand.k(), 32);
  EXPECT_EQ(operand.view().global_scale == nullptr, global.empty());
  EXPECT_EQ(dequantize_to_double(operand.view(), name), dequantize_to_double(matrix.view(), "x"));
}

TEST_F(Operands, SixteenBitMatricesAreRead) {
  const std::vector<std::uint16_t> half{float_to_fp16(1.5F), float_to_fp16(-2.0F)};
  const std::vector<std::uint16_t> brain{float_to_bf16(3.0F), float_to_bf16(4.0F)};
  write_safetensors(path,
                    std::vector<TensorToWrite>{{"a", Dtype::f16, {1, 2}, std::as_bytes(std::span(half))},
                                               {"b1.weight", Dtype::bf16, {2, 1}, std::as_bytes(std::span(brain))}});
  const Checkpoint file(path);
  const Operand a = load_operand(file, "a");
  EXPECT_EQ(a.format(), Format::fp16);
  EXPECT_EQ(element(a.view(), 0, 1), -2.0);
  const Operand b1 = load_operand(file, "b1");
  EXPECT_EQ(b1.format(), Format::bf16);
  EXPECT_EQ(b1.rows(), 2);
  EXPECT_EQ(element(b1.view(), 1, 0), 4.0);
}

TEST_F(Operands, Nvfp4IsReadUnderModelOptsNames) {
  const auto row_major = ScaleLayout::row_major;
  expect_nvfp4(path, "b1", "b1", "b1_scale_2", row_major, {3, 2});
  expect_nvfp4(path, "b1", "b1", "", row_major, {3, 2});
  expect_nvfp4(path, "b1", "b1", "", row_major, {6});
  expect_nvfp4(path, "b1", "b1.weight", "b1.weight_scale_2", row_major, {3, 2});
  expect_nvfp4(path, "weight", "weight", "weight_scale_2", row_major, {3, 2});
  expect_nvfp4(path, "b1", "b1", "b1_scale_2", ScaleLayout::blocked, {512});
  expect_nvfp4(path, "b1", "b1", "", ScaleLayout::blocked, {128, 4});
}

TEST_F(Operands, AnOperandWithoutRowsIsEmpty) {
  write({{"a", Dtype::f16, {0, 64}}, {"b1", Dtype::u8, {0, 32}}, {"b1_scale", Dtype::f8_e4m3, {0, 4}}});
  const Checkpoint file(path);
  EXPECT_EQ(load_operand(file, "a").rows(), 0);
  EXPECT_EQ(load_operand(file, "b1").k(), 64);
}

TEST_F(Operands, MissingTensorsAreNamedWithWhatIsThere) {
  const std::string sentence = refusal({{"a", Dtype::f16, {1, 8}}, {"c", Dtype::f16, {1, 8}}}, "b1");
  EXPECT_NE(sentence.find("no tensor 'b1' or 'b1.weight'; it has 'a', 'c'"), std::string::npos) << sentence;
  expect_refused({}, "it has no tensors");
  expect_refused({{"b1", Dtype::f16, {1, 8}}, {"b1.weight", Dtype::f16, {1, 8}}}, "both 'b1' and 'b1.weight'");
}

TEST_F(Operands, WrongTypesAndShapesAreNamed) {
  expect_refused({{"b1", Dtype::f32, {2, 8}}}, "tensor 'b1' of " + path.string() + " is F32 [2, 8]");
  expect_refused({{"b1", Dtype::i64, {2, 8}}}, "must be F16, BF16, FP8 (F8_E4M3 with scales), NVFP4 or MXFP4");
  expect_refused({{"b1", Dtype::f16, {16}}}, "is F16 [16], but must be a matrix");
  expect_refused({{"b1", Dtype::f16, {1, 2, 3}}}, "is F16 [1, 2, 3], but must be a matrix");
  expect_refused({{"b1", Dtype::u8, {2, 8}}}, "its scales 'b1_scale' are missing");
  expect_refused({{"b1", Dtype::u8, {2, 12}}, {"b1_scale", Dtype::f8_e4m3, {2, 1}}}, "multiple of 16");
  expect_refused({{"b1", Dtype::u8, {16}}, {"b1_scale", Dtype::f8_e4m3, {2}}}, "is U8 [16], but must be a matrix");
  expect_refused({{"b1", Dtype::u8, {}}, {"b1_scale", Dtype::f8_e4m3, {2}}}, "is U8 [], but must be a matrix");
}

TEST_F(Operands, WrongScalesAreNamed) {
  const Blank values{"b1", Dtype::u8, {3, 16}};
  expect_refused({values, {"b1_scale", Dtype::u8, {3, 2}}}, "tensor 'b1_scale' of");
  expect_refused({values, {"b1_scale", Dtype::u8, {3, 2}}},
                 "is U8 [3, 2], but the scales of MXFP4 must be U8 or F8_E8M0 [3, 1], those of NVFP4 F8_E4M3");
  expect_refused({{"b1", Dtype::u8, {3, 8}}, {"b1_scale", Dtype::f8_e8m0, {3, 1}}}, "K = 2·8 must be a multiple of 32");
  expect_refused({{"b1", Dtype::u8, {16}}, {"b1_scale", Dtype::u8, {1}}}, "is U8 [16], but must be a matrix");
  expect_refused({values, {"b1_scale", Dtype::u8, {3, 1}}, {"b1_scale_2", Dtype::f32, {}}}, "has none but them");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {2, 3}}}, "is F8_E4M3 [2, 3], but the scales must be");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {5}}}, "is F8_E4M3 [5], but");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {512}}}, "its size fits the blocked scale layout");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {3, 2}}}, "its size fits the row-major scale layout",
                 ScaleLayout::blocked);
  const Blank scales{"b1_scale", Dtype::f8_e4m3, {3, 2}};
  expect_refused({values, scales, {"b1_scale_2", Dtype::f16, {1}}}, "is F16 [1], but a global scale must be one F32");
  expect_refused({values, scales, {"b1_scale_2", Dtype::f32, {2}}}, "is F32 [2], but a global scale");
}

TEST_F(Operands, BlockedPaddingThatIsNotZeroIsRefused) {
  std::vector<std::byte> values(16 * 3);
  std::vector<std::byte> scales(512, std::byte{0x38});
  write_safetensors(path, std::vector<TensorToWrite>{{"b1", Dtype::u8, {3, 16}, values},
                                                     {"b1_scale", Dtype::f8_e4m3, {512}, scales}});
  const Checkpoint file(path);
  try {
    (void)load_operand(file, "b1", ScaleLayout::blocked);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tensor 'b1_scale' of"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("padding"), std::string::npos) << error.what();
  }
}

/// b1.weight_packed of one row of K = 16, all 1 (code 2), scale 1 (0x38), beside these other tensors.
class PackedOperand : public Operands {
 protected:
  void write_packed(float global, const std::vector<Blank>& others = {}) const {
    const std::vector<std::byte> ones(8, std::byte{0x22});
    const std::byte one{0x38};
    std::vector<std::vector<std::byte>> storage;
    std::vector<TensorToWrite> tensors{
        {"b1.weight_packed", Dtype::u8, {1, 8}, ones},
        {"b1.weight_scale", Dtype::f8_e4m3, {1, 1}, std::span(&one, 1)},
        {"b1.weight_global_scale", Dtype::f32, {1}, std::as_bytes(std::span(&global, 1))}};
    for (const Blank& other : others) {
      storage.emplace_back(stored_bytes({other.name, other.dtype, other.shape, 0, 0}, "f"));
      tensors.push_back({other.name, other.dtype, other.shape, storage.back()});
    }
    write_safetensors(path, tensors);
  }

  [[nodiscard]] std::string refusal_of_packed(float global, const std::vector<Blank>& others = {}) const {
    write_packed(global, others);
    try {
      (void)load_operand(Checkpoint(path), "b1");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  }
};

TEST_F(PackedOperand, TheGlobalScaleDivides) {
  write_packed(4.0F);
  for (const char* name : {"b1", "b1.weight", "b1.weight_packed"}) {
    const Checkpoint file(path);
    const Operand operand = load_operand(file, name);
    EXPECT_EQ(operand.k(), 16);
    EXPECT_EQ(dequantize_to_double(operand.view(), name), std::vector<double>(16, 0.25));
    EXPECT_EQ(operand.source(), "tensor 'b1.weight_packed' of " + path.string());
  }
}

TEST_F(PackedOperand, AGlobalScaleThatCannotDivideIsRefused) {
  for (const float global :
       {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e-45F}) {
    EXPECT_NE(refusal_of_packed(global).find("it must be positive and finite"), std::string::npos) << global;
  }
}

TEST_F(PackedOperand, WhatScalesTheInputIsLeftAside) {
  EXPECT_EQ(refusal_of_packed(4.0F, {{"b1.input_global_scale", Dtype::f32, {1}}, {"b1.input_scale", Dtype::f32, {1}}}),
            "");
}

TEST_F(PackedOperand, OtherPartsOfTheLayerAreRefusedByName) {
  const auto expect = [&](const Blank& part, const std::string& reason) {
    const std::string sentence = refusal_of_packed(4.0F, {part});
    EXPECT_NE(sentence.find(path.string() + " has '" + part.name + "' beside 'b1.weight_packed': " + reason),
              std::string::npos)
        << sentence;
  };
  expect({"b1.bias", Dtype::bf16, {1}}, "no bias is added here");
  expect({"b1.pre_quant_scale", Dtype::bf16, {16}}, "it multiplies what enters the layer");
  expect({"b1.weight_zero_point", Dtype::i8, {1, 1}}, "quantization with a zero point is not read");
  expect({"b1.weight_scale_2", Dtype::f32, {}}, "a second scale belongs to");
  expect({"b1.lora_A.weight", Dtype::bf16, {4, 16}}, "what it does to the weights is not known here");
  expect({"b1_bias", Dtype::bf16, {1}}, "no bias is added here");
}

TEST_F(Operands, IntegersOfSixtyFourBitsAreNarrowedOrNobodys) {
  const std::vector<std::int64_t> values{0, -1, 2'147'483'647, -2'147'483'648, 2'147'483'648, std::int64_t{1} << 40};
  const auto write_first = [&](std::size_t rows) {
    write_safetensors(
        path, std::vector<TensorToWrite>{
                  {"ids", Dtype::i64, {std::int64_t(rows), 2}, std::as_bytes(std::span(values).first(2 * rows))}});
  };
  const auto read = [](const Stack& stack) {
    EXPECT_EQ(stack.format(), Format::int32);
    const auto* const first = static_cast<const std::int32_t*>(stack.view().data);
    return std::vector<std::int32_t>(first, first + stack.view().elements());
  };
  write_first(2);
  const std::vector<std::int32_t> held{0, -1, 2'147'483'647, -2'147'483'647 - 1};
  EXPECT_EQ(read(load_integers(Checkpoint(path), "ids")), held);
  write_first(3);
  try {
    (void)load_integers(Checkpoint(path), "ids");
    ADD_FAILURE() << "narrowed";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("has 2147483648 at [2, 0], but its values must be within 32 bits"))
        << error.what();
  }
  const std::vector<std::int32_t> ids = read(load_integers(Checkpoint(path), "ids", WideIntegers::nobody));
  EXPECT_EQ(std::vector(ids.begin(), ids.begin() + 4), held);
  EXPECT_EQ(ids[4], -1);
  EXPECT_EQ(ids[5], -1);
}

/// One rule for all names: whether the tensor is X or X.weight, its parts are X.… and what is named X_ and a part's
/// word.
TEST_F(Operands, PartsAreRefusedWhateverTheTensorIsCalled) {
  for (const char* const values : {"b1", "b1.weight"}) {
    for (const char* const part : {"b1.bias", "b1_bias", "b1.pre_quant_scale", "b1_pre_quant_scale", "b1.foo",
                                   "b1_zero_point", "b1_qzeros", "b1_g_idx", "b1_scale", "b1.weights"}) {
      expect_refused({{values, Dtype::bf16, {3, 16}}, {part, Dtype::bf16, {3}}},
                     std::string("has '") + part + "' beside '" + values + "'");
    }
    for (const char* const other : {"b1_reference", "b10", "b1x.bias", "b2_bias", "b1.input_scale", "b1_input_scale"}) {
      EXPECT_EQ(refusal({{values, Dtype::bf16, {3, 16}}, {other, Dtype::bf16, {3}}}, "b1"), "") << other;
    }
  }
  for (const char* const part : {"bias", "scale", "pre_quant_scale", "weight_bias"}) {
    EXPECT_NE(refusal({{"weight", Dtype::bf16, {3, 16}}, {part, Dtype::bf16, {3}}}, "weight").find(part),
              std::string::npos);
  }
  EXPECT_EQ(refusal({{"weight", Dtype::bf16, {3, 16}}, {"a_scale", Dtype::bf16, {3}}}, "weight"), "");
}

TEST_F(Operands, ABiasIsFoundUnderBothNamesAndTwoAreRefused) {
  for (const char* const values : {"b1", "b1.weight"}) {
    for (const char* const bias : {"b1.bias", "b1_bias"}) {
      write({{values, Dtype::bf16, {3, 16}}, {bias, Dtype::bf16, {3}}});
      const Checkpoint file(path);
      EXPECT_EQ(WeightParts(file, "b1").bias_name(), bias);
      EXPECT_EQ(WeightParts(file, "b1").check(/*adds_bias=*/true), Stored::plain);
    }
    write({{values, Dtype::bf16, {3, 16}}, {"b1.bias", Dtype::bf16, {3}}, {"b1_bias", Dtype::bf16, {3}}});
    const Checkpoint file(path);
    EXPECT_THROW((void)WeightParts(file, "b1").check(/*adds_bias=*/true), Error);
  }
}

TEST_F(Operands, AGlobalScaleThatMayMultiplyOrDivideIsRefused) {
  const std::string sentence = refusal({{"b1.weight", Dtype::u8, {3, 16}},
                                        {"b1.weight_scale", Dtype::f8_e4m3, {3, 2}},
                                        {"b1.weight_global_scale", Dtype::f32, {1}}},
                                       "b1");
  EXPECT_NE(sentence.find("has 'b1.weight_global_scale' beside 'b1.weight', which may multiply or divide"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("'b1.weight_packed'; one that multiplies is named 'b1.weight_scale_2'"), std::string::npos)
      << sentence;
  expect_refused(
      {{"b1", Dtype::u8, {3, 16}}, {"b1_scale", Dtype::f8_e4m3, {3, 2}}, {"b1_global_scale", Dtype::f32, {1}}},
      "has 'b1_global_scale' beside 'b1', which may multiply or divide");
}

TEST_F(Operands, FormatsThatAreNotReadAreNamed) {
  expect_refused({{"b1.weight", Dtype::f8_e5m2, {3, 16}}, {"b1.weight_scale", Dtype::f32, {1}}},
                 "is F8_E5M2 [3, 16], but an operand must be F16, BF16, FP8 (F8_E4M3 with scales), NVFP4 or MXFP4 "
                 "(U8 with scales): of FP8 weights those in F8_E4M3 are read");
  expect_refused({{"b1.weight", Dtype::i8, {3, 16}}, {"b1.weight_scale", Dtype::f32, {1}}},
                 "integer weights are not read");
  expect_refused({{"b1.weight_packed", Dtype::i32, {3, 16}}, {"b1.weight_scale", Dtype::f32, {1}}},
                 "packed integers (pack-quantized) are not read");
  expect_refused({{"b1.weight_packed", Dtype::u8, {3, 16}}, {"b1.weight_scale", Dtype::f8_e4m3, {3, 2}}},
                 "its global scale 'b1.weight_global_scale' is missing");
  expect_refused({{"b1.weight", Dtype::bf16, {3, 16}}, {"b1.weight_scale", Dtype::f32, {1}}},
                 "has 'b1.weight_scale' beside 'b1.weight': scales belong to NVFP4 (U8) and FP8 values");
  expect_refused({{"b1.weight", Dtype::bf16, {3, 16}}, {"b1.weight_packed", Dtype::u8, {3, 16}}},
                 "has both 'b1.weight' and 'b1.weight_packed'");
  expect_refused({{"b1.weight", Dtype::bf16, {2, 3, 16}}}, "is BF16 [2, 3, 16], but must be a matrix");
  expect_refused({{"b1.qweight", Dtype::i32, {3, 16}}, {"a", Dtype::bf16, {3, 16}}}, "it has 'b1.qweight', 'a'");
}

/// 1, 2, 3, …, 100, 1, …
std::vector<std::byte> counted_scales(const std::vector<std::int64_t>& shape, Dtype dtype) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= static_cast<std::size_t>(extent);
  }
  const std::size_t bytes = dtype == Dtype::f32 ? 4 : 2;
  std::vector<std::byte> scales(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const float scale = 1.0F + static_cast<float>(i % 100);
    const std::uint16_t pattern = dtype == Dtype::bf16 ? float_to_bf16(scale) : float_to_fp16(scale);
    std::memcpy(&scales[i * bytes], dtype == Dtype::f32 ? static_cast<const void*>(&scale) : &pattern, bytes);
  }
  return scales;
}

/// 2^(row % 3).
std::vector<std::byte> powers_of_two(std::int64_t rows, std::int64_t k) {
  std::vector<std::byte> values(static_cast<std::size_t>(rows * k));
  for (std::int64_t i = 0; i < rows * k; ++i) {
    values[static_cast<std::size_t>(i)] = std::byte{float_to_e4m3(std::ldexp(1.0F, static_cast<int>(i / k % 3)))};
  }
  return values;
}

struct Fp8File {
  const char* scale;  ///< what the scales are called behind the name of the values
  Dtype dtype;
  std::vector<std::int64_t> shape;
  OperandRole role;
  ScaleLayout layout;
  Format format;
};

/// Values that are 2^(row % 3) and scales that are 1 + their place, in the shapes that ModelOpt, compressed-tensors and
/// DeepSeek write; what is read is their product.
TEST_F(Operands, Fp8HasTheScalesThatTheirShapeSays) {
  constexpr std::int64_t rows = 130;
  constexpr std::int64_t k = 272;
  const auto weights = OperandRole::weights;
  const auto tokens = OperandRole::tokens;
  const auto by_rows = ScaleLayout::row_major;
  const std::vector<Fp8File> files{
      {"_scale", Dtype::f32, {}, weights, by_rows, Format::fp8_tensor},
      {"_scale", Dtype::bf16, {1}, weights, by_rows, Format::fp8_tensor},
      {"_scale", Dtype::bf16, {rows, 1}, weights, by_rows, Format::fp8_row},
      {"_scale", Dtype::f32, {rows}, tokens, by_rows, Format::fp8_row},
      {"_scale", Dtype::f16, {2, 3}, weights, by_rows, Format::fp8_block},
      {"_scale_inv", Dtype::f32, {2, 3}, weights, by_rows, Format::fp8_block},
      {"_scale_inv", Dtype::f32, {2, 3}, weights, ScaleLayout::column_major, Format::fp8_block},
      {"_scale", Dtype::f32, {rows, 3}, tokens, by_rows, Format::fp8_block},
      {"_scale", Dtype::f32, {3, 132}, tokens, ScaleLayout::column_major, Format::fp8_block},
  };
  for (const Fp8File& one : files) {
    const std::vector<std::byte> values = powers_of_two(rows, k);
    const std::vector<std::byte> scales = counted_scales(one.shape, one.dtype);
    const std::string name = std::string("w.weight") + one.scale;
    const std::vector<TensorToWrite> tensors{{"w.weight", Dtype::f8_e4m3, {rows, k}, values},
                                             {name, one.dtype, one.shape, scales}};
    write_safetensors(path, tensors);
    const Operand operand = load_operand(Checkpoint(path), "w", one.layout, one.role);
    ASSERT_EQ(operand.format(), one.format) << thresher::name(one.format);
    const std::vector<double> found = dequantize_to_double(operand.view(), "w");
    for (const std::int64_t row : {0, 1, 127, 128, 129}) {
      for (const std::int64_t column : {0, 127, 128, 255, 256, 271}) {
        std::int64_t place = 0;
        if (one.format == Format::fp8_row) {
          place = row;
        } else if (one.format == Format::fp8_block && one.role == weights) {
          place = row / 128 * 3 + column / 128;
        } else if (one.format == Format::fp8_block) {
          place = one.layout == by_rows ? row * 3 + column / 128 : column / 128 * 132 + row;
        }
        EXPECT_EQ(found[static_cast<std::size_t>(row * k + column)],
                  std::ldexp(1.0, static_cast<int>(row % 3)) * (1.0 + static_cast<double>(place % 100)))
            << thresher::name(one.format) << " " << one.scale << " [" << row << ", " << column << "]";
      }
    }
  }
}

TEST_F(Operands, HalvesOfFp8TakeTheirScalesAlong) {
  for (const auto& [shape, order] : {std::pair{std::vector<std::int64_t>{256, 1}, GateUpOrder::interleaved},
                                     {std::vector<std::int64_t>{256}, GateUpOrder::up_first},
                                     {std::vector<std::int64_t>{2, 2}, GateUpOrder::up_first},
                                     {std::vector<std::int64_t>{2, 2}, GateUpOrder::gate_first},
                                     {std::vector<std::int64_t>{}, GateUpOrder::interleaved}}) {
    const std::vector<std::byte> values = powers_of_two(256, 144);
    const std::vector<std::byte> scales = counted_scales(shape, Dtype::f32);
    write_safetensors(path, std::vector<TensorToWrite>{{"b1.weight", Dtype::f8_e4m3, {256, 144}, values},
                                                       {"b1.weight_scale", Dtype::f32, shape, scales}});
    const Checkpoint file(path);
    const std::vector<double> whole = dequantize_to_double(load_operand(file, "b1").view(), "b1");
    const GateUp both = load_gate_up(file, "b1", order);
    const std::vector<double> gate = dequantize_to_double(both.gate.view(), "gate");
    for (std::int64_t row = 0; row < 128; ++row) {
      const std::int64_t of_gate = order == GateUpOrder::interleaved  ? 2 * row
                                   : order == GateUpOrder::gate_first ? row
                                                                      : 128 + row;
      for (const std::int64_t column : {0, 143}) {
        ASSERT_EQ(gate[static_cast<std::size_t>(row * 144 + column)],
                  whole[static_cast<std::size_t>(of_gate * 144 + column)])
            << row;
      }
    }
  }
  write({{"b1.weight", Dtype::f8_e4m3, {256, 144}}, {"b1.weight_scale", Dtype::f32, {2, 2}}});
  EXPECT_THROW((void)load_gate_up(Checkpoint(path), "b1", GateUpOrder::interleaved), Error);
}

TEST_F(Operands, AMessageOfAManyDimensionalTensorStaysShort) {
  const std::string sentence = refusal({{"b1", Dtype::f16, std::vector<std::int64_t>(100'002, 1)}}, "b1");
  EXPECT_NE(sentence.find("… 100002 dimensions in all], but must be a matrix"), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 400U);
}

TEST_F(Operands, RowsThatHoldNothingAreNotWalkedOver) {
  const std::int64_t rows = std::int64_t{1} << 58;
  write({{"a", Dtype::f16, {rows, 0}}, {"b1", Dtype::u8, {rows, 0}}, {"b1_scale", Dtype::f8_e4m3, {0}}});
  const Checkpoint file(path);
  EXPECT_EQ(load_operand(file, "a").rows(), rows);
  EXPECT_EQ(load_operand(file, "b1", ScaleLayout::blocked).rows(), rows);
  for (const GateUpOrder order : all_gate_up_orders) {
    EXPECT_EQ(load_gate_up(file, "b1", order, ScaleLayout::blocked).up.rows(), rows / 2);
  }
}

/// Rows 0, 1, 2, … of a fused tensor, each of one value, and which of them gate and up must get.
TEST_F(Operands, AFusedTensorIsTakenApartInTheOrderThatIsSaid) {
  std::vector<float> x;
  for (int row = 0; row < 6; ++row) {
    x.insert(x.end(), 32, static_cast<float>(row + 1));
  }
  std::vector<std::uint16_t> half;
  for (const float value : x) {
    half.push_back(float_to_fp16(value));
  }
  for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    const Nvfp4Matrix packed = quantize_nvfp4(Tensor::contiguous(x.data(), Format::fp32, {6, 32}), "x", layout);
    write_safetensors(path,
                      std::vector<TensorToWrite>{
                          {"plain.weight", Dtype::f16, {6, 32}, std::as_bytes(std::span(half))},
                          {"fp4.weight", Dtype::u8, {6, 16}, std::as_bytes(std::span(packed.values))},
                          {"fp4.weight_scale",
                           Dtype::f8_e4m3,
                           {static_cast<std::int64_t>(packed.scales.size())},
                           std::as_bytes(std::span(packed.scales))},
                          {"fp4.weight_scale_2", Dtype::f32, {}, std::as_bytes(std::span(&packed.global_scale, 1))}});
    const Checkpoint file(path);
    for (const char* name : {"plain", "fp4"}) {
      const std::vector<double> whole = dequantize_to_double(load_operand(file, name, layout).view(), name);
      const auto rows = [&](const std::vector<int>& taken) {
        std::vector<double> values;
        for (const int row : taken) {
          values.insert(values.end(), whole.begin() + row * 32, whole.begin() + (row + 1) * 32);
        }
        return values;
      };
      const auto expect = [&](GateUpOrder order, const std::vector<int>& gate_rows, const std::vector<int>& up_rows) {
        const GateUp both = load_gate_up(file, name, order, layout);
        EXPECT_EQ(both.gate.rows(), 3);
        EXPECT_EQ(dequantize_to_double(both.gate.view(), "gate"), rows(gate_rows));
        EXPECT_EQ(dequantize_to_double(both.up.view(), "up"), rows(up_rows));
      };
      expect(GateUpOrder::gate_first, {0, 1, 2}, {3, 4, 5});
      expect(GateUpOrder::up_first, {3, 4, 5}, {0, 1, 2});
      expect(GateUpOrder::interleaved, {0, 2, 4}, {1, 3, 5});
    }
  }
}

TEST_F(Operands, AFusedTensorNeedsAnEvenNumberOfRows) {
  write({{"b1", Dtype::f16, {5, 32}}});
  try {
    (void)load_gate_up(Checkpoint(path), "b1", GateUpOrder::interleaved);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is [5, 32], but gate and up in one tensor need an even number of rows"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace thresher::formats
