// `thresher run gated-mlp` on layers of checkpoints, as a user calls it: those that public packages wrote
// (tests/formats/checkpoints), and such as are documented.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cli/layer_files.hpp"
#include "formats/checkpoint.hpp"
#include "formats/numbers.hpp"

namespace thresher::testing {
namespace {

const fs::path recorded_layers = fs::path(THRESHER_SOURCE_DIR) / "tests/formats/checkpoints";

/// A matrix of a recorded checkpoint in BF16 or, widened by the package that made it, in F32.
LayerMatrix recorded_matrix(const formats::Checkpoint& checkpoint, const std::string& name) {
  const formats::LocatedTensor found = checkpoint.find(name);
  LayerMatrix matrix(found.tensor->shape[0], found.tensor->shape[1], 0);
  const std::vector<std::byte> bytes = found.read();
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    if (found.tensor->dtype == Dtype::f32) {
      std::memcpy(&matrix.values[i], bytes.data() + i * sizeof(float), sizeof(float));
    } else {
      std::uint16_t pattern = 0;
      std::memcpy(&pattern, bytes.data() + i * sizeof pattern, sizeof pattern);
      matrix.values[i] = formats::bf16_to_float(pattern);
    }
  }
  return matrix;
}

TEST_F(RunGatedMlp, ADenseLayerOfAModelInSeveralFiles) {
  const formats::Checkpoint model(recorded_layers / "llama");
  LayerExpert mlp(0);
  mlp.gate = recorded_matrix(model, "model.layers.0.mlp.gate_proj.weight");
  mlp.up = recorded_matrix(model, "model.layers.0.mlp.up_proj.weight");
  mlp.down = recorded_matrix(model, "model.layers.0.mlp.down_proj.weight");
  expect_layer("--layer 0 --checkpoint '" + (recorded_layers / "llama").string() + "'",
               "model.layers.0.mlp, dense, gate and up [8, 32] bf16, down [32, 8] bf16",
               [&](const std::vector<double>& x, std::int64_t) { return mlp(x); });
}

/// Three bits of significand: other values than with an intermediate in bf16, and not far from those.
TEST_F(RunGatedMlp, TheIntermediateMayBeFp8) {
  LayerFile file;
  const LayerExpert mlp(4);
  file.add_bf16("model.layers.0.mlp.gate_proj", mlp.gate);
  file.add_bf16("model.layers.0.mlp.up_proj", mlp.up);
  file.add_bf16("model.layers.0.mlp.down_proj", mlp.down);
  file.save(folder_ / "model.safetensors");
  save_tokens();
  const std::string arguments = "--out-type fp32 --checkpoint model.safetensors --layer 0 ";
  for (const std::string intermediate : {"fp8_row", "fp8_tensor --intermediate-scale 0.125"}) {
    ASSERT_EQ(run(arguments + "--intermediate " + intermediate).status, 0);
    const std::vector<float> out = result();
    for (std::int64_t row = 0; row < tokens; ++row) {
      const std::vector<double> wanted = mlp(token(row));
      double error = 0;
      double norm = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        error += std::pow(static_cast<double>(out[static_cast<std::size_t>(row * hidden_size) + i]) - wanted[i], 2);
        norm += wanted[i] * wanted[i];
      }
      EXPECT_LT(error, 0.06 * 0.06 * norm) << intermediate;
      EXPECT_GT(error, 0.003 * 0.003 * norm) << intermediate;
    }
  }
}

/// Gate and up as ModelOpt and compressed-tensors wrote them, whose global scales multiply and divide; down in BF16.
TEST_F(RunGatedMlp, LayersThatPublicPackagesQuantised) {
  for (const char* const name : {"modelopt_nvfp4", "compressed_tensors_nvfp4", "compressed_tensors_nvfp4a16"}) {
    const formats::Checkpoint made(recorded_layers / (std::string(name) + ".safetensors"));
    LayerFile file;
    for (const std::string& tensor : made.names_from("model.")) {
      const formats::LocatedTensor found = made.find(tensor);
      file.add_bytes(tensor, found.tensor->dtype, found.tensor->shape, found.read());
    }
    LayerExpert mlp(0);
    mlp.gate = recorded_matrix(made, "expected.gate_proj");
    mlp.up = recorded_matrix(made, "expected.up_proj");
    mlp.down = LayerMatrix(hidden_size, 8, 4);
    file.add_bf16("model.layers.0.mlp.down_proj", mlp.down);
    file.save(folder_ / "model.safetensors");
    expect_layer("--layer 0 --checkpoint model.safetensors",
                 "model.layers.0.mlp, dense, gate and up [8, 32] nvfp4, down [32, 8] bf16",
                 [&](const std::vector<double>& x, std::int64_t) { return mlp(x); });
  }
}

/// In FP8 as DeepSeek names its scales, beside a shared expert, and in BF16 as Mixtral names its matrices.
TEST_F(RunGatedMlp, ALayerOfExperts) {
  for (const bool is_fp8 : {true, false}) {
    LayerFile file;
    std::vector<LayerExpert> experts;
    for (std::int64_t e = 0; e < 3; ++e) {
      experts.emplace_back(10 * e + 3);
      const std::string block =
          (is_fp8 ? "model.layers.17.mlp.experts." : "model.layers.17.block_sparse_moe.experts.") + std::to_string(e) +
          ".";
      const std::array names{is_fp8 ? "gate_proj" : "w1", is_fp8 ? "up_proj" : "w3", is_fp8 ? "down_proj" : "w2"};
      const std::array matrices{&experts.back().gate, &experts.back().up, &experts.back().down};
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (!is_fp8) {
          file.add_bf16(block + names[i], *matrices[i]);
          continue;
        }
        // Values twice as large with a scale of a half for the one expert, of an eighth of what is 8 times as large.
        const float scale = e == 1 ? 0.125F : 0.5F;
        std::vector<std::uint8_t> codes;
        for (const float value : matrices[i]->values) {
          codes.push_back(formats::float_to_e4m3(value / scale));
        }
        file.add(block + names[i] + ".weight", Dtype::f8_e4m3, {matrices[i]->rows, matrices[i]->columns}, codes);
        file.add(block + names[i] + ".weight_scale_inv", Dtype::f32, {1, 1}, std::vector<float>{scale});
      }
    }
    if (is_fp8) {
      file.add_bf16("model.layers.17.mlp.shared_experts.gate_proj", experts[0].gate);
    }
    file.save(folder_ / "model.safetensors");
    expect_layer("--layer 17 --checkpoint model.safetensors",
                 is_fp8 ? "model.layers.17.mlp, 3 experts, gate and up [16, 32] fp8_tensor, down [32, 16] "
                          "fp8_tensor, silu (no config.json); shared_experts left out"
                        : "model.layers.17.block_sparse_moe, 3 experts, gate and up [16, 32] bf16",
                 [&](const std::vector<double>& x, std::int64_t row) { return total_experts(experts, x, row); });
    EXPECT_EQ(result()[2 * hidden_size], 0.0F);
  }
}

/// gpt-oss: MXFP4 blocks of all experts, rows of gate and up in turn, biases, its own activation.
TEST_F(RunGatedMlp, BlocksOfGptOss) {
  constexpr std::int64_t wide = 32;  // the intermediate size: blocks are of 32
  const auto code_of = [](std::int64_t i) { return static_cast<std::uint8_t>(i * 5 % 16); };
  const auto exponent_of = [](std::int64_t i) { return static_cast<std::uint8_t>(123 + i % 3); };
  const auto bias_of = [](std::int64_t i) { return quarter(i + 1); };
  LayerFile file;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns, std::int64_t first) {
    std::vector<std::uint8_t> codes;
    std::vector<std::uint8_t> exponents;
    std::vector<std::uint16_t> biases;
    for (std::int64_t i = 0; i < 3 * rows * columns; i += 2) {
      codes.push_back(static_cast<std::uint8_t>(code_of(first + i) | code_of(first + i + 1) << 4));
    }
    for (std::int64_t i = 0; i < 3 * rows * columns / 32; ++i) {
      exponents.push_back(exponent_of(first + i));
    }
    for (std::int64_t i = 0; i < 3 * rows; ++i) {
      biases.push_back(formats::float_to_bf16(bias_of(first + i)));
    }
    file.add(name + "_blocks", Dtype::u8, {3, rows, columns / 32, 16}, codes);
    file.add(name + "_scales", Dtype::u8, {3, rows, columns / 32}, exponents);
    file.add(name + "_bias", Dtype::bf16, {3, rows}, biases);
  };
  add("model.layers.5.mlp.experts.gate_up_proj", 2 * wide, hidden_size, 1);
  add("model.layers.5.mlp.experts.down_proj", hidden_size, wide, 6);
  file.save(folder_ / "model.safetensors");
  /// Row `row` of an expert's matrix of so many rows, times x, and its bias.
  const auto product = [&](std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t expert,
                           std::int64_t row, const std::vector<double>& x) {
    double sum = static_cast<double>(bias_of(first + expert * rows + row));
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::int64_t at = (expert * rows + row) * columns + i;
      sum += static_cast<double>(formats::e2m1_to_float(code_of(first + at))) *
             std::exp2(exponent_of(first + at / 32) - 127) * x[static_cast<std::size_t>(i)];
    }
    return sum;
  };
  const auto of_expert = [&](std::int64_t expert, const std::vector<double>& x) {
    std::vector<double> hidden;
    for (std::int64_t i = 0; i < wide; ++i) {
      const double gate = std::min(product(1, 2 * wide, hidden_size, expert, 2 * i, x), 7.0);
      const double up = std::clamp(product(1, 2 * wide, hidden_size, expert, 2 * i + 1, x), -7.0, 7.0);
      hidden.push_back(gate / (1 + std::exp(-1.702 * gate)) * (up + 1));
    }
    std::vector<double> out;
    for (std::int64_t i = 0; i < hidden_size; ++i) {
      out.push_back(product(6, hidden_size, wide, expert, i, hidden));
    }
    return out;
  };
  expect_layer(
      "--layer 5 --checkpoint model.safetensors",
      "model.layers.5.mlp, 3 experts, gate and up [32, 32] mxfp4 as nvfp4, exact in both numerics, down [32, 32] mxfp4 "
      "as nvfp4, exact in both numerics",
      [&](const std::vector<double>& x, std::int64_t row) {
        std::vector<double> sum(static_cast<std::size_t>(hidden_size));
        const std::vector<std::pair<double, std::int64_t>> chosen =
            row == 0   ? std::vector<std::pair<double, std::int64_t>>{{0.75, 2}, {0.25, 0}}
            : row == 1 ? std::vector<std::pair<double, std::int64_t>>{{1.5, 1}}
                       : std::vector<std::pair<double, std::int64_t>>{};
        for (const auto& [weight, expert] : chosen) {
          const std::vector<double> out = of_expert(expert, x);
          for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += weight * out[i];
          }
        }
        return sum;
      });
  const Outcome said = run("--layer 5 --checkpoint model.safetensors");
  EXPECT_NE(said.out.find("swiglu_clamped"), std::string::npos) << said.out;
  const Outcome other = run("--layer 5 --checkpoint model.safetensors --activation silu");
  EXPECT_NE(other.out.find("silu"), std::string::npos) << other.out;
}

TEST_F(RunGatedMlp, SaysWhatIsNoLayer) {
  save_tokens();
  const LayerExpert expert(1);
  LayerFile file;
  file.add_bf16("model.layers.1.mlp.fc1", expert.gate);
  for (const char* const number : {"0", "1", "3"}) {
    const std::string block = std::string("model.layers.2.mlp.experts.") + number + ".";
    file.add_bf16(block + "gate_proj", expert.gate);
    file.add_bf16(block + "up_proj", expert.up);
    file.add_bf16(block + "down_proj", expert.down);
  }
  file.add_bf16("model.layers.3.mlp.gate_proj", expert.gate);
  file.add_bf16("model.layers.3.mlp.up_proj", expert.up);
  file.add_bf16("model.layers.3.mlp.down_proj", expert.gate);
  file.add_bf16("model.layers.4.mlp.gate_proj", expert.gate);
  file.add_bf16("model.layers.4.mlp.up_proj", expert.down);
  file.add_bf16("model.layers.4.mlp.down_proj", expert.down);
  for (const char* const place : {"model.layers.5.mlp.", "draft.layers.5.mlp."}) {
    file.add_bf16(std::string(place) + "gate_proj", expert.gate);
  }
  for (const char* const number : {"0", "1"}) {
    const std::string block = std::string("model.layers.6.mlp.experts.") + number + ".";
    file.add_bf16(block + "gate_proj", number[0] == '0' ? expert.gate : expert.down);
    file.add_bf16(block + "up_proj", expert.up);
    file.add_bf16(block + "down_proj", expert.down);
  }
  file.add_bf16("model.layers.7.mlp.gate_proj", expert.gate);
  file.add_bf16("model.layers.7.mlp.up_proj", expert.up);
  file.add("model.layers.8.mlp.experts.gate_up_proj_blocks", Dtype::u8, {1, 2, 1, 16}, std::vector<std::uint8_t>(32));
  file.add("model.layers.8.mlp.experts.gate_up_proj_scales", Dtype::u8, {1, 2, 1}, std::vector<std::uint8_t>{1, 253});
  for (const char* const place : {"model.layers.9.mlp.", "model.layers.9.mlp.experts.0.", "model.layers.10.mlp."}) {
    file.add_bf16(std::string(place) + "gate_proj", expert.gate);
  }
  file.add("model.layers.10.mlp.experts.gate_up_proj_blocks", Dtype::u8, {1, 2, 1, 16}, std::vector<std::uint8_t>(32));
  file.save(folder_ / "model.safetensors");
  const std::string model = "--checkpoint model.safetensors --layer ";
  expect_refusal(model + "20",
                 "model.safetensors has no layer 20: no name has layers.20. in it; it has 'model.layers.1.");
  expect_refusal(model + "1",
                 "layer 1 of model.safetensors has no feed-forward matrices named model.layers.1.mlp.gate_proj");
  expect_refusal(model + "2", "has 'model.layers.2.mlp.experts.3' and no 'model.layers.2.mlp.experts.2.gate_proj'");
  expect_refusal(model + "3", "down_proj.weight' of model.safetensors is bf16 [16, 32], expected bf16 [32, 16]");
  expect_refusal(model + "4", "up_proj.weight' of model.safetensors is bf16 [32, 16], expected bf16 [16, 32]");
  expect_refusal(
      model + "5",
      "is there twice, as a dense layer at 'draft.layers.5.mlp' and as a dense layer at 'model.layers.5.mlp'");
  expect_refusal(model + "6",
                 "experts.1.gate_proj.weight' of model.safetensors is bf16 [32, 16], expected bf16 [16, 32]");
  expect_refusal(model + "7", "has no tensor 'model.layers.7.mlp.down_proj'");
  expect_refusal(model + "8", "has the exponent 253, expected 0 to 252");
  expect_refusal(model + "9",
                 "is there twice, as experts at 'model.layers.9.mlp' and as a dense layer at 'model.layers.9.mlp'");
  expect_refusal(model + "10",
                 "is there twice, as a dense layer at 'model.layers.10.mlp' and as experts at 'model.layers.10.mlp'");
  expect_refusal(model + "-1", "--layer");
  expect_refusal("--checkpoint nothing.safetensors --layer 0", "nothing.safetensors");
  const std::string before = slurp(folder_ / "model.safetensors");
  const Outcome onto_itself = run_thresher(
      folder_.path(), "run gated-mlp --in x.safetensors --device cpu " + model + "3 --out model.safetensors");
  EXPECT_EQ(onto_itself.status, 2);
  EXPECT_NE(onto_itself.err.find("--out"), std::string::npos) << onto_itself.err;
  EXPECT_EQ(slurp(folder_ / "model.safetensors"), before);
}

TEST_F(RunGatedMlp, SaysWhatIsWrongWithTheTokens) {
  const LayerExpert expert(1);
  LayerFile model;
  for (const auto& [name, matrix] :
       {std::pair{"gate_proj", &expert.gate}, {"up_proj", &expert.up}, {"down_proj", &expert.down}}) {
    model.add_bf16(std::string("model.layers.0.mlp.experts.0.") + name, *matrix);
  }
  model.save(folder_ / "model.safetensors");
  const std::string arguments = "--checkpoint model.safetensors --layer 0";
  const auto with = [&](const char* part, const std::function<void(LayerFile&)>& change) {
    LayerFile file;
    file.add("x", Dtype::bf16, {1, hidden_size}, std::vector<std::uint16_t>(hidden_size));
    file.add("topk_ids", Dtype::i32, {1, 1}, std::vector<std::int32_t>{0});
    file.add("topk_weights", Dtype::f32, {1, 1}, std::vector<float>{1});
    change(file);
    file.save(folder_ / "x.safetensors");
    expect_refusal(arguments, part);
  };
  with("has no tensor 'x'", [](LayerFile& file) { file.remove("x"); });
  with("tensor 'x' of x.safetensors has 16 columns, but the layer model.layers.0.mlp has the hidden size 32",
       [](LayerFile& file) { file.add("x", Dtype::bf16, {1, 16}, std::vector<std::uint16_t>(16)); });
  with("has no tensor 'topk_ids'", [](LayerFile& file) { file.remove("topk_ids"); });
  with("tensor 'topk_ids' of x.safetensors has 1 dimensions, expected 2: [tokens, top k]",
       [](LayerFile& file) { file.add("topk_ids", Dtype::i32, {1}, std::vector<std::int32_t>{0}); });
  with("'topk_ids' of x.safetensors is F32 [1, 1], but must be I32",
       [](LayerFile& file) { file.add("topk_ids", Dtype::f32, {1, 1}, std::vector<float>{0}); });
  with("topk_ids is [2, 1], expected [1, 1]",
       [](LayerFile& file) { file.add("topk_ids", Dtype::i32, {2, 1}, std::vector<std::int32_t>{0, 0}); });
  with("topk_weights is [1, 2], expected [1, 1]",
       [](LayerFile& file) { file.add("topk_weights", Dtype::f32, {1, 2}, std::vector<float>{1, 1}); });
  with("topk_weights is bf16, expected fp32",
       [](LayerFile& file) { file.add("topk_weights", Dtype::bf16, {1, 1}, std::vector<std::uint16_t>{1}); });
  with("problem.top_k is 0", [](LayerFile& file) {
    file.add("topk_ids", Dtype::i32, {1, 0}, std::vector<std::int32_t>{});
    file.add("topk_weights", Dtype::f32, {1, 0}, std::vector<float>{});
  });
}

}  // namespace
}  // namespace thresher::testing
