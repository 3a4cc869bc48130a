// Layers of `thresher run gated-mlp` under the names of other families, and the choice among layers of one number.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/layer_files.hpp"

namespace thresher::testing {
namespace {

constexpr std::array<const char*, 3> of_mistral{"w1", "w3", "w2"};

std::vector<std::uint16_t> in_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> patterns;
  std::transform(values.begin(), values.end(), std::back_inserter(patterns), formats::float_to_bf16);
  return patterns;
}

/// Rows of one and then of the other.
LayerMatrix joined(const LayerMatrix& first, const LayerMatrix& second) {
  LayerMatrix both = first;
  both.rows += second.rows;
  both.values.insert(both.values.end(), second.values.begin(), second.values.end());
  return both;
}

/// Rows of one and of the other by turns.
LayerMatrix alternating(const LayerMatrix& first, const LayerMatrix& second) {
  LayerMatrix both = joined(first, second);
  for (std::int64_t i = 0; i < both.rows * both.columns; ++i) {
    const LayerMatrix& from = i / both.columns % 2 == 0 ? first : second;
    both.values[static_cast<std::size_t>(i)] =
        from.values[static_cast<std::size_t>(i / both.columns / 2 * both.columns + i % both.columns)];
  }
  return both;
}

LayerMatrix transposed(const LayerMatrix& matrix) {
  LayerMatrix other(matrix.columns, matrix.rows, 0);
  for (std::int64_t i = 0; i < matrix.rows * matrix.columns; ++i) {
    other.values[static_cast<std::size_t>(i % matrix.columns * matrix.rows + i / matrix.columns)] =
        matrix.values[static_cast<std::size_t>(i)];
  }
  return other;
}

/// One tensor [E, rows, columns] in bf16.
void add_stack(LayerFile& file, const std::string& name, const std::vector<LayerMatrix>& matrices) {
  std::vector<float> values;
  for (const LayerMatrix& matrix : matrices) {
    values.insert(values.end(), matrix.values.begin(), matrix.values.end());
  }
  file.add(name, Dtype::bf16, {std::ssize(matrices), matrices[0].rows, matrices[0].columns}, in_bf16(values));
}

class LayerNames : public RunGatedMlp {
 protected:
  void SetUp() override {
    for (std::int64_t e = 0; e < 3; ++e) {
      experts_.emplace_back(10 * e + 3);
    }
  }
  void save(const LayerFile& file) const { file.save(folder_ / "model.safetensors"); }
  /// Of the first expert as a dense layer.
  void expect_dense(const std::string& found, const std::string& arguments = "--layer 0") {
    expect_layer(arguments + " --checkpoint model.safetensors", found,
                 [&](const std::vector<double>& x, std::int64_t) { return experts_[0](x); });
  }
  void expect_experts(const std::string& found) {
    expect_layer("--layer 0 --checkpoint model.safetensors", found,
                 [&](const std::vector<double>& x, std::int64_t row) { return total_experts(experts_, x, row); });
  }
  void expect_refused(const LayerFile& file, const std::string& sentence, const std::string& arguments = "") {
    save(file);
    save_tokens();
    expect_refusal("--checkpoint model.safetensors --layer 0 " + arguments, sentence);
  }
  /// All experts in tensors of three dimensions, gate first.
  [[nodiscard]] LayerFile stacks() const {
    LayerFile file;
    std::vector<LayerMatrix> both;
    std::vector<LayerMatrix> down;
    for (const LayerExpert& expert : experts_) {
      both.push_back(joined(expert.gate, expert.up));
      down.push_back(expert.down);
    }
    add_stack(file, "model.layers.0.mlp.experts.gate_up_proj", both);
    add_stack(file, "model.layers.0.mlp.experts.down_proj", down);
    return file;
  }

  std::vector<LayerExpert> experts_;
};

TEST_F(LayerNames, DenseLayers) {
  LayerFile mistral;
  mistral.add_layer("layers.0.feed_forward.", experts_[0], of_mistral);
  save(mistral);
  expect_dense("layers.0.feed_forward, dense, gate and up [16, 32] bf16");
  LayerFile falcon;
  falcon.add_layer("model.layers.0.feed_forward.", experts_[0]);
  save(falcon);
  expect_dense("model.layers.0.feed_forward, dense, gate and up [16, 32] bf16");
  LayerFile phi;
  phi.add_bf16("model.layers.0.mlp.gate_up_proj", joined(experts_[0].gate, experts_[0].up));
  phi.add_bf16("model.layers.0.mlp.down_proj", experts_[0].down);
  save(phi);
  expect_dense("model.layers.0.mlp, dense, gate and up [16, 32] bf16");
  expect_dense("\ntopk_ids and topk_weights of x.safetensors are not used: the layer is dense\n");
}

TEST_F(LayerNames, ExpertsOfDeepSeekV4) {
  LayerFile file;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const std::string place = "layers.0.ffn.experts." + std::to_string(e) + ".";
    const LayerExpert& expert = experts_[e];
    for (const auto& [name, matrix] : {std::pair{"w1", &expert.gate}, {"w3", &expert.up}, {"w2", &expert.down}}) {
      std::vector<std::uint8_t> codes;
      for (const float value : matrix->values) {
        codes.push_back(formats::float_to_e4m3(value * 4));
      }
      file.add(place + name + ".weight", Dtype::f8_e4m3, {matrix->rows, matrix->columns}, codes);
      file.add(place + name + ".scale", Dtype::f8_e8m0, {1, 1}, std::vector<std::uint8_t>{125});
    }
  }
  file.add_bf16("layers.0.ffn.gate", experts_[0].gate);
  file.add_bf16("layers.0.ffn.shared_experts.w1", experts_[0].gate);
  save(file);
  expect_experts(
      "layers.0.ffn, 3 experts, gate and up [16, 32] fp8_tensor, down [32, 16] fp8_tensor, "
      "silu (no config.json); shared_experts left out");
}

TEST_F(LayerNames, ExpertsInOneTensor) {
  LayerFile file = stacks();
  file.add_bf16("model.layers.0.mlp.gate", experts_[0].gate);
  save(file);
  expect_experts(
      "model.layers.0.mlp, 3 experts, gate and up [16, 32] bf16, down [32, 16] bf16, silu (no config.json)\n");
}

/// As routers give them; what 32 bits do not hold is nobody's.
TEST_F(LayerNames, IdsOf64Bits) {
  save(stacks());
  save_tokens();
  const std::string arguments = "--out-type fp32 --layer 0 --checkpoint model.safetensors";
  ASSERT_EQ(run(arguments).status, 0);
  const std::vector<float> wanted = result();
  const formats::SafetensorsFile narrow(folder_ / "x.safetensors");
  LayerFile wide;
  for (const formats::StoredTensor& tensor : narrow.header().tensors) {
    wide.add_bytes(tensor.name, tensor.dtype, tensor.shape, narrow.read(tensor));
  }
  wide.add("topk_ids", Dtype::i64, {tokens, 2}, std::vector<std::int64_t>{2, 0, 1, -1, 3, std::int64_t{1} << 32});
  wide.save(folder_ / "x.safetensors");
  ASSERT_EQ(run(arguments).status, 0);
  EXPECT_EQ(result(), wanted);
}

/// FP8 with a scale for each expert, and NVFP4 with a global scale of gate and one of up for each.
TEST_F(LayerNames, QuantisedExpertsInOneTensor) {
  LayerFile file = stacks();
  std::vector<std::uint8_t> codes;
  for (const LayerExpert& expert : experts_) {
    for (const float value : expert.down.values) {
      codes.push_back(formats::float_to_e4m3(value * 2));
    }
  }
  file.add("model.layers.0.mlp.experts.down_proj", Dtype::f8_e4m3, {3, 32, 16}, codes);
  file.add("model.layers.0.mlp.experts.down_proj_scale", Dtype::f32, {3}, std::vector<float>(3, 0.5F));
  const std::string both = "model.layers.0.mlp.experts.gate_up_proj";
  std::vector<std::uint8_t> pairs;
  for (LayerExpert& expert : experts_) {
    for (LayerMatrix* const matrix : {&expert.gate, &expert.up}) {
      const float scale = matrix == &expert.gate ? 0.5F : 0.25F;
      for (std::size_t i = 0; i < matrix->values.size(); i += 2) {
        const std::uint8_t low = formats::float_to_e2m1(matrix->values[i] / scale);
        const std::uint8_t high = formats::float_to_e2m1(matrix->values[i + 1] / scale);
        pairs.push_back(static_cast<std::uint8_t>(low | high << 4));
        matrix->values[i] = formats::e2m1_to_float(low) * scale;
        matrix->values[i + 1] = formats::e2m1_to_float(high) * scale;
      }
    }
  }
  file.add(both, Dtype::u8, {3, 32, 16}, pairs);
  file.add(both + "_scale", Dtype::f8_e4m3, {3, 32, 2}, std::vector<std::uint8_t>(192, 0x38));
  file.add(both + "_scale_2", Dtype::f32, {3, 2}, std::vector<float>{0.5F, 0.25F, 0.5F, 0.25F, 0.5F, 0.25F});
  save(file);
  save_tokens();
  const Outcome outcome = run("--out-type fp32 --layer 0 --checkpoint model.safetensors");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("gate and up [16, 32] nvfp4, down [32, 16] fp8_tensor"), std::string::npos) << outcome.out;
  const std::vector<float> out = result();
  for (std::int64_t row = 0; row < tokens; ++row) {
    expect_near(total_experts(experts_, token(row), row), out.data() + row * hidden_size);
  }
}

/// gpt-oss in BF16: rows and columns exchanged, gate and up by turns, biases, and its own activation.
TEST_F(LayerNames, Bf16ExpertsOfGptOss) {
  LayerFile file;
  std::vector<LayerMatrix> both;
  std::vector<LayerMatrix> down;
  std::vector<float> both_bias;
  std::vector<float> down_bias;
  for (const LayerExpert& expert : experts_) {
    both.push_back(transposed(alternating(expert.gate, expert.up)));
    down.push_back(transposed(expert.down));
  }
  for (std::int64_t i = 0; i < 3 * hidden_size; ++i) {
    both_bias.push_back(quarter(i + 1));
    down_bias.push_back(quarter(3 * i));
  }
  const std::string place = "model.layers.0.mlp.experts.";
  add_stack(file, place + "gate_up_proj", both);
  add_stack(file, place + "down_proj", down);
  file.add(place + "gate_up_proj_bias", Dtype::bf16, {3, 2 * intermediate_size}, in_bf16(both_bias));
  file.add(place + "down_proj_bias", Dtype::bf16, {3, hidden_size}, in_bf16(down_bias));
  save(file);
  const auto of_expert = [&](std::size_t e, const std::vector<double>& x) {
    const std::vector<double> gate = experts_[e].gate.times(x);
    const std::vector<double> up = experts_[e].up.times(x);
    std::vector<double> hidden;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const std::size_t at = e * 2 * intermediate_size + 2 * i;
      const double g = std::min(gate[i] + static_cast<double>(both_bias[at]), 7.0);
      const double u = std::clamp(up[i] + static_cast<double>(both_bias[at + 1]), -7.0, 7.0);
      hidden.push_back(g / (1 + std::exp(-1.702 * g)) * (u + 1));
    }
    std::vector<double> out = experts_[e].down.times(hidden);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] += static_cast<double>(down_bias[e * hidden_size + i]);
    }
    return out;
  };
  expect_layer("--layer 0 --checkpoint model.safetensors",
               "3 experts, gate and up [16, 32] bf16, down [32, 16] bf16, swiglu_clamped, alpha 1.702, limit 7, up "
               "offset 1 (gpt-oss's; no config.json)",
               [&](const std::vector<double>& x, std::int64_t row) {
                 std::vector<double> sum(hidden_size);
                 const std::vector<std::pair<double, std::size_t>> chosen =
                     row == 0   ? std::vector<std::pair<double, std::size_t>>{{0.75, 2}, {0.25, 0}}
                     : row == 1 ? std::vector<std::pair<double, std::size_t>>{{1.5, 1}}
                                : std::vector<std::pair<double, std::size_t>>{};
                 for (const auto& [weight, expert] : chosen) {
                   const std::vector<double> out = of_expert(expert, x);
                   for (std::size_t i = 0; i < sum.size(); ++i) {
                     sum[i] += weight * out[i];
                   }
                 }
                 return sum;
               });
}

/// Under gpt-oss's own names the router and the norm in front of it are known, and nothing else is.
TEST_F(LayerNames, OwnNamesOfGptOssHaveNothingElse) {
  const std::string block = "block.4.mlp.";
  LayerFile file;
  file.add(block + "mlp1_weight.blocks", Dtype::u8, {1, 64, 1, 16}, std::vector<std::uint8_t>(1024));
  file.add(block + "norm.scale", Dtype::f32, {32}, std::vector<float>(32));
  file.save(folder_ / "model.safetensors");
  save_tokens();
  expect_refusal("--layer 4 --checkpoint model.safetensors", "no tensor 'block.4.mlp.mlp1_weight.scales'");
  expect_refusal("--layer 5 --checkpoint model.safetensors", "no layer 5");
  file.add(block + "mlp1_gain", Dtype::f32, {32}, std::vector<float>(32));
  file.save(folder_ / "model.safetensors");
  expect_refusal("--layer 4 --checkpoint model.safetensors",
                 "'block.4.mlp.mlp1_gain' beside 'block.4.mlp.mlp1_weight'");
}

TEST_F(LayerNames, APrefixChoosesAmongLayersOfOneNumber) {
  LayerFile file;
  file.add_layer("model.layers.0.mlp.", experts_[0]);
  file.add_layer("mtp.layers.0.mlp.", experts_[1]);
  save(file);
  for (const char* const prefix : {"model.", "model"}) {
    expect_dense("model.layers.0.mlp, dense", std::string("--layer 0 --prefix ") + prefix);
  }
  expect_layer("--layer 0 --prefix mtp. --checkpoint model.safetensors", "mtp.layers.0.mlp, dense",
               [&](const std::vector<double>& x, std::int64_t) { return experts_[1](x); });
  LayerFile bare;
  bare.add_layer("layers.0.mlp.", experts_[0]);
  bare.add_layer("mtp.layers.0.mlp.", experts_[1]);
  save(bare);
  expect_dense("layers.0.mlp, dense", "--layer 0 --prefix ''");
}

TEST_F(LayerNames, LayersOfOneNumberAreNamedWithTheOption) {
  LayerFile file;
  file.add_layer("model.layers.0.mlp.", experts_[0]);
  file.add_layer("mtp.layers.0.mlp.", experts_[1]);
  expect_refused(file,
                 "layer 0 of model.safetensors is there twice, as a dense layer at 'model.layers.0.mlp' and as a "
                 "dense layer at 'mtp.layers.0.mlp', expected one: say --prefix model. or --prefix mtp.\n");
  expect_refused(file, "--prefix model.mtp.: model.safetensors has no 'model.mtp.layers.0.'; it has 'model.layers.0.'",
                 "--prefix model.mtp");
  LayerFile bare;
  bare.add_layer("layers.0.mlp.", experts_[0]);
  bare.add_layer("mtp.layers.0.mlp.", experts_[1]);
  expect_refused(bare, "expected one: say --prefix '' or --prefix mtp.");
}

TEST_F(LayerNames, WhatChangesALayerIsRefused) {
  const auto with = [&](const std::string& name) {
    LayerFile file;
    file.add_layer("model.layers.0.mlp.", experts_[0]);
    file.add("model.layers.0.mlp." + name, Dtype::bf16, {16}, std::vector<std::uint16_t>(16));
    return file;
  };
  expect_refused(with("ffn_sub_norm.weight"),
                 "has 'model.layers.0.mlp.ffn_sub_norm.weight' beside 'model.layers.0.mlp.gate_proj': what it does to "
                 "the layer is not known here");
  for (const char* const part :
       {"gate_proj.bias", "gate_proj_bias", "down_proj.pre_quant_scale", "up_proj.lora_A.weight"}) {
    expect_refused(with(part), std::string("has 'model.layers.0.mlp.") + part + "' beside 'model.layers.0.mlp.");
  }
  for (const char* const bias : {"gate_up_proj_bias", "gate_up_proj.bias", "down_proj_bias", "down_proj.bias"}) {
    LayerFile file = stacks();
    file.add(std::string("model.layers.0.mlp.experts.") + bias, Dtype::bf16, {3, 32}, std::vector<std::uint16_t>(96));
    expect_refused(file, "[3, 32, 16] with biases, expected [experts, 2N, K] and [experts, K, N] without");
  }
  LayerFile file = stacks();
  file.add("model.layers.0.mlp.experts.norm.weight", Dtype::bf16, {32}, std::vector<std::uint16_t>(32));
  expect_refused(file, "has 'model.layers.0.mlp.experts.norm.weight' beside 'model.layers.0.mlp.experts.gate_up_proj'");
}

TEST_F(LayerNames, OtherOrdersOfRowsAndColumnsAreRefused) {
  LayerFile exchanged;
  add_stack(exchanged, "model.layers.0.mlp.experts.gate_up_proj",
            {transposed(joined(experts_[0].gate, experts_[0].up))});
  add_stack(exchanged, "model.layers.0.mlp.experts.down_proj", {transposed(experts_[0].down)});
  expect_refused(exchanged,
                 "[1, 32, 32] beside tensor 'model.layers.0.mlp.experts.down_proj' of model.safetensors [1, "
                 "16, 32] without biases, expected");
  exchanged.add("model.layers.0.mlp.experts.gate_up_proj_bias", Dtype::bf16, {1, 32}, std::vector<std::uint16_t>(32));
  expect_refused(exchanged, "has no tensor 'model.layers.0.mlp.experts.down_proj.bias'");
}

TEST_F(LayerNames, LayersWithoutAGateNeedAnActivation) {
  LayerFile file;
  file.add_bf16("backbone.layers.0.mixer.up_proj", experts_[0].up);
  file.add_bf16("backbone.layers.0.mixer.down_proj", experts_[0].down);
  expect_refused(file, "backbone.layers.0.mixer has no gate, and no config.json says what is done to up");
}

}  // namespace
}  // namespace thresher::testing
