// Checkpoints that the public packages of their formats wrote (checkpoints/make.py): what is read is what the package
// itself reads, and formats that are not read are refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "formats/elements.hpp"
#include "formats/nvfp4.hpp"
#include "formats/operands.hpp"

namespace thresher::formats {
namespace {

const std::filesystem::path folder = std::filesystem::path(THRESHER_SOURCE_DIR) / "tests/formats/checkpoints";
const std::string layer = "model.layers.0.mlp.";

std::vector<float> expected(const Checkpoint& checkpoint, const std::string& projection) {
  const std::vector<std::byte> bytes = checkpoint.find("expected." + projection).read();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class RecordedNvfp4 : public testing::TestWithParam<const char*> {};

TEST_P(RecordedNvfp4, IsReadAsItsPackageReadsIt) {
  const Checkpoint checkpoint(folder / GetParam());
  for (const std::string projection : {"gate_proj", "up_proj"}) {
    const Operand operand = load_operand(checkpoint, layer + projection);
    EXPECT_EQ(operand.format(), Format::nvfp4);
    const std::vector<double> found = dequantize_to_double(operand.view(), projection);
    const std::vector<float> wanted = expected(checkpoint, projection);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], static_cast<double>(wanted[i]), 1e-6 * std::fabs(static_cast<double>(wanted[i]))) << i;
    }
    EXPECT_GT(std::fabs(wanted[0]), 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RecordedNvfp4,
                         testing::Values("compressed_tensors_nvfp4a16.safetensors",
                                         "compressed_tensors_nvfp4.safetensors", "modelopt_nvfp4.safetensors"));

/// The package keeps nothing beside codes and exponents: what they mean is the OCP Microscaling specification's to say.
TEST(RecordedCheckpoints, Mxfp4OfCompressedTensorsIsHeldExactly) {
  constexpr std::array magnitudes{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  const Checkpoint checkpoint(folder / "compressed_tensors_mxfp4.safetensors");
  for (const auto& [projection, deviation] : {std::pair{"gate_proj", 0.03}, {"up_proj", 0.06}}) {
    const Operand operand = load_operand(checkpoint, layer + projection);
    EXPECT_EQ(operand.stored_as(), "mxfp4 as nvfp4, exact in both numerics");
    const std::vector<double> found = dequantize_to_double(operand.view(), projection);
    const std::vector<std::byte> codes = checkpoint.find(layer + projection + ".weight_packed").read();
    const std::vector<std::byte> exponents = checkpoint.find(layer + projection + ".weight_scale").read();
    ASSERT_EQ(found.size(), 2 * codes.size());
    double squares = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const unsigned code = std::to_integer<unsigned>(codes[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 0xF;
      const double wanted = (code < 8 ? 1 : -1) * magnitudes[code & 7] *
                            std::exp2(static_cast<int>(std::to_integer<unsigned>(exponents[i / 32])) - 127);
      EXPECT_EQ(found[i], wanted) << i;
      squares += wanted * wanted;
    }
    // What make.py drew: a wrong bias of the exponent would be at least twice as much or half.
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(found.size())), deviation, 0.2 * deviation);
  }
}

/// The package's scale is amax/448 in whatever precision it keeps it in: the greatest code is there, and no NaN.
TEST(RecordedCheckpoints, Fp8OfCompressedTensorsHasOneScale) {
  const Checkpoint checkpoint(folder / "compressed_tensors_fp8.safetensors");
  for (const std::string projection : {"gate_proj", "up_proj"}) {
    const Operand operand = load_operand(checkpoint, layer + projection);
    EXPECT_EQ(operand.format(), Format::fp8_tensor);
    const std::vector<double> found = dequantize_to_double(operand.view(), projection);
    double largest = 0;
    for (const double value : found) {
      largest = std::max(largest, std::fabs(value));
    }
    EXPECT_DOUBLE_EQ(largest, 448 * global_scale(operand.view()));
    EXPECT_GT(largest, 0.05);
    EXPECT_LT(largest, 0.5);
  }
}

TEST(RecordedCheckpoints, AModelInSeveralFilesIsFoundByItsFolder) {
  const Checkpoint model(folder / "llama");
  const Operand gate = load_operand(model, layer + "gate_proj");
  const Operand up = load_operand(model, layer + "up_proj.weight");
  EXPECT_EQ(gate.format(), Format::bf16);
  EXPECT_EQ(gate.rows(), 8);
  EXPECT_EQ(up.k(), 32);
  EXPECT_NE(gate.source().find("model-00004-of-00006.safetensors"), std::string::npos) << gate.source();
  EXPECT_NE(up.source().find("model-00005-of-00006.safetensors"), std::string::npos) << up.source();
}

}  // namespace
}  // namespace thresher::formats
