// Checkpoints that the public packages of their formats wrote (checkpoints/make.py): what is read is what the package
// itself reads, and formats that are not read are refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "formats/mxfp4.hpp"
#include "formats/nvfp4.hpp"
#include "formats/operands.hpp"

namespace thresher::formats {
namespace {

const std::filesystem::path recorded = std::filesystem::path(THRESHER_SOURCE_DIR) / "tests/formats/checkpoints";
const std::string layer = "model.layers.0.mlp.";

std::vector<float> expected(const Checkpoint& checkpoint, const std::string& projection) {
  const std::vector<std::byte> bytes = checkpoint.find("expected." + projection).read();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class RecordedNvfp4 : public testing::TestWithParam<const char*> {};

TEST_P(RecordedNvfp4, IsReadAsItsPackageReadsIt) {
  const Checkpoint checkpoint(recorded / GetParam());
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

TEST(RecordedCheckpoints, Mxfp4OfCompressedTensorsIsHeldExactly) {
  const Checkpoint checkpoint(recorded / "compressed_tensors_mxfp4.safetensors");
  for (const std::string projection : {"gate_proj", "up_proj"}) {
    const Operand operand = load_operand(checkpoint, layer + projection);
    EXPECT_EQ(operand.stored_as(), "mxfp4 as nvfp4, exact in both numerics");
    const std::vector<double> found = dequantize_to_double(operand.view(), projection);
    const std::vector<float> wanted = expected(checkpoint, projection);
    EXPECT_EQ(found, std::vector<double>(wanted.begin(), wanted.end()));
    // Quantised again it has the package's own codes and exponents.
    std::vector<float> again = wanted;
    const Mxfp4Matrix made = quantize_mxfp4(Tensor::contiguous(again.data(), Format::fp32, {8, 32}), projection);
    const auto has = [&](const char* part, const std::vector<std::uint8_t>& bytes) {
      const std::vector<std::byte> stored = checkpoint.find(layer + projection + part).read();
      return std::ranges::equal(std::as_bytes(std::span(bytes)), stored);
    };
    EXPECT_TRUE(has(".weight_packed", made.values));
    EXPECT_TRUE(has(".weight_scale", made.exponents));
  }
}

/// The package's scale is amax/448 in whatever precision it keeps it in: the greatest code is there, and no NaN.
TEST(RecordedCheckpoints, Fp8OfCompressedTensorsHasOneScale) {
  const Checkpoint checkpoint(recorded / "compressed_tensors_fp8.safetensors");
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
  const Checkpoint model(recorded / "llama");
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
