// Scales that are no numbers, in every way that a file may hold them, and scales under other names and in powers of
// two.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "formats/nvfp4.hpp"
#include "formats/operands.hpp"
#include "formats/stacks.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Tensors with all their bytes.
struct FileOfScales {
  std::vector<std::vector<std::byte>> storage;
  std::vector<TensorToWrite> tensors;

  template <class T>
  FileOfScales& add(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape,
                    const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    storage.emplace_back(bytes.begin(), bytes.end());
    tensors.push_back({name, dtype, std::move(shape), {}});
    return *this;
  }
  void save(const std::filesystem::path& path) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].bytes = storage[i];
    }
    write_safetensors(path, tensors);
  }
};

class SoundScales : public testing::Test {
 protected:
  /// FP8 values [256, 256] that are all 1.
  static FileOfScales fp8(const std::string& name = "w.weight") {
    FileOfScales file;
    file.add(name, Dtype::f8_e4m3, {256, 256}, std::vector<std::uint8_t>(256 * 256, 0x38));
    return file;
  }
  /// NVFP4 values [2, 32] that are all 1, with scales that are 1 but for one.
  static FileOfScales nvfp4(std::uint8_t odd = 0x38) {
    FileOfScales file;
    file.add("w.weight", Dtype::u8, {2, 16}, std::vector<std::uint8_t>(32, 0x22));
    file.add("w.weight_scale", Dtype::f8_e4m3, {2, 2}, std::vector<std::uint8_t>{0x38, 0x38, 0x38, odd});
    return file;
  }
  [[nodiscard]] Operand load(FileOfScales file) const {
    file.save(path);
    return load_operand(Checkpoint(path), "w");
  }
  [[nodiscard]] std::string refusal(FileOfScales file) const {
    try {
      (void)load(std::move(file));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  }
  void expect_refused(FileOfScales file, const std::string& tensor, const std::string& what) const {
    EXPECT_EQ(refusal(std::move(file)), "tensor '" + tensor + "' of " + path.string() + " " + what);
  }

  const ScratchFolder folder;
  const std::filesystem::path path = folder / "in.safetensors";
};

TEST_F(SoundScales, OfWholeMatricesAreFiniteAndAboveZero) {
  const std::string wanted = ", expected finite scales above 0, which multiply whole matrices";
  for (const auto& [value, word] : {std::pair{inf, "inf"}, {nan, "nan"}, {0.0F, "0"}, {-1.0F, "-1"}, {-inf, "-inf"}}) {
    expect_refused(nvfp4().add("w.weight_scale_2", Dtype::f32, {}, std::vector{value}), "w.weight_scale_2",
                   std::string("is ") + word + wanted);
    expect_refused(fp8().add("w.weight_scale", Dtype::f32, {1}, std::vector{value}), "w.weight_scale",
                   std::string("is ") + word + " at [0]" + wanted);
  }
  EXPECT_EQ(refusal(nvfp4().add("w.weight_scale_2", Dtype::f32, {}, std::vector{1e-30F})), "");
}

TEST_F(SoundScales, OfBlocksAndRowsAreFinite) {
  for (const auto& [value, word] : {std::pair{inf, "inf"}, {nan, "nan"}}) {
    const std::string what = std::string("is ") + word;
    expect_refused(fp8().add("w.weight_scale_inv", Dtype::f32, {2, 2}, std::vector{1.0F, 1.0F, value, 1.0F}),
                   "w.weight_scale_inv", what + " at [1, 0], expected finite scales");
    std::vector<float> rows(256, 1);
    rows[77] = value;
    expect_refused(fp8().add("w.weight_scale", Dtype::f32, {256, 1}, rows), "w.weight_scale",
                   what + " at [77, 0], expected finite scales");
  }
  expect_refused(nvfp4(0x7F), "w.weight_scale", "is nan at [1, 1], expected finite scales");
  EXPECT_NE(refusal(nvfp4(0xFF)).find("nan at [1, 1], expected finite scales"), std::string::npos);
}

/// Those of zeros are 0, and some quantisers write negative ones.
TEST_F(SoundScales, OfBlocksMayBeZeroAndNegative) {
  const std::vector<float> scales{0.0F, 1.0F, -2.0F, 1.0F};
  const Operand blocks = load(fp8().add("w.weight_scale_inv", Dtype::f32, {2, 2}, scales));
  EXPECT_EQ(element(blocks.view(), 0, 0), 0.0);
  EXPECT_EQ(element(blocks.view(), 128, 0), -2.0);
  for (const std::uint8_t code : {std::uint8_t{0x00}, std::uint8_t{0xB8}}) {
    EXPECT_EQ(element(load(nvfp4(code)).view(), 1, 31), code == 0 ? 0.0 : -1.0);
  }
}

/// Experts in one tensor are read whole: of none may a scale be unsound, whoever was chosen.
TEST_F(SoundScales, OfStacksTheMatrixIsNamed) {
  FileOfScales file;
  file.add("w", Dtype::f8_e4m3, {2, 16, 16}, std::vector<std::uint8_t>(512, 0x38));
  file.add("w_scale", Dtype::f32, {2}, std::vector{1.0F, nan});
  file.save(path);
  try {
    (void)load_stack(Checkpoint(path), "w", StackKind::weights, ScaleLayout::row_major);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'w_scale' of " + path.string() + " is nan at [1]"), std::string::npos)
        << error.what();
  }
}

/// DeepSeek-V4's name and type of scales.
TEST_F(SoundScales, PowersOfTwoAreWidened) {
  for (const char* const name : {"w.weight_scale_inv", "w.scale", "w.weight_scale"}) {
    const std::vector<std::uint8_t> exponents{127, 120, 0, 254};
    const Operand operand = load(fp8().add(name, Dtype::f8_e8m0, {2, 2}, exponents));
    EXPECT_EQ(operand.format(), Format::fp8_block);
    EXPECT_EQ(element(operand.view(), 0, 0), 1.0);
    EXPECT_EQ(element(operand.view(), 5, 200), 0x1p-7);
    EXPECT_EQ(element(operand.view(), 255, 0), 0x1p-127);
    EXPECT_EQ(element(operand.view(), 128, 128), 0x1p127);
  }
  const std::vector<std::uint8_t> exponents{127, 255, 127, 127};
  expect_refused(fp8().add("w.scale", Dtype::f8_e8m0, {2, 2}, exponents), "w.scale",
                 "is nan at [0, 1], expected finite scales");
  EXPECT_EQ(element(load(fp8().add("w.scale", Dtype::f32, {2, 2}, std::vector<float>(4, 0.5F))).view(), 0, 0), 0.5);
}

TEST_F(SoundScales, OneNameCounts) {
  const std::vector<float> ones(4, 1.0F);
  FileOfScales both = fp8().add("w.scale", Dtype::f32, {2, 2}, ones);
  EXPECT_NE(refusal(both.add("w.weight_scale_inv", Dtype::f32, {2, 2}, ones)).find("are both there"),
            std::string::npos);
  FileOfScales other = fp8().add("w.scale", Dtype::f32, {2, 2}, ones);
  EXPECT_NE(refusal(other.add("w.weight_scale", Dtype::f32, {2, 2}, ones)).find("has 'w.scale' beside 'w.weight'"),
            std::string::npos);
  EXPECT_NE(refusal(fp8().add("w.scales", Dtype::f32, {2, 2}, ones))
                .find("'w.weight_scale' or 'w.weight_scale_inv' are missing; beside it is 'w.scales'"),
            std::string::npos);
}

TEST_F(SoundScales, Mxfp8IsNamed) {
  for (const Dtype dtype : {Dtype::u8, Dtype::f8_e8m0}) {
    for (const char* const name : {"w.weight_scale", "w.scale"}) {
      const std::string said = refusal(fp8().add(name, dtype, {256, 8}, std::vector<std::uint8_t>(2048, 127)));
      EXPECT_NE(said.find("a byte for 32 values: MXFP8 is not read"), std::string::npos) << said;
    }
  }
}

/// DeepSeek-V4's experts: two values in I8, the low half first, and their exponents.
TEST_F(SoundScales, Mxfp4OfDeepSeek) {
  FileOfScales file;
  file.add("w.weight", Dtype::i8, {1, 16}, std::vector<std::uint8_t>(16, 0xF2));
  file.add("w.scale", Dtype::f8_e8m0, {1, 1}, std::vector<std::uint8_t>{128});
  const Operand operand = load(file);
  EXPECT_TRUE(operand.is_mxfp4());
  const std::vector<double> values = dequantize_to_double(operand.view(), "w");
  ASSERT_EQ(values.size(), 32U);
  EXPECT_EQ(values[0], 2.0);
  EXPECT_EQ(values[1], -12.0);
  FileOfScales integers;
  integers.add("w.weight", Dtype::i8, {1, 16}, std::vector<std::uint8_t>(16, 0xF2));
  integers.add("w.weight_scale", Dtype::u8, {1, 1}, std::vector<std::uint8_t>{128});
  EXPECT_NE(refusal(integers).find("integer weights are not read"), std::string::npos);
}

}  // namespace
}  // namespace thresher::formats
