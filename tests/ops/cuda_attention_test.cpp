// Attention on a GPU: every strategy against the definition on every edge case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "reference/attention_judgement.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "support/attention_case.hpp"
#include "support/gpu.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using test::AttentionCase;
using test::NamedCase;

/// The tensors of a case on GPU 0, between guard zones.
struct DeviceCase {
  explicit DeviceCase(AttentionCase& on_host)
      : host(on_host),
        q(host.q),
        k(host.k),
        v(host.v),
        o(host.o),
        lse((host.lse.size() - 1) * sizeof(float)),
        cu_q(host.cu_seqlens_q),
        cu_k(host.cu_seqlens_k),
        tensors{view(host.tensors.q, q),
                view(host.tensors.k, k),
                view(host.tensors.v, v),
                view(host.tensors.o, o),
                view(host.tensors.lse, lse),
                view(host.tensors.cu_seqlens_q, cu_q),
                view(host.tensors.cu_seqlens_k, cu_k)} {}

  static Tensor view(Tensor tensor, const test::OnGpu& on_gpu) {
    tensor.device = {DeviceKind::cuda, 0};
    tensor.data = tensor.data == nullptr ? nullptr : on_gpu.data();
    return tensor;
  }

  void fetch() {
    runtime::synchronize({}, 0);
    const std::vector<std::uint16_t> patterns = o.download<std::uint16_t>();
    std::copy(patterns.begin(), patterns.end(), host.o.begin());
    const std::vector<float> values = lse.download<float>();
    std::copy(values.begin(), values.end(), host.lse.begin());
    ASSERT_TRUE(o.guards_intact());
    ASSERT_TRUE(lse.guards_intact());
  }

  AttentionCase& host;
  test::OnGpu q, k, v, o, lse, cu_q, cu_k;
  AttentionTensors tensors;
};

struct Variant {
  std::string name;
  std::string strategy;
  Knobs knobs{};
};

std::vector<Variant> variants() {
  return {{"simple", "simple"},
          {"pipelined", "pipelined"},
          {"pipelined_alone", "pipelined", {{"multicast", "1"}, {"math_warpgroups", "1"}}},
          {"pipelined_two",
           "pipelined",
           {{"multicast", "2"}, {"math_warpgroups", "2"}, {"queries_in_registers", "1"}, {"take_turns", "0"}}},
          {"pipelined_shared_queries",
           "pipelined",
           {{"multicast", "1"}, {"math_warpgroups", "2"}, {"queries_in_registers", "0"}}},
          {"split", "split"},
          {"split_8", "split", {{"cluster", "8"}}}};
}

void expect_definition(const Variant& variant, const NamedCase& named) {
  SCOPED_TRACE(named.name);
  const auto c = named.make();
  if (variant.strategy == "split" && c->problem.keys > 2048) {
    return;
  }
  const Attention attention = plan(Device::cuda(0), c->problem, {.strategy = variant.strategy, .knobs = variant.knobs});
  DeviceCase on_gpu(*c);
  attention.run({}, on_gpu.tensors);
  on_gpu.fetch();
  const auto judgement = reference::judge_attention(c->problem, c->tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

class CudaAttention : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaAttention, FollowsTheDefinitionOnEveryEdgeCase) {
  for (const NamedCase& named : test::attention_edge_cases()) {
    expect_definition(GetParam(), named);
  }
}

TEST_P(CudaAttention, AThousandRunsAndAGraphGiveTheSameBits) {
  AttentionCase c({.batch = 2, .heads = 4, .kv_heads = 2, .queries = 300, .keys = 500, .head_dim = 64, .causal = true});
  const Attention attention =
      plan(Device::cuda(0), c.problem, {.strategy = GetParam().strategy, .knobs = GetParam().knobs});
  DeviceCase on_gpu(c);
  attention.run({}, on_gpu.tensors);
  on_gpu.fetch();
  const std::vector<std::uint16_t> first = c.o;
  const std::vector<float> first_lse = c.lse;
  const runtime::OwnedStream stream(0);
  const runtime::Graph graph = runtime::Graph::capture(0, [&](Stream s) {
    for (int i = 0; i < 10; ++i) {
      attention.run(s, on_gpu.tensors);
    }
  });
  for (int i = 0; i < 100; ++i) {
    graph.launch(stream.get());
    stream.synchronize();
    on_gpu.fetch();
    ASSERT_EQ(c.o, first);
    ASSERT_EQ(c.lse, first_lse);
  }
}

class CudaAttentionWidths : public CudaAttention {};

TEST_P(CudaAttentionWidths, FollowTheDefinition) {
  for (const NamedCase& named : test::attention_width_cases()) {
    if (GetParam().name != "shared_keys" || named.name.starts_with("d256")) {
      expect_definition(GetParam(), named);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, CudaAttentionWidths,
                         testing::Values(Variant{"simple", "simple"}, Variant{"pipelined", "pipelined"},
                                         Variant{"shared_keys", "pipelined", {{"multicast", "2"}}}),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Strategies, CudaAttention, testing::ValuesIn(variants()),
                         [](const auto& tested) { return tested.param.name; });

class CudaAttentionPlan : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_F(CudaAttentionPlan, DependentLaunchesGiveTheSameBits) {
  AttentionCase c({.heads = 8, .kv_heads = 8, .queries = 512, .keys = 512, .head_dim = 64});
  const Attention plain = plan(Device::cuda(0), c.problem);
  const Attention dependent = plan(Device::cuda(0), c.problem, {.dependent_launch = true});
  EXPECT_EQ(plain.strategy(), "split");
  DeviceCase on_gpu(c);
  plain.run({}, on_gpu.tensors);
  on_gpu.fetch();
  const std::vector<std::uint16_t> first = c.o;
  for (int i = 0; i < 50; ++i) {
    dependent.run({}, on_gpu.tensors);
  }
  on_gpu.fetch();
  EXPECT_EQ(c.o, first);
}

TEST_F(CudaAttentionPlan, OffsetsBeyond31BitsAreReached) {
  // Rows of one head lie 2^31 elements after the first row: only a view this sparse needs such offsets with little
  // data.
  constexpr std::int64_t far = (std::int64_t{1} << 31) + 64;
  AttentionCase c({.heads = 2, .kv_heads = 2, .queries = 64, .keys = 64, .head_dim = 64});
  runtime::DeviceBuffer big(0, static_cast<std::size_t>(far + 2 * 64 * 64) * 2, "a sparse tensor");
  const auto spread = [&](const Tensor& host) {
    Tensor view = host;
    view.device = {DeviceKind::cuda, 0};
    view.data = big.data();
    view.strides[1] = far;
    for (int head = 0; head < 2; ++head) {
      runtime::copy(static_cast<std::uint16_t*>(big.data()) + head * far,
                    static_cast<const std::uint16_t*>(host.data) + head * 64 * 64, 64 * 64 * 2, 0);
    }
    return view;
  };
  for (const char* strategy : {"simple", "pipelined", "split"}) {
    DeviceCase on_gpu(c);
    on_gpu.tensors.k = spread(c.tensors.k);
    plan(Device::cuda(0), c.problem, {.strategy = strategy}).run({}, on_gpu.tensors);
    on_gpu.fetch();
    const auto judgement = reference::judge_attention(c.problem, c.tensors);
    EXPECT_TRUE(judgement.passed) << strategy << ": " << judgement.evidence;
  }
}

TEST_F(CudaAttentionPlan, LongSequencesAreRightInSampledRows) {
  for (const auto& [head_dim, value_dim] : {std::pair{128, 128}, std::pair{256, 256}, std::pair{192, 128}}) {
    for (const bool causal : {false, true}) {
      AttentionCase c({.heads = 3,
                       .kv_heads = 1,
                       .queries = 3000,
                       .keys = 5000,
                       .head_dim = head_dim,
                       .value_dim = value_dim,
                       .format = Format::bf16,
                       .causal = causal});
      DeviceCase on_gpu(c);
      plan(Device::cuda(0), c.problem).run({}, on_gpu.tensors);
      on_gpu.fetch();
      for (std::int64_t query = 0; query < 3000; query += 37) {
        const auto row = reference::attention_row(c.problem, c.tensors, {0, query % 3, query});
        for (std::int64_t d = 0; d < value_dim; ++d) {
          const double computed = static_cast<double>(
              formats::bf16_to_float(c.o[static_cast<std::size_t>(((query % 3) * 3000 + query) * value_dim + d)]));
          ASSERT_NEAR(computed, row.o[static_cast<std::size_t>(d)], 2e-3 + 8e-3 * std::abs(computed))
              << head_dim << " " << query << " " << d;
        }
      }
    }
  }
}

}  // namespace
}  // namespace thresher::ops
