// A layer of a model of every family, from a folder as a public tool wrote it
// (tests/formats/checkpoints/make_families.py), against float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "formats/safetensors.hpp"

namespace thresher::testing {
namespace {

namespace fs = std::filesystem;

const fs::path families = fs::path(THRESHER_SOURCE_DIR) / "tests/formats/checkpoints/families";

std::vector<float> numbers(const fs::path& path, const char* name) {
  const formats::SafetensorsFile file(path);
  const std::vector<std::byte> bytes = file.read(*file.find(name));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

struct Folder {
  const char* name;
  const char* found;  ///< what the first line says of it
};
void PrintTo(const Folder& folder, std::ostream* out) { *out << folder.name; }

class Families : public ::testing::TestWithParam<Folder> {};

/// The intermediate is rounded to bf16, by 2^-9 of each value at most, and these errors add up at random.
TEST_P(Families, ALayerIsThatOfItsOwnTool) {
  const ScratchFolder folder;
  const std::string name = GetParam().name;
  const fs::path rows = families / (name + ".safetensors");
  const Outcome outcome =
      run_thresher(folder.path(), "run gated-mlp --layer 0 --device cpu --out-type fp32 --out out.safetensors --in '" +
                                      rows.string() + "' --checkpoint '" + (families / name).string() + "'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find(GetParam().found), std::string::npos) << outcome.out;
  const std::vector<float> wanted = numbers(rows, "expected");
  const std::vector<float> found = numbers(folder / "out.safetensors", "out");
  ASSERT_EQ(found.size(), wanted.size());
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(static_cast<double>(found[i]) - static_cast<double>(wanted[i]), 2);
    norm += std::pow(static_cast<double>(wanted[i]), 2);
  }
  EXPECT_LT(std::sqrt(error), std::exp2(-8) * std::sqrt(norm));
  EXPECT_GT(norm, 1.0);
}

INSTANTIATE_TEST_SUITE_P(
    AsWritten, Families,
    ::testing::Values(
        Folder{"llama_nvfp4", "dense, gate and up [32, 32] nvfp4, down [32, 32] nvfp4, silu (config.json: hidden_act)"},
        Folder{"qwen3_fp8", "dense, gate and up [128, 256] fp8_block, down [256, 128] fp8_block, silu"},
        Folder{"qwen3_moe_nvfp4", "3 experts, gate and up [32, 32] nvfp4, down [32, 32] nvfp4, silu"},
        Folder{"mixtral", "block_sparse_moe, 3 experts, gate and up [16, 32] bf16, down [32, 16] bf16, silu"},
        Folder{"gpt_oss", "model.layers.0.mlp, 3 experts, gate and up [32, 32] mxfp4 as nvfp4"},
        Folder{"gpt_oss_own", "block.0.mlp, 3 experts, gate and up [32, 32] mxfp4 as nvfp4"},
        Folder{"deepseek_v3_fp8",
               "2 experts, gate and up [128, 128] fp8_tensor, down [128, 128] fp8_tensor, silu "
               "(config.json: hidden_act); shared_experts left out"},
        Folder{"gemma3", "dense, gate and up [16, 32] bf16, down [32, 16] bf16, gelu_tanh"},
        Folder{"phi3", "dense, gate and up [16, 32] bf16, down [32, 16] bf16, silu"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace thresher::testing
