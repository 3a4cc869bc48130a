#include "formats/quantize_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/fp8.hpp"
#include "formats/numbers.hpp"
#include "formats/nvfp4.hpp"
#include "formats/operands.hpp"
#include "formats/safetensors.hpp"
#include "formats/stacks.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

class QuantizeFile : public testing::Test {
 protected:
  const ScratchFolder folder;
  const std::filesystem::path in = folder / "in.safetensors";
  const std::filesystem::path out = folder / "out.safetensors";
  std::vector<float> wide = std::vector<float>(2 * 32, 0.75F);
  std::vector<std::uint16_t> half = std::vector<std::uint16_t>(3 * 16, float_to_fp16(-3.0F));
  std::vector<float> bias = {1.0F, 2.0F, 3.0F};

  QuantizeFile() { wide[40] = -5.0F; }

  /// layer.weight F32, b1 F16, bias F32 of one dimension, odd F16 with a K of 3.
  void write_input() const {
    write_safetensors(in,
                      std::vector<TensorToWrite>{
                          {"layer.weight", Dtype::f32, {2, 32}, std::as_bytes(std::span(wide))},
                          {"b1", Dtype::f16, {3, 16}, std::as_bytes(std::span(half))},
                          {"bias", Dtype::f32, {3}, std::as_bytes(std::span(bias))},
                          {"odd", Dtype::f32, {1, 3}, std::as_bytes(std::span(bias))},
                      },
                      {{"format", "pt"}});
  }

  [[nodiscard]] std::string refusal(const std::vector<std::string>& include) const {
    try {
      (void)quantize_file(in, out, {include, {}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(in.string()), std::string::npos) << error.what();
      EXPECT_EQ(folder.entries(), 1) << "something was written";
      return error.what();
    }
    return "";
  }
};

TEST_F(QuantizeFile, EveryMatrixThatCanBecomesNvfp4AndTheRestIsCopied) {
  write_input();
  const std::vector<QuantizedTensor> report = quantize_file(in, out, {}).quantized;
  ASSERT_EQ(report.size(), 2U);

  const SafetensorsFile file(out);
  EXPECT_EQ(file.header().metadata, (Metadata{{"format", "pt"}}));
  EXPECT_EQ(file.header().tensors.size(), 8U);
  ASSERT_NE(file.find("bias"), nullptr);
  EXPECT_EQ(file.read(*file.find("bias")).size(), 12U);
  EXPECT_EQ(std::memcmp(file.read(*file.find("odd")).data(), bias.data(), 12), 0);
  EXPECT_EQ(file.find("b1"), nullptr);
  EXPECT_EQ(file.find("layer.weight")->dtype, Dtype::u8);
  EXPECT_EQ(file.find("layer.weight")->shape, (std::vector<std::int64_t>{2, 16}));
  EXPECT_EQ(file.find("layer.weight_scale")->dtype, Dtype::f8_e4m3);
  EXPECT_EQ(file.find("layer.weight_scale")->shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(file.find("layer.weight_scale_2")->dtype, Dtype::f32);
  EXPECT_TRUE(file.find("layer.weight_scale_2")->shape.empty());

  Nvfp4Matrix expected = quantize_nvfp4(Tensor::contiguous(wide.data(), Format::fp32, {2, 32}), "w");
  EXPECT_EQ(dequantize_to_double(load_operand(Checkpoint(out), "layer").view(), "layer"),
            dequantize_to_double(expected.view(), "w"));
  expected = quantize_nvfp4(Tensor::contiguous(half.data(), Format::fp16, {3, 16}), "b1");
  EXPECT_EQ(dequantize_to_double(load_operand(Checkpoint(out), "b1").view(), "b1"),
            dequantize_to_double(expected.view(), "b1"));
}

TEST_F(QuantizeFile, EveryMatrixBecomesFp8WhereThatIsAskedFor) {
  for (const auto& [format, scale, shape] :
       {std::tuple{Format::fp8_tensor, "layer.weight_scale", std::vector<std::int64_t>{}},
        {Format::fp8_row, "layer.weight_scale", std::vector<std::int64_t>{2, 1}},
        {Format::fp8_block, "layer.weight_scale_inv", std::vector<std::int64_t>{1, 1}}}) {
    write_input();
    const Quantization to = *std::find_if(all_quantizations.begin(), all_quantizations.end(),
                                          [named = name(format)](Quantization one) { return name(one) == named; });
    const std::vector<QuantizedTensor> report = quantize_file(in, out, {}, to).quantized;
    ASSERT_EQ(report.size(), 2U);
    EXPECT_EQ(report[0].bytes_after, 64U + (format == Format::fp8_row ? 8U : 4U));
    const SafetensorsFile file(out);
    EXPECT_EQ(file.header().tensors.size(), 6U);
    EXPECT_EQ(file.find("layer.weight")->dtype, Dtype::f8_e4m3);
    ASSERT_NE(file.find(scale), nullptr) << scale;
    EXPECT_EQ(file.find(scale)->dtype, Dtype::f32);
    EXPECT_EQ(file.find(scale)->shape, shape);
    const Operand operand = load_operand(Checkpoint(out), "layer");
    Fp8Matrix expected =
        quantize_fp8(Tensor::contiguous(wide.data(), Format::fp32, {2, 32}), "w", format, OperandRole::weights);
    EXPECT_EQ(dequantize_to_double(operand.view(), "layer"), dequantize_to_double(expected.view(), "w"));
    std::vector<double> near = dequantize_to_double(operand.view(), "layer");
    for (std::size_t i = 0; i < near.size(); ++i) {
      EXPECT_NEAR(near[i], static_cast<double>(wide[i]), 0.07 * std::fabs(static_cast<double>(wide[i])) + 1e-4);
    }
  }
}

/// Under compressed-tensors' names, of matrices whose K is a multiple of 32.
TEST_F(QuantizeFile, AMatrixBecomesMxfp4WhereThatIsAskedFor) {
  write_input();
  const QuantizeReport report = quantize_file(in, out, {}, Quantization::mxfp4);
  ASSERT_EQ(report.quantized.size(), 1U);
  EXPECT_EQ(report.quantized[0].new_name, "layer.weight_packed");
  EXPECT_EQ(report.quantized[0].bytes_after, 34U);
  const auto b1 = std::find_if(report.copied.begin(), report.copied.end(),
                               [](const CopiedTensor& tensor) { return tensor.name == "b1"; });
  ASSERT_NE(b1, report.copied.end());
  EXPECT_EQ(b1->reason, "K is no multiple of 32");
  const SafetensorsFile file(out);
  EXPECT_EQ(file.header().tensors.size(), 5U);
  EXPECT_EQ(file.find("layer.weight"), nullptr);
  EXPECT_EQ(file.find("layer.weight_packed")->dtype, Dtype::u8);
  EXPECT_EQ(file.find("layer.weight_packed")->shape, (std::vector<std::int64_t>{2, 16}));
  EXPECT_EQ(file.find("layer.weight_scale")->dtype, Dtype::u8);
  EXPECT_EQ(file.find("layer.weight_scale")->shape, (std::vector<std::int64_t>{2, 1}));
  // 0.75 is 6 · 2^-3; beside −5, which is halfway between 4 and 6, it is halfway between 0.5 and 1: the even codes.
  std::vector<double> expected(64, 0.75);
  std::fill(expected.begin() + 32, expected.end(), 1.0);
  expected[40] = -4.0;
  const Operand read = load_operand(Checkpoint(out), "layer");
  EXPECT_EQ(dequantize_to_double(read.view(), "layer"), expected);
  EXPECT_EQ(read.stored_as(), "mxfp4 as nvfp4, exact in both numerics");
}

TEST_F(QuantizeFile, TheReportSaysWhatBecameOfEachTensor) {
  write_input();
  const std::vector<QuantizedTensor> report = quantize_file(in, out, {{"b1"}, {}}).quantized;
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].name, "b1");
  EXPECT_EQ(report[0].new_name, "b1.weight");
  EXPECT_EQ(report[0].rows, 3);
  EXPECT_EQ(report[0].k, 16);
  EXPECT_EQ(report[0].bytes_before, 96U);
  EXPECT_EQ(report[0].bytes_after, 24U + 3U + 4U);
  const SafetensorsFile file(out);
  EXPECT_EQ(file.find("layer.weight")->dtype, Dtype::f32);
  EXPECT_EQ(std::memcmp(file.read(*file.find("layer.weight")).data(), wide.data(), 2 * 32 * 4), 0);
}

TEST_F(QuantizeFile, AMatrixWithoutRowsStaysOne) {
  write_safetensors(in, std::vector<TensorToWrite>{{"a", Dtype::f16, {0, 16}, {}}});
  EXPECT_EQ(quantize_file(in, out, {}).quantized.size(), 1U);
  EXPECT_EQ(load_operand(Checkpoint(out), "a").rows(), 0);
}

TEST_F(QuantizeFile, LargeTensorsAreCopiedWhole) {
  std::vector<std::byte> large((std::size_t{9} << 20) + 5);
  for (std::size_t i = 0; i < large.size(); ++i) {
    large[i] = static_cast<std::byte>(i * 7 + i / 4096);
  }
  write_safetensors(in, std::vector<TensorToWrite>{
                            {"b1", Dtype::f16, {3, 16}, std::as_bytes(std::span(half))},
                            {"large", Dtype::u8, {static_cast<std::int64_t>(large.size())}, large},
                        });
  (void)quantize_file(in, out, {});
  const SafetensorsFile file(out);
  EXPECT_TRUE(file.read(*file.find("large")) == large);
}

TEST_F(QuantizeFile, AFileCanReplaceItself) {
  write_input();
  (void)quantize_file(in, in, {});
  EXPECT_EQ(load_operand(Checkpoint(in), "layer").format(), Format::nvfp4);
  EXPECT_EQ(folder.entries(), 1);
}

TEST_F(QuantizeFile, WhatCannotBeQuantisedIsNamedAndNothingIsWritten) {
  write_input();
  EXPECT_NE(refusal({"b9"}).find("no tensor 'b9' to quantize"), std::string::npos);
  EXPECT_NE(refusal({"bias"}).find("tensor 'bias' of"), std::string::npos);
  EXPECT_NE(refusal({"odd"}).find("is F32 [1, 3], but only"), std::string::npos);

  wide[32 + 5] = std::numeric_limits<float>::quiet_NaN();
  write_input();
  const std::string sentence = refusal({});
  EXPECT_NE(sentence.find("tensor 'layer.weight' of"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("nan at [1, 5]"), std::string::npos) << sentence;

  write_safetensors(in, std::vector<TensorToWrite>{{"bias", Dtype::f32, {3}, std::as_bytes(std::span(bias))}});
  EXPECT_NE(refusal({}).find("nothing to quantize"), std::string::npos);

  write_safetensors(in, std::vector<TensorToWrite>{
                            {"b1", Dtype::f16, {3, 16}, std::as_bytes(std::span(half))},
                            {"b1.weight_scale", Dtype::f32, {3}, std::as_bytes(std::span(bias))},
                        });
  EXPECT_NE(refusal({}).find("already has a tensor 'b1.weight_scale'"), std::string::npos);
}

/// Scales, zero points and orders beside a matrix say that its values are not the weights.
TEST_F(QuantizeFile, AMatrixWithScalesOrAnOrderStaysAsItIs) {
  for (const char* const part : {"layer.weight_scale_inv", "layer.g_idx", "layer.weight_zero_point", "layer_scale"}) {
    write_safetensors(in,
                      std::vector<TensorToWrite>{{"layer.weight", Dtype::f32, {2, 32}, std::as_bytes(std::span(wide))},
                                                 {"b1", Dtype::f16, {3, 16}, std::as_bytes(std::span(half))},
                                                 {"b1.input_scale", Dtype::f32, {3}, std::as_bytes(std::span(bias))},
                                                 {part, Dtype::f32, {3}, std::as_bytes(std::span(bias))}});
    const QuantizeReport report = quantize_file(in, out, {});
    ASSERT_EQ(report.quantized.size(), 1U) << part;
    EXPECT_EQ(report.quantized.front().name, "b1");
    const auto layer = std::find_if(report.copied.begin(), report.copied.end(),
                                    [](const CopiedTensor& tensor) { return tensor.name == "layer.weight"; });
    ASSERT_NE(layer, report.copied.end());
    EXPECT_TRUE(layer->is_missed);
    EXPECT_EQ(layer->reason, "beside '" + std::string(part) + "', which changes what its values mean");
  }
}

TEST_F(QuantizeFile, ValuesThatAllBecomeZeroAreCounted) {
  write_input();
  EXPECT_EQ(quantize_file(in, out, {}).quantized.front().lost, 0U);
  std::fill(wide.begin(), wide.end(), 0.0F);
  for (const float least : {0.0F, 1e-44F, -1e-44F}) {
    wide[3] = least;
    wide[40] = least;
    write_input();
    for (const Quantization to : all_quantizations) {
      EXPECT_EQ(quantize_file(in, out, {}, to).quantized.front().lost, least == 0.0F ? 0U : 2U) << name(to);
    }
  }
}

/// A file of F16 matrices [3, 16] of these names, but "*bias" with one dimension.
class QuantizeModel : public QuantizeFile {
 protected:
  void write_model(const std::vector<std::string>& names) const {
    std::vector<TensorToWrite> tensors;
    for (const std::string& name : names) {
      const bool is_bias = name.ends_with("bias");
      tensors.push_back({name, Dtype::f16, is_bias ? std::vector<std::int64_t>{48} : std::vector<std::int64_t>{3, 16},
                         std::as_bytes(std::span(half))});
    }
    write_safetensors(in, tensors);
  }

  /// The names that are quantised, in order.
  [[nodiscard]] std::string quantized(const QuantizeSelection& selection) const {
    std::string names;
    for (const QuantizedTensor& tensor : quantize_file(in, out, selection).quantized) {
      names += (names.empty() ? "" : " ") + tensor.name;
    }
    return names;
  }
};

TEST_F(QuantizeModel, EmbeddingsHeadsNormsBiasesAndRoutersStayAsTheyAre) {
  write_model({"lm_head.weight", "model.embed_tokens.weight", "model.layers.0.mlp.gate.weight",
               "model.layers.0.mlp.gate_proj.bias", "model.layers.0.mlp.gate_proj.weight", "model.norm.weight"});
  const QuantizeReport report = quantize_file(in, out, {});
  ASSERT_EQ(report.quantized.size(), 1U);
  EXPECT_EQ(report.quantized[0].name, "model.layers.0.mlp.gate_proj.weight");
  std::string copied;
  for (const CopiedTensor& tensor : report.copied) {
    copied += tensor.name + ": " + tensor.reason + "\n";
  }
  EXPECT_EQ(copied,
            "lm_head.weight: the head (*lm_head*)\n"
            "model.embed_tokens.weight: an embedding (*embed*)\n"
            "model.layers.0.mlp.gate.weight: a router (*.gate.*)\n"
            "model.layers.0.mlp.gate_proj.bias: no matrix [rows, K]\n"
            "model.norm.weight: a norm (*norm*)\n");
  const SafetensorsFile before(in);
  const SafetensorsFile after(out);
  for (const CopiedTensor& tensor : report.copied) {
    ASSERT_NE(after.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(after.find(tensor.name)->dtype, Dtype::f16);
    EXPECT_EQ(after.find(tensor.name)->shape, before.find(tensor.name)->shape);
    EXPECT_EQ(after.read(*after.find(tensor.name)), before.read(*before.find(tensor.name)));
  }
}

/// Names of public checkpoints, each with a word for it.
TEST_F(QuantizeModel, RoutersGatesAndHeadsOfEveryFamilyStay) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"a.layers.0.ffn.gate.weight", "a router"},                       // DeepSeek
      {"a.layers.0.feed_forward.gate.weight", "a router"},              // Mistral
      {"a.layers.0.mlp.shared_expert_gate.weight", "a router"},         // Qwen
      {"a.layers.0.block_sparse_moe.gate.weight", "a router"},          // Mixtral
      {"a.layers.0.block_sparse_moe.router.layer.weight", "a router"},  // Granite
      {"a.layers.0.feed_forward.router.weight", "a router"},            // Llama 4, Jamba
      {"a.layers.0.mlp.router.weight", "a router"},                     // gpt-oss
      {"a.layers.0.mlp.gate.wg.weight", "a router"},                    // Hunyuan
      {"a.layers.0.mlp.gate.weight_1", "a router"},                     // Ernie
      {"blk.0.ffn_gate_inp.weight", "a router"},                        // llama.cpp
      {"a.layers.0.self_attn.indexer.weights_proj.weight", "the weights of a sparse indexer"},
      {"layers.0.attn.compressor.wgate.weight", "a compressor of keys"},  // DeepSeek-V4
      {"layers.0.hc_attn_fn", "a mix of residuals"},
      {"score.weight", "the head"},
      {"a.classifier.weight", "the head"},
      {"output.weight", "the head"},  // Mistral
      {"head.weight", "the head"},    // DeepSeek
      {"mtp.0.head.weight", "the head"},
      {"a.layers.61.shared_head.head.weight", "the head"},
      {"v_head.summary.weight", "the head"},
      {"transformer.wte.weight", "an embedding"},
      {"a.layers.0.mamba.A_log", "a state's decay"},
      {"a.layers.0.linear_attn.conv1d.weight", "a convolution"},
      {"vision_tower.layers.0.mlp.fc1.weight", "of images or sound"},
      {"visual.blocks.0.attn.qkv.weight", "of images or sound"},
      {"a.layers.0.mlp.gate_proj.weight", ""},
      {"a.layers.0.feed_forward.w1.weight", ""},
      {"a.layers.0.attention.output.dense.weight", ""},
      {"a.layers.0.conv.in_proj.weight", ""},  // LFM2
      {"a.layers.0.multi_head_attention.q.weight", ""},
      {"a.layers.0.mlp.shared_expert.gate_proj.weight", ""},
      {"a.layers.0.self_attn.indexer.wq_b.weight", ""}};
  std::vector<std::string> all;
  for (const auto& [name, what] : names) {
    all.push_back(name);
  }
  write_model(all);
  const QuantizeReport report = quantize_file(in, out, {});
  for (const auto& [name, what] : names) {
    const auto found = std::find_if(report.copied.begin(), report.copied.end(),
                                    [named = name](const CopiedTensor& tensor) { return tensor.name == named; });
    ASSERT_EQ(found != report.copied.end(), !what.empty()) << name;
    if (!what.empty()) {
      EXPECT_TRUE(found->reason.starts_with(what + " (")) << name << ": " << found->reason;
      EXPECT_EQ(found->bytes, 96U);
      EXPECT_EQ(quantized({{name}, {}}), name) << "its name is no word for itself";
    }
  }
}

class QuantizeStacks : public QuantizeFile {
 protected:
  using Shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

  void write_shapes(const Shapes& shapes) const {
    std::vector<std::vector<float>> storage;
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, shape] : shapes) {
      std::size_t count = 1;
      for (const std::int64_t extent : shape) {
        count *= static_cast<std::size_t>(extent);
      }
      std::vector<float>& values = storage.emplace_back();
      for (std::size_t i = 0; i < count; ++i) {
        values.push_back(static_cast<float>(i * 31 % 97) / 16.0F - 3.0F + static_cast<float>(i / 512));
      }
      tensors.push_back({name, Dtype::f32, shape, std::as_bytes(std::span(values))});
    }
    write_safetensors(in, tensors);
  }

  /// "name: reason", of `name`; empty where it was quantised.
  [[nodiscard]] std::string reason(const std::string& name, const QuantizeSelection& selection = {}) const {
    for (const CopiedTensor& tensor : quantize_file(in, out, selection).copied) {
      if (tensor.name == name) {
        EXPECT_EQ(tensor.is_missed, tensor.reason.starts_with("a stack"));
        return tensor.reason;
      }
    }
    return "";
  }
};

constexpr const char* turned = "a stack [E, K, rows], whose matrices are the other way round";
constexpr const char* unsaid = "a stack of which nothing says that it is [E, rows, K]: an include of its name would";

/// Each matrix becomes what it would become alone, and the grouped products read them under the old name.
TEST_F(QuantizeStacks, AreQuantisedMatrixByMatrix) {
  write_shapes({{"e.gate_up_proj", {3, 256, 64}}, {"e.down_proj", {3, 64, 128}}});
  for (const Quantization to : all_quantizations) {
    const QuantizeReport report = quantize_file(in, out, {}, to);
    ASSERT_EQ(report.quantized.size(), 2U);
    const Checkpoint made(out);
    const Checkpoint file(in);
    for (const char* const which : {"e.gate_up_proj", "e.down_proj"}) {
      const Stack stack = load_stack(made, which, StackKind::weights, ScaleLayout::row_major);
      const std::vector<std::int64_t>& shape = stack.shape();
      const LocatedTensor whole = file.find(which);
      ASSERT_EQ(shape, whole.tensor->shape) << name(to);
      const std::vector<std::byte> bytes = whole.read();
      const std::size_t one = bytes.size() / 3;
      for (std::size_t expert = 0; expert < 3; ++expert) {
        write_safetensors(
            folder / "one.safetensors",
            std::vector<TensorToWrite>{
                {"m.weight", Dtype::f32, {shape[1], shape[2]}, std::span(bytes).subspan(expert * one, one)}});
        (void)quantize_file(folder / "one.safetensors", folder / "made.safetensors", {}, to);
        const SafetensorsFile alone(folder / "made.safetensors");
        const SafetensorsFile together(out);
        for (const StoredTensor& part : alone.header().tensors) {
          const StoredTensor* const of_stack = together.find(std::string(which) + part.name.substr(1));
          ASSERT_NE(of_stack, nullptr) << part.name;
          EXPECT_EQ(of_stack->dtype, part.dtype);
          std::vector<std::byte> piece(part.bytes());
          ASSERT_EQ(of_stack->bytes(), 3 * piece.size());
          together.read(*of_stack, expert * piece.size(), piece);
          EXPECT_EQ(piece, alone.read(part)) << part.name << " of " << expert << " in " << name(to);
        }
      }
    }
  }
}

TEST_F(QuantizeStacks, WhatLiesBesideThemSaysHowTheyLie) {
  write_shapes({{"e.gate_up_proj", {3, 64, 256}}, {"e.down_proj", {3, 128, 64}}, {"other", {16, 16}}});
  EXPECT_EQ(reason("e.gate_up_proj"), turned);
  EXPECT_EQ(reason("e.down_proj"), turned);
  std::filesystem::remove(out);
  EXPECT_NE(refusal({"e.down_proj"}).find("is F32 [3, 128, 64], by its neighbours [E, K, rows]"), std::string::npos);

  write_shapes(
      {{"mlp.experts.up_proj", {3, 32, 64}}, {"mlp.gate.weight", {3, 64}}, {"mlp.experts.down_proj", {3, 64, 32}}});
  EXPECT_EQ(reason("mlp.experts.up_proj"), "");
  EXPECT_EQ(reason("mlp.experts.down_proj"), "");
  write_shapes({{"mlp.experts.up_proj", {3, 64, 32}}, {"mlp.router.weight", {3, 64}}, {"other", {16, 16}}});
  EXPECT_EQ(reason("mlp.experts.up_proj"), turned);

  write_shapes({{"e.up", {3, 32, 64}}, {"e.up_bias", {3, 32}}, {"f.up", {3, 64, 32}}, {"f.up_bias", {3, 32}}});
  EXPECT_EQ(reason("e.up"), "");
  EXPECT_EQ(reason("f.up"), turned);
}

TEST_F(QuantizeStacks, WithoutAWordTheyStayUnlessTheyAreNamed) {
  write_shapes({{"e.gate_up_proj", {3, 256, 64}}, {"other", {16, 16}}});
  EXPECT_EQ(reason("e.gate_up_proj"), unsaid);
  EXPECT_EQ(reason("e.gate_up_proj", {{"*"}, {}}), unsaid);
  EXPECT_EQ(reason("e.gate_up_proj", {{"e.gate_up_proj"}, {}}), "");
}

TEST_F(QuantizeStacks, ANumberThatIsNoneIsPlacedInItsMatrix) {
  std::vector<float> values(2 * 3 * 16, 1.0F);
  values[3 * 16 + 5] = std::numeric_limits<float>::quiet_NaN();
  write_safetensors(in, std::vector<TensorToWrite>{{"e", Dtype::f32, {2, 3, 16}, std::as_bytes(std::span(values))}});
  EXPECT_NE(refusal({"e"}).find("matrix 1 of tensor 'e' of " + in.string() + " has nan at [0, 5]"), std::string::npos);
}

TEST_F(QuantizeModel, PatternsSayWhichAreQuantised) {
  write_model(
      {"lm_head.weight", "m.embed.weight", "m.layers.0.down.weight", "m.layers.0.up.weight", "m.layers.1.up.weight"});
  EXPECT_EQ(quantized({}), "m.layers.0.down.weight m.layers.0.up.weight m.layers.1.up.weight");
  EXPECT_EQ(quantized({{"m.layers.0.*"}, {}}), "m.layers.0.down.weight m.layers.0.up.weight");
  EXPECT_EQ(quantized({{"*.up.weight", "m.layers.0.*"}, {"*.1.*"}}), "m.layers.0.down.weight m.layers.0.up.weight");
  EXPECT_EQ(quantized({{}, {"*down*", "m.layers.?.up.weigh", "*.1.*"}}), "m.layers.0.up.weight");
}

TEST_F(QuantizeModel, WhatIsLeftAloneIsQuantisedWhenAPatternSaysSoItself) {
  write_model({"lm_head.weight", "m.embed.weight", "m.layers.0.up.weight"});
  EXPECT_EQ(quantized({{"*"}, {}}), "m.layers.0.up.weight");
  EXPECT_EQ(quantized({{"m.*"}, {}}), "m.layers.0.up.weight");
  EXPECT_EQ(quantized({{"*embed*"}, {}}), "m.embed.weight");
  EXPECT_EQ(quantized({{"lm_head.weight", "*"}, {}}), "lm_head.weight m.layers.0.up.weight");
  EXPECT_EQ(quantized({{"lm_head.weight", "*"}, {"*head*"}}), "m.layers.0.up.weight");
}

TEST_F(QuantizeModel, PatternsWithoutATensorAreTold) {
  write_model({"a", "b"});
  EXPECT_NE(refusal({"c*"}).find("has no tensor 'c*' to quantize"), std::string::npos);
  EXPECT_EQ(quantize_file(in, out, {{}, {"z*", "b"}}).idle_excludes, std::vector<std::string>{"z*"});
}

TEST_F(QuantizeFile, RowsThatHoldNothingAreNotWalkedOver) {
  write_safetensors(in, std::vector<TensorToWrite>{{"a", Dtype::f32, {std::int64_t{1} << 40, 0}, {}},
                                                   {"b", Dtype::f32, {0, 16}, {}}});
  EXPECT_EQ(quantize_file(in, out, {}).quantized.size(), 2U);
  EXPECT_EQ(load_operand(Checkpoint(out), "a").rows(), std::int64_t{1} << 40);
}

}  // namespace
}  // namespace thresher::formats
