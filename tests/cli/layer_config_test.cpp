// The activation of `thresher run gated-mlp`: what config.json beside the weights says of it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/layer_files.hpp"

namespace thresher::testing {
namespace {

using Gated = std::function<double(double, double)>;

double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

Gated clamped(double alpha, double limit, double offset) {
  return [=](double gate, double up) {
    const double least = std::min(gate, limit);
    return least / (1 + std::exp(-alpha * least)) * (std::clamp(up, -limit, limit) + offset);
  };
}

Gated situ(double of_gate, double of_up) {
  return [=](double gate, double up) {
    return of_gate * std::tanh(gate / of_gate) / (1 + std::exp(-gate)) * of_up * std::tanh(up / of_up);
  };
}

/// Of up alone.
const Gated relu2 = [](double, double up) { return up > 0 ? up * up : 0; };

const Gated plain = [](double gate, double up) { return silu(gate) * up; };
const Gated gelu = [](double gate, double up) { return gelu_tanh(gate) * up; };

/// A folder with one layer, the 0th, dense or of three experts.
class LayerConfig : public RunGatedMlp {
 protected:
  void save(const std::string& place = "model.layers.0.mlp.") const {
    LayerFile file;
    file.add_layer(place, dense_);
    file.save(folder_ / "model.safetensors");
  }
  void save_experts() {
    LayerFile file;
    for (std::int64_t e = 0; e < 3; ++e) {
      experts_.emplace_back(10 * e + 3);
      file.add_layer("model.layers.0.mlp.experts." + std::to_string(e) + ".", experts_.back());
    }
    file.save(folder_ / "model.safetensors");
  }
  void configure(const std::string& text) const { write_file(folder_ / "config.json", text); }
  void expect(const Gated& gated, const std::string& found, const std::string& arguments = "") {
    expect_layer("--layer 0 --checkpoint . " + arguments, found, [&](const std::vector<double>& x, std::int64_t row) {
      return experts_.empty() ? dense_(x, gated) : total_experts(experts_, x, row, gated);
    });
  }
  void expect_refused(const std::string& config, const std::string& sentence, const std::string& arguments = "") {
    configure(config);
    save_tokens();
    expect_refusal("--layer 0 --checkpoint . " + arguments, sentence);
  }

  const LayerExpert dense_{0};
  std::vector<LayerExpert> experts_;
};

TEST_F(LayerConfig, SiluWithoutAConfiguration) {
  save();
  expect(plain, "down [32, 16] bf16, silu (no config.json)\n");
  configure("{\"hidden_size\": 32}");
  expect(plain, "silu (config.json names none)\n");
}

TEST_F(LayerConfig, TheActivationHasManyNames) {
  save();
  for (
      const auto& [config, gated, source] :
      {std::tuple{R"({"hidden_act": "silu"})", plain, "silu (config.json: hidden_act)"},
       {R"({"hidden_act": "swish"})", plain, "silu (config.json: hidden_act)"},
       {R"({"hidden_act": "gelu_pytorch_tanh"})", gelu, "gelu_tanh (config.json: hidden_act)"},
       {R"({"hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh"})", gelu,
        "gelu_tanh (config.json: hidden_activation)"},
       {R"({"hidden_act": "silu", "hidden_activation": null})", plain, "silu (config.json: hidden_act)"},
       {R"({"mlp_hidden_act": "gelu_new"})", gelu, "gelu_tanh (config.json: mlp_hidden_act)"},
       {R"({"activation_function": "gelu_fast"})", gelu, "gelu_tanh (config.json: activation_function)"},
       {R"({"hidden_act": "silu", "text_config": {"hidden_activation": "gelu_pytorch_tanh"}})", gelu,
        "gelu_tanh (config.json: hidden_activation)"},
       {R"({"hidden_activation": "gelu_new", "text_config": {"hidden_act": "silu"}})", plain,
        "silu (config.json: hidden_act)"},
       {R"({"hidden_act": "gelu_new", "vision_config": {"hidden_act": "relu"}, "audio_config": 3})", gelu,
        "gelu_tanh (config.json: hidden_act)"},
       {R"({"hidden_act": "silu", "time_step_limit": [0.0, Infinity], "a": "\"NaN", "b": [NaN, -Infinity]})", plain,
        "silu (config.json: hidden_act)"},
       {R"({"hidden_act": "silu", "moe_router_activation": "sigmoid", "moe_activation": "relu2", "mlp_activation": "swish",
             "activation_dropout": 0.1, "mamba_hidden_act": "relu", "quantization_config": {"transform_config": {}}})",
        plain, "silu (config.json: hidden_act)"},
       {R"({"hidden_act": "silu", "swiglu_limits_shared": [0.0, 7.0], "swiglu_limit": 0})", plain,
        "silu (config.json: hidden_act)"}}) {
    configure(config);
    expect(gated, source);
  }
}

TEST_F(LayerConfig, ALimitClampsWhatSiluIsGiven) {
  save();
  configure(R"({"hidden_act": "silu", "swiglu_limit": 0.5})");
  const std::string said = "swiglu_clamped, alpha 1, limit 0.5, up offset 0 (config.json: hidden_act, swiglu_limit)";
  expect(clamped(1, 0.5, 0), said);
  save_experts();
  expect(clamped(1, 0.5, 0), said);
}

TEST_F(LayerConfig, GptOssHasConstantsOfItsOwn) {
  save_experts();
  configure(R"({"model_type": "gpt_oss", "hidden_act": "silu", "swiglu_limit": 0.75})");
  expect(clamped(1.702, 0.75, 1),
         "swiglu_clamped, alpha 1.702, limit 0.75, up offset 1 (config.json: model_type, hidden_act, swiglu_limit)");
  configure(R"({"model_type": "gpt_oss", "hidden_act": "silu"})");
  expect(clamped(1.702, 7, 1), "limit 7, up offset 1 (config.json: model_type, hidden_act)");
  configure(R"({"hidden_act": "swigluoai", "swiglu_alpha": 2, "swiglu_limit": 0.5})");
  expect(clamped(2, 0.5, 1), "alpha 2, limit 0.5, up offset 1 (config.json: hidden_act, swiglu_limit, swiglu_alpha)");
}

TEST_F(LayerConfig, OptionsReplaceWhatItSays) {
  save();
  configure(R"({"hidden_act": "gelu", "swiglu_limit": "none"})");
  expect(plain, "silu (--activation, not config.json)", "--activation silu");
  expect(clamped(1.702, 7, 1), "limit 7, up offset 1 (--activation, not config.json)", "--activation swiglu_clamped");
  configure(R"({"hidden_act": "silu", "swiglu_limit": 2})");
  expect(clamped(1, 0.25, 0), "limit 0.25, up offset 0 (config.json: hidden_act, swiglu_limit, --limit)",
         "--limit 0.25");
}

TEST_F(LayerConfig, ConstantsBelongToAnActivation) {
  save();
  expect_refused(R"({"hidden_act": "silu"})", "--limit is of --activation swiglu_clamped or situ, not of silu",
                 "--limit 2");
}

/// Beside an index, and beside a file that is named itself.
TEST_F(LayerConfig, LiesBesideTheWeights) {
  fs::create_directory(folder_ / "m");
  LayerFile file;
  file.add_layer("model.layers.0.mlp.", dense_);
  file.save(folder_ / "m/model.safetensors");
  write_file(folder_ / "m/model.safetensors.index.json",
             R"({"weight_map": {"model.layers.0.mlp.gate_proj.weight": "model.safetensors",
                 "model.layers.0.mlp.up_proj.weight": "model.safetensors",
                 "model.layers.0.mlp.down_proj.weight": "model.safetensors"}})");
  write_file(folder_ / "m/config.json", R"({"hidden_act": "gelu_tanh"})");
  for (const char* const path : {"m/model.safetensors", "m/model.safetensors.index.json"}) {
    expect_layer(std::string("--layer 0 --checkpoint ") + path, "gelu_tanh (config.json: hidden_act)",
                 [&](const std::vector<double>& x, std::int64_t) { return dense_(x, gelu); });
  }
}

/// A tower's own part counts, and the text's does not.
TEST_F(LayerConfig, ATowerHasItsOwn) {
  save("vision_model.layers.0.mlp.");
  configure(R"({"hidden_act": "silu", "vision_config": {"hidden_act": "gelu_pytorch_tanh"}})");
  expect(gelu, "gelu_tanh (config.json: hidden_act)");
  configure(R"({"text_config": {"hidden_act": "gelu_pytorch_tanh"}})");
  expect(plain, "silu (config.json names none)");
}

/// What the model's own part says is not known to be of the tower.
TEST_F(LayerConfig, ATowerWithoutItsOwnIsNotGuessed) {
  save("vision_model.layers.0.mlp.");
  expect_refused(R"({"hidden_act": "gelu_pytorch_tanh"})",
                 "'hidden_act' is 'gelu_pytorch_tanh', expected silu, or --activation");
}

/// The names of tensors say whose part it is.
TEST_F(LayerConfig, PartsAreFoundByTheNamesOfTensors) {
  const std::string both =
      R"({"decoder": {"hidden_activation": "gelu_pytorch_tanh"}, "encoder": {"hidden_activation": "silu"}})";
  save("model.decoder.layers.0.mlp.");
  configure(both);
  expect(gelu, "gelu_tanh (config.json: hidden_activation)");
  save("model.encoder.layers.0.mlp.");
  expect(plain, "silu (config.json: hidden_activation)");
  save("thinker.model.layers.0.mlp.");
  configure(
      R"({"thinker_config": {"text_config": {"hidden_act": "gelu_new"}}, "talker_config": {"hidden_act": "silu"}})");
  expect(gelu, "gelu_tanh (config.json: hidden_act)");
}

TEST_F(LayerConfig, APartThatNoNameSpeaksOfIsNotGuessed) {
  save();
  expect_refused(R"({"thinker_config": {"text_config": {"hidden_act": "gelu_new"}}})",
                 "'thinker_config.text_config.hidden_act' is 'gelu_new', expected silu, or --activation");
}

/// Quantised in what it says, and not in the file; of some layers it may say so.
TEST_F(LayerConfig, QuantisedInTheConfigurationAlone) {
  save();
  save_tokens();
  const auto said = [&](const std::string& quantization) {
    configure("{\"quantization_config\": " + quantization + "}");
    const Outcome outcome = run("--layer 0 --checkpoint .");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.err;
  };
  EXPECT_NE(said(R"({"quant_method": "gptq"})")
                .find("config.json: quantization_config.quant_method is 'gptq', but the layer is bf16\n"),
            std::string::npos);
  EXPECT_EQ(said(R"({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.mlp"]})"), "");
}

/// A matrix that is named as a layer's is one, whichever command multiplies with it.
TEST_F(LayerConfig, CountsForSingleProducts) {
  save();
  save_tokens();
  const std::string product =
      "run dual-gemm --device cpu --in . --in x.safetensors --a x --out c.safetensors --gate "
      "model.layers.0.mlp.gate_proj --up model.layers.0.mlp.up_proj ";
  const auto run_product = [&](const std::string& arguments) {
    return run_thresher(folder_.path(), product + arguments);
  };
  ASSERT_EQ(run_product("").status, 0);
  const std::string silu_bytes = slurp(folder_ / "c.safetensors");
  configure(R"({"hidden_act": "gelu_pytorch_tanh"})");
  const Outcome outcome = run_product("");
  EXPECT_NE(outcome.out.find(" = gelu_tanh(a·b1ᵀ)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nactivation: gelu_tanh (config.json: hidden_act)\n"), std::string::npos) << outcome.out;
  const std::string gelu_bytes = slurp(folder_ / "c.safetensors");
  EXPECT_NE(gelu_bytes, silu_bytes);
  fs::remove(folder_ / "config.json");
  ASSERT_EQ(run_product("--activation gelu_tanh").status, 0);
  EXPECT_EQ(slurp(folder_ / "c.safetensors"), gelu_bytes);
  configure(R"({"hidden_act": "situ"})");
  EXPECT_EQ(run_product("").status, 2);
  ASSERT_EQ(run_product("--activation silu").status, 0);
  EXPECT_EQ(slurp(folder_ / "c.safetensors"), silu_bytes);
}

TEST_F(LayerConfig, CountsForProductsOfExperts) {
  LayerFile file;
  const std::string experts = "model.layers.7.mlp.experts.";
  file.add(experts + "gate_up_proj", Dtype::bf16, {1, 32, 32}, std::vector<std::uint16_t>(1024, 0x3F80));
  file.add("a", Dtype::bf16, {1, 32}, std::vector<std::uint16_t>(32, 0x3F80));
  file.add("offsets", Dtype::i32, {2}, std::vector<std::int32_t>{0, 1});
  file.save(folder_ / "model.safetensors");
  configure(R"({"hidden_act": "silu", "swiglu_limit": 2})");
  const Outcome outcome =
      run_thresher(folder_.path(), "run grouped-dual-gemm --device cpu --in . --out c.safetensors --gate-up " +
                                       experts + "gate_up_proj --gate-up-order gate-first");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("activation: swiglu_clamped, alpha 1, limit 2, up offset 0 (config.json: hidden_act, "
                             "swiglu_limit)\n"),
            std::string::npos)
      << outcome.out;
}

/// What is refused of a layer is refused of its products, but for biases that are added.
TEST_F(LayerConfig, ProductsOfExpertsRefuseWhatChangesThem) {
  const std::string experts = "model.layers.7.mlp.experts.";
  const auto said = [&](bool has_bias, const std::string& config) {
    LayerFile file;
    file.add(experts + "gate_up_proj", Dtype::bf16, {1, 32, 32}, std::vector<std::uint16_t>(1024, 0x3F80));
    if (has_bias) {
      file.add(experts + "gate_up_proj_bias", Dtype::f32, {1, 32}, std::vector<float>(32, 1.0F));
    }
    file.add("a", Dtype::bf16, {1, 32}, std::vector<std::uint16_t>(32, 0x3F80));
    file.add("offsets", Dtype::i32, {2}, std::vector<std::int32_t>{0, 1});
    file.save(folder_ / "model.safetensors");
    configure(config);
    return run_thresher(folder_.path(), "run grouped-dual-gemm --device cpu --in . --out c.safetensors --gate-up " +
                                            experts + "gate_up_proj --gate-up-order gate-first");
  };
  EXPECT_EQ(said(false, R"({"mlp_bias": true})").status, 2);
  EXPECT_EQ(said(true, R"({"mlp_bias": true})").status, 0);
  for (const char* const config : {R"({"mlp_multipliers": [0.5, 1]})", R"({"rotation_config": {"R1": 1}})"}) {
    const Outcome outcome = said(true, config);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("here\n"), std::string::npos) << outcome.err;
  }
}

/// Blocks of another size would be scaled by others' scales.
TEST_F(LayerConfig, BlocksAreOfTheSizeThatItSays) {
  constexpr std::int64_t two_blocks = 256;
  LayerFile file;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    const std::string matrix = "model.layers.0.mlp." + name;
    file.add(matrix + ".weight", Dtype::f8_e4m3, {rows, columns},
             std::vector<std::uint8_t>(static_cast<std::size_t>(rows * columns), 0x38));
    file.add(matrix + ".weight_scale_inv", Dtype::f32, {rows == two_blocks ? 2 : 1, columns == two_blocks ? 2 : 1},
             std::vector<float>{1.0F, 1.0F});
  };
  add("gate_proj", two_blocks, hidden_size);
  add("up_proj", two_blocks, hidden_size);
  add("down_proj", hidden_size, two_blocks);
  file.save(folder_ / "model.safetensors");
  expect_refused(R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 64]}})",
                 "quantization_config.weight_block_size is [64,64], expected [128,128]");
  configure(R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})");
  EXPECT_EQ(run("--layer 0 --checkpoint .").status, 0);
}

TEST_F(LayerConfig, SituHasTwoConstants) {
  save();
  configure(R"({"hidden_act": "situ", "activation_situ_beta": 0.5, "activation_situ_linear_beta": 0.75})");
  expect(situ(0.5, 0.75),
         "situ, alpha 0.5, limit 0.75 (config.json: hidden_act, activation_situ_beta, activation_situ_linear_beta)");
  expect(situ(4, 25), "situ, alpha 4, limit 25 (--activation, not config.json)", "--activation situ");
  expect(situ(0.5, 2), "alpha 0.5, limit 2", "--limit 2");
}

TEST_F(LayerConfig, LayersWithoutAGateAreNamedInTheConfiguration) {
  const auto save_ungated = [this](const std::string& place, const LayerExpert& layer, LayerFile& file) {
    file.add_bf16(place + "up_proj", layer.up);
    file.add_bf16(place + "down_proj", layer.down);
    file.save(folder_ / "model.safetensors");
  };
  LayerFile file;
  save_ungated("model.layers.0.mlp.", dense_, file);
  configure(R"({"hidden_act": "relu2"})");
  expect(relu2, "model.layers.0.mlp, dense, up [16, 32] bf16, down [32, 16] bf16, relu2 (config.json: hidden_act)\n");
  LayerFile of_experts;
  for (std::int64_t e = 0; e < 3; ++e) {
    experts_.emplace_back(10 * e + 3);
    save_ungated("backbone.layers.0.mixer.experts." + std::to_string(e) + ".", experts_.back(), of_experts);
  }
  configure(R"({"mlp_hidden_act": "relu2", "mamba_hidden_act": "silu", "model_type": "nemotron_h"})");
  expect(relu2, "backbone.layers.0.mixer, 3 experts, up [16, 32] bf16, down [32, 16] bf16, relu2");
}

TEST_F(LayerConfig, OtherActivationsOfLayersWithoutAGateAreRefused) {
  LayerFile file;
  file.add_bf16("model.layers.0.mlp.up_proj", dense_.up);
  file.add_bf16("model.layers.0.mlp.down_proj", dense_.down);
  file.save(folder_ / "model.safetensors");
  expect_refused("{\"hidden_act\": \"silu\"}", "hidden_act is 'silu', expected 'relu2' for a layer without a gate");
  expect_refused("{}", "hidden_act is null, expected 'relu2' for a layer without a gate, or --activation relu2");
}

TEST_F(LayerConfig, WhatIsNotComputedIsRefused) {
  save();
  expect_refused(
      R"({"hidden_act": "gelu"})",
      "config.json: hidden_act is 'gelu', expected 'silu', 'gelu_pytorch_tanh', 'swigluoai', 'situ' or 'relu2', or "
      "--activation");
  for (const char* const act : {"relu2", "quick_gelu", "geglu", ""}) {
    expect_refused("{\"mlp_hidden_act\": \"" + std::string(act) + "\"}",
                   "mlp_hidden_act is '" + std::string(act) + "'");
  }
  expect_refused(R"({"hidden_act": "situ", "activation_situ_beta": 4.0})",
                 "activation_situ_linear_beta is null, expected a number beside 'situ', or --activation");
  expect_refused(R"({"hidden_act": "silu", "activation_situ_beta": 4.0})",
                 "activation_situ_beta is 4.0, expected none but beside 'situ', or --activation");
  expect_refused(R"({"hidden_act": "silu", "activation_function": "gelu_new"})",
                 "activation_function is 'gelu_new', expected what hidden_act says, or --activation");
  expect_refused(R"({"hidden_act": "gelu_new", "swiglu_limit": 2})",
                 "swiglu_limit is 2, expected none beside gelu_tanh, or --activation");
  expect_refused(R"({"hidden_act": "silu", "swiglu_alpha": 1.702})",
                 "swiglu_alpha is 1.702, expected none but of gpt-oss's activation, or --activation");
  expect_refused(R"({"hidden_act": "silu", "swiglu_limits_shared": [7.0]})",
                 "swiglu_limits_shared[0] is 7.0, expected 0: it is not computed; or --activation");
  expect_refused(R"({"hidden_act": "silu", "activation_sparsity_pattern": [0.95, 0]})",
                 "activation_sparsity_pattern[0] is 0.95");
  expect_refused(R"({"hidden_act": "silu", "swiglu_beta": 1})", "'swiglu_beta' is 1, expected none: what it does");
  expect_refused(R"({"hidden_act": "silu", "ffn_act_fn": "gelu_new"})",
                 "'ffn_act_fn' is 'gelu_new', expected silu, or --activation");
  expect_refused(R"({"hidden_act": "silu", "quantization_config": {"transform_config": {"config_groups": {}}}})",
                 "quantization_config.transform_config is an object, expected none: nothing is rotated here");
  expect_refused(R"({"model_type": "gpt_oss", "hidden_act": "gelu_new"})", "hidden_act is 'gelu_new', expected 'silu'");
  expect_refused(R"({"hidden_act": "silu", "mlp_bias": true})",
                 "mlp_bias is true, expected false: no bias is added here");
  expect_refused(R"({"hidden_act": "silu", "mlp_multipliers": [0.5, 1]})",
                 "mlp_multipliers is a list, expected none but 1");
  save_experts();
  expect_refused(R"({"hidden_act": "silu", "moe_activation": "relu2"})", "'moe_activation' is 'relu2', expected silu");
  expect_refused(R"({"hidden_act": "silu", "swiglu_limits": [7]})", "swiglu_limits[0] is 7");
  expect_refused(R"({"apply_router_weight_on_input": true})", "apply_router_weight_on_input is true, expected false");
  expect_refused(R"({"text_config": {"model_type": "llama4_text"}})", "model_type is 'llama4_text', expected another");
}

TEST_F(LayerConfig, WhatIsNoConfigurationIsRefused) {
  save();
  for (const auto& [config, sentence] :
       {std::pair{"{", "config.json is not JSON near byte"},
        {"", "config.json is not JSON near byte"},
        {"[]", "config.json is a list, expected an object"},
        {"3", "config.json is 3, expected an object"},
        {R"({"hidden_act": 3})", "hidden_act is 3, expected a text"},
        {R"({"hidden_act": "silu", "hidden_act": "silu"})", "has 'hidden_act' twice"},
        {R"({"swiglu_limit": -1})", "swiglu_limit is -1, expected a finite number above 0"},
        {R"({"swiglu_limit": NaN})", "swiglu_limit is 'NaN', expected a finite number"},
        {R"({"swiglu_limit": "2"})", "swiglu_limit is '2', expected a finite number"},
        {R"({"swiglu_limit": [2]})", "swiglu_limit is a list, expected a finite number"},
        {R"({"swiglu_limit": true})", "swiglu_limit is true, expected a finite number"},
        {R"({"swiglu_limit": 1e300})", "swiglu_limit is 1e+300, expected a finite number"},
        {R"({"swiglu_limits_shared": 3})", "swiglu_limits_shared is 3, expected a list"},
        {R"({"mlp_bias": "no"})", "mlp_bias is 'no', expected true or false"}}) {
    expect_refused(config, sentence);
  }
  expect_refused("{", "config.json is not JSON near byte", "--activation silu");
}

}  // namespace
}  // namespace thresher::testing
