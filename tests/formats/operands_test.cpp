#include "formats/operands.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/nvfp4.hpp"
#include "formats/scales.hpp"
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
    const SafetensorsFile file(path);
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
  const SafetensorsFile file(path);
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
  const SafetensorsFile file(path);
  const Operand a = load_operand(file, "a");
  EXPECT_EQ(a.format(), Format::fp16);
  EXPECT_EQ(element(a.view(), 0, 1), -2.0);
  const Operand b1 = load_operand(file, "b1");
  EXPECT_EQ(b1.format(), Format::bf16);
  EXPECT_EQ(b1.rows(), 2);
  EXPECT_EQ(element(b1.view(), 1, 0), 4.0);
}

TEST_F(Operands, Nvfp4IsReadUnderItsOwnAndModelOptsNames) {
  const auto row_major = ScaleLayout::row_major;
  expect_nvfp4(path, "b1", "b1", "b1_global_scale", row_major, {3, 2});
  expect_nvfp4(path, "b1", "b1", "", row_major, {3, 2});
  expect_nvfp4(path, "b1", "b1", "", row_major, {6});
  expect_nvfp4(path, "b1", "b1.weight", "b1.weight_scale_2", row_major, {3, 2});
  expect_nvfp4(path, "weight", "weight", "weight_scale_2", row_major, {3, 2});
  expect_nvfp4(path, "b1", "b1", "b1_global_scale", ScaleLayout::blocked, {512});
  expect_nvfp4(path, "b1", "b1", "", ScaleLayout::blocked, {128, 4});
}

TEST_F(Operands, AnOperandWithoutRowsIsEmpty) {
  write({{"a", Dtype::f16, {0, 64}}, {"b1", Dtype::u8, {0, 32}}, {"b1_scale", Dtype::f8_e4m3, {0, 4}}});
  const SafetensorsFile file(path);
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
  expect_refused({{"b1", Dtype::i64, {2, 8}}}, "must be F16, BF16 or NVFP4");
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
  expect_refused({values, {"b1_scale", Dtype::u8, {3, 2}}}, "is U8 [3, 2], but the scales must be F8_E4M3 [3, 2]");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {2, 3}}}, "is F8_E4M3 [2, 3], but the scales must be");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {5}}}, "is F8_E4M3 [5], but");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {512}}}, "its size fits the blocked scale layout");
  expect_refused({values, {"b1_scale", Dtype::f8_e4m3, {3, 2}}}, "its size fits the row-major scale layout",
                 ScaleLayout::blocked);
  const Blank scales{"b1_scale", Dtype::f8_e4m3, {3, 2}};
  expect_refused({values, scales, {"b1_global_scale", Dtype::f16, {1}}},
                 "is F16 [1], but a global scale must be one F32");
  expect_refused({values, scales, {"b1_global_scale", Dtype::f32, {2}}}, "is F32 [2], but a global scale");
  expect_refused({values, scales, {"b1_global_scale", Dtype::f32, {}}, {"b1_scale_2", Dtype::f32, {}}},
                 "both 'b1_global_scale' and 'b1_scale_2'");
}

TEST_F(Operands, BlockedPaddingThatIsNotZeroIsRefused) {
  std::vector<std::byte> values(16 * 3);
  std::vector<std::byte> scales(512, std::byte{0x38});
  write_safetensors(path, std::vector<TensorToWrite>{{"b1", Dtype::u8, {3, 16}, values},
                                                     {"b1_scale", Dtype::f8_e4m3, {512}, scales}});
  const SafetensorsFile file(path);
  try {
    (void)load_operand(file, "b1", ScaleLayout::blocked);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tensor 'b1_scale' of"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("padding"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace thresher::formats
