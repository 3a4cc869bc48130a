// A layer of experts and a gated MLP on a GPU, through the public API, against the definition on the CPU.
#include <gtest/gtest.h>

#include <memory>

#include "runtime/stream.hpp"
#include "support/gated_mlp_case.hpp"
#include "support/moe_case.hpp"
#include "support/quantize_case.hpp"
#include "support/tensor_on_gpu.hpp"
#include "thresher/thresher.hpp"

#define SKIP_WITHOUT_TENSOR_CORES()                          \
  SKIP_WITHOUT_GPU();                                        \
  if (!runtime::device_properties(0).is(Arch::sm_90a)) {     \
    GTEST_SKIP() << "the formats below are for Hopper GPUs"; \
  }                                                          \
  static_assert(true)

namespace thresher {
namespace {

using test::MoeCase;
using test::OnGpu;
using test::random_choices;
using test::TensorOnGpu;

/// A layer planned on the operands of a case, all of them between guard zones.
class GpuLayer {
 public:
  explicit GpuLayer(MoeCase& host) : GpuLayer(host, host.problem(), host.tensors().x) {}
  /// Another problem with these weights, and its x.
  GpuLayer(MoeCase& host, const MoeProblem& problem, const Tensor& x)
      : host_(host),
        b1_(host.gate_up().b1),
        b2_(host.gate_up().b2),
        bias1_(host.gate_up().bias1),
        bias2_(host.gate_up().bias2),
        down_(host.down().b1),
        down_bias_(host.down().bias1),
        x_(x),
        ids_(host.tensors().topk_ids),
        weights_(host.tensors().topk_weights),
        out_(host.tensors().out),
        layer_(plan(
            Device::cuda(0), problem,
            GroupedWeights{.b1 = b1_.tensor(), .b2 = b2_.tensor(), .bias1 = bias1_.tensor(), .bias2 = bias2_.tensor()},
            GroupedWeights{.b1 = down_.tensor(), .bias1 = down_bias_.tensor()})),
        workspace_(layer_.workspace_bytes()) {}

  void enqueue(Stream stream, std::int64_t tokens) const {
    const auto first = [&](const TensorOnGpu& of) {
      Tensor tensor = of.tensor();
      tensor.shape[0] = tokens;
      return tensor;
    };
    layer_.run(stream, {.x = first(x_), .topk_ids = first(ids_), .topk_weights = first(weights_), .out = first(out_)},
               workspace_.data());
  }

  /// Other choices for the calls that follow, on the GPU and for the judge.
  void choose(const std::vector<std::int32_t>& ids) {
    host_.ids() = ids;
    runtime::copy(ids_.values().data(), host_.ids().data(), ids.size() * sizeof(std::int32_t), 0);
  }
  void poison() const { out_.values().fill(0xFF); }
  [[nodiscard]] std::vector<std::uint8_t> bytes() const { return out_.values().download<std::uint8_t>(); }

  /// What is wrong with what the GPU has written, in words; empty when nothing is.
  std::string judged(std::int64_t tokens) {
    runtime::synchronize({}, 0);
    for (const TensorOnGpu* tensor :
         {&b1_, &b2_, &bias1_, &bias2_, &down_, &down_bias_, &x_, &ids_, &weights_, &out_}) {
      if (!tensor->guards_intact()) {
        return "memory around a tensor was written";
      }
    }
    if (!workspace_.guards_intact()) {
      return "memory around the workspace was written";
    }
    const std::vector<std::uint8_t> made = bytes();
    std::copy(made.begin(), made.end(), static_cast<std::uint8_t*>(host_.tensors().out.data));
    if (!host_.out().gaps_intact()) {
      return "a gap between rows was written";
    }
    const reference::Verdict verdict = host_.judged(host_.tensors(tokens), DeviceKind::cuda);
    return verdict.passed ? "" : verdict.explain();
  }

 private:
  MoeCase& host_;
  TensorOnGpu b1_;
  TensorOnGpu b2_;
  TensorOnGpu bias1_;
  TensorOnGpu bias2_;
  TensorOnGpu down_;
  TensorOnGpu down_bias_;
  TensorOnGpu x_;
  TensorOnGpu ids_;
  TensorOnGpu weights_;
  TensorOnGpu out_;
  MoeLayer layer_;
  OnGpu workspace_;
};

std::vector<MoeProblem> layers() {
  const MoeProblem base{.experts = 6, .tokens = 150, .top_k = 3, .hidden_size = 272, .intermediate_size = 208};
  std::vector<MoeProblem> all(7, base);
  all[1].x = all[1].gate_up = all[1].intermediate = all[1].down = Format::fp16;
  all[1].rows = all[1].out = Format::fp32;
  all[1].activation.kind = ActivationKind::gelu_tanh;
  all[2].gate_up = all[2].down = Format::nvfp4;
  all[2].activation.kind = ActivationKind::swiglu_clamped;
  all[2].gate_up_bias = all[2].down_bias = true;
  all[3].x = all[3].gate_up = Format::fp8_block;
  all[3].rows = Format::fp32;
  all[3].out = Format::fp16;
  for (const std::size_t i : {4U, 5U}) {
    all[i].x = all[i].gate_up = all[i].down = Format::fp8_block;
    all[i].intermediate_size = 256;
  }
  all[4].intermediate = Format::fp8_block;
  all[5].intermediate = Format::fp8_tensor;
  all[5].intermediate_scale = 0.25F;
  all[6].x = all[6].gate_up = all[6].intermediate = all[6].down = Format::fp8_row;
  return all;
}

/// The bits of tokens that were quantized before, by the launch that gathers them and by one ahead.
TEST(CudaMoeLayer, QuantizesTokensItself) {
  SKIP_WITHOUT_TENSOR_CORES();
  for (const auto& [to, columns] :
       {std::pair{Format::fp8_block, 256}, {Format::fp8_block, 272}, {Format::fp8_row, 256}}) {
    MoeProblem problem{.experts = 6, .tokens = 150, .top_k = 3, .hidden_size = columns, .intermediate_size = 256};
    problem.x = problem.gate_up = problem.intermediate = problem.down = to;
    test::QuantizeCase tokens({.rows = problem.tokens, .columns = columns, .out = to});
    plan(Device::cpu(), tokens.problem).run({}, tokens.x, tokens.out);
    MoeCase host(problem, random_choices(problem, 5));
    GpuLayer quantized_before(host, problem, tokens.out);
    problem.x = Format::bf16;
    problem.quantized_x = to;
    GpuLayer layer(host, problem, tokens.x);
    for (const std::int64_t count : {std::int64_t{1}, problem.tokens}) {
      quantized_before.poison();
      layer.poison();
      quantized_before.enqueue({}, count);
      layer.enqueue({}, count);
      runtime::synchronize({}, 0);
      EXPECT_EQ(layer.bytes(), quantized_before.bytes()) << name(to) << columns;
    }
  }
}

TEST(CudaMoeLayer, IsRightInEveryFormatForAnyNumberOfTokens) {
  SKIP_WITHOUT_TENSOR_CORES();
  for (const MoeProblem& problem : layers()) {
    for (const std::int64_t gap : {0, 3}) {
      MoeCase host(problem, random_choices(problem, 1), gap);
      GpuLayer layer(host);
      for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{17}, problem.tokens, std::int64_t{0}}) {
        layer.poison();
        layer.enqueue({}, tokens);
        EXPECT_EQ(layer.judged(tokens), "") << name(problem.gate_up) << " " << tokens;
      }
    }
  }
}

/// Fewer than one block sorts, as many, more, and more than many.
TEST(CudaMoeLayer, SortsAnyNumberOfChoices) {
  SKIP_WITHOUT_TENSOR_CORES();
  for (const std::int64_t experts : {1, 7, 256, 1024}) {
    for (const auto& [tokens, top_k] : {std::pair{1, 1}, {512, 8}, {513, 8}, {5000, 6}}) {
      const MoeProblem problem{
          .experts = experts, .tokens = tokens, .top_k = top_k, .hidden_size = 16, .intermediate_size = 16};
      MoeCase host(problem, random_choices(problem, static_cast<unsigned>(tokens)));
      GpuLayer layer(host);
      layer.poison();
      layer.enqueue({}, tokens);
      EXPECT_EQ(layer.judged(tokens), "") << experts << " " << tokens;
    }
  }
}

/// A block brings one row with all its threads, some rows with a part of them each, and as many as it may.
TEST(CudaMoeLayer, BringsRowsOfAnyWidthTogether) {
  SKIP_WITHOUT_TENSOR_CORES();
  for (const std::int64_t hidden_size : {std::int64_t{16}, std::int64_t{4112}, std::int64_t{8208}}) {
    for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{9}, std::int64_t{130}, std::int64_t{700}}) {
      const MoeProblem problem{
          .experts = 7, .tokens = tokens, .top_k = 6, .hidden_size = hidden_size, .intermediate_size = 16};
      MoeCase host(problem, random_choices(problem, static_cast<unsigned>(tokens)));
      GpuLayer layer(host);
      layer.poison();
      layer.enqueue({}, tokens);
      EXPECT_EQ(layer.judged(tokens), "") << hidden_size << " " << tokens;
    }
  }
}

TEST(CudaMoeLayer, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_TENSOR_CORES();
  for (MoeProblem problem : layers()) {
    problem.tokens = 700;
    MoeCase host(problem, random_choices(problem, 2));
    GpuLayer layer(host);
    layer.enqueue({}, problem.tokens);
    ASSERT_EQ(layer.judged(problem.tokens), "");
    const std::vector<std::uint8_t> first = layer.bytes();
    for (int run = 0; run < 1000; ++run) {
      layer.enqueue({}, problem.tokens);
      if (run % 50 == 49) {
        runtime::synchronize({}, 0);
        ASSERT_EQ(layer.bytes(), first) << run;
        layer.poison();
      }
    }
  }
}

TEST(CudaMoeLayer, AGraphServesOtherChoices) {
  SKIP_WITHOUT_TENSOR_CORES();
  std::vector<MoeProblem> problems = layers();
  problems.push_back(problems.front());
  problems.back().tokens = 1400;  // more choices than one block sorts
  for (const MoeProblem& problem : problems) {
    MoeCase host(problem, random_choices(problem, 3));
    GpuLayer layer(host);
    const runtime::Graph graph =
        runtime::Graph::capture(0, [&](Stream stream) { layer.enqueue(stream, problem.tokens); });
    const runtime::OwnedStream stream(0);
    const auto choices = static_cast<std::size_t>(problem.tokens * problem.top_k);
    for (const std::vector<std::int32_t>& ids : {random_choices(problem, 4), std::vector<std::int32_t>(choices, 5),
                                                 std::vector<std::int32_t>(choices, -1), random_choices(problem, 5)}) {
      layer.choose(ids);
      layer.poison();
      runtime::synchronize({}, 0);
      graph.launch(stream.get());
      stream.synchronize();
      EXPECT_EQ(layer.judged(problem.tokens), "");
    }
  }
}

TEST(CudaGatedMlp, IsRightInEveryFormatForAnyNumberOfTokens) {
  SKIP_WITHOUT_TENSOR_CORES();
  const GatedMlpProblem base{.tokens = 300, .hidden_size = 272, .intermediate_size = 208};
  std::vector<GatedMlpProblem> all(8, base);
  all[1].x = all[1].gate_up = all[1].intermediate = all[1].down = all[1].out = Format::fp16;
  all[1].activation.kind = ActivationKind::gelu_tanh;
  all[2].gate_up = all[2].down = Format::nvfp4;
  all[2].out = Format::fp32;
  for (const std::size_t i : {3U, 4U}) {
    all[i].x = all[i].gate_up = all[i].down = Format::fp8_block;
    all[i].intermediate_size = 256;
  }
  all[3].intermediate = Format::fp8_block;
  all[4].intermediate = Format::fp8_tensor;
  all[4].intermediate_scale = 0.25F;
  all[5].x = all[5].gate_up = all[5].intermediate = all[5].down = Format::fp8_row;
  all[6].gate_up = Format::nvfp4;
  all[6].intermediate = all[6].down = Format::fp8_row;
  all[7].intermediate = all[7].down = Format::nvfp4;
  all[7].intermediate_scale = 0.05F;
  for (const GatedMlpProblem& problem : all) {
    test::GatedMlpCase host(problem);
    const TensorOnGpu gate(host.weights().gate);
    const TensorOnGpu up(host.weights().up);
    const TensorOnGpu down(host.weights().down);
    const TensorOnGpu x(host.x(problem.tokens));
    const TensorOnGpu out(host.out(problem.tokens));
    const GatedMlpWeights weights{.gate = gate.tensor(), .up = up.tensor(), .down = down.tensor()};
    const Device device = Device::cuda(0);
    for (const GatedMlp& layer : {plan(device, problem, weights), plan(device, problem, pack(device, weights))}) {
      const OnGpu workspace(layer.workspace_bytes());
      for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{40}, problem.tokens, std::int64_t{0}}) {
        Tensor rows_of_x = x.tensor();
        Tensor rows_of_out = out.tensor();
        rows_of_x.shape[0] = rows_of_out.shape[0] = tokens;
        out.values().fill(0xFF);
        layer.run({}, rows_of_x, rows_of_out, workspace.data());
        runtime::synchronize({}, 0);
        const std::vector<std::uint8_t> made = out.values().download<std::uint8_t>();
        std::copy(made.begin(), made.end(), static_cast<std::uint8_t*>(host.out(problem.tokens).data));
        const reference::Verdict verdict = host.judged(tokens, DeviceKind::cuda);
        EXPECT_TRUE(verdict.passed) << verdict.explain();
        EXPECT_TRUE(out.guards_intact() && workspace.guards_intact());
      }
    }
  }
}

}  // namespace
}  // namespace thresher
