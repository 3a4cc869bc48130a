// Attention over keys in pages on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/integers.hpp"
#include "reference/attention_judgement.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "support/attention_case.hpp"
#include "support/gpu.hpp"
#include "thresher/error.hpp"
#include "thresher/workspace.hpp"

namespace thresher::ops {
namespace {

using test::AttentionCase;
using test::OnGpu;

/// The tensors of a case on GPU 0, between guard zones.
class PagesOnGpu {
 public:
  explicit PagesOnGpu(AttentionCase& host) : host_(host), o_(host.o), lse_((host.lse.size() - 1) * sizeof(float)) {
    tensors = host.tensors;
    add(tensors.q, host.q, host.q_codes);
    tensors.o = on_gpu(host.tensors.o, o_.data());
    tensors.lse = on_gpu(host.tensors.lse, lse_.data());
    add(tensors.k, host.k, host.k_codes);
    add(tensors.v, host.v, host.v_codes);
    add(tensors.cu_seqlens_q, host.cu_seqlens_q);
    add(tensors.block_table, host.block_table);
    add(tensors.seqused_k, host.cu_seqlens_k);
    add(tensors.sinks, host.sinks);
    add(tensors.q_descale, host.q_descale);
    add(tensors.k_descale, host.k_descale);
    add(tensors.v_descale, host.v_descale);
  }

  /// Other lengths and pages of the same problem, where the tensors lie already.
  void follow(const AttentionCase& other) const {
    runtime::copy(tensors.block_table.data, other.block_table.data(), other.block_table.size() * 4, 0);
    runtime::copy(tensors.seqused_k.data, other.cu_seqlens_k.data(), other.cu_seqlens_k.size() * 4, 0);
    for (const auto& [own, others] : {std::pair{tensors.k, other.tensors.k}, std::pair{tensors.v, other.tensors.v}}) {
      const std::int64_t bytes = others.elements() * bits(others.format) / 8;
      runtime::copy(own.data, others.data, static_cast<std::size_t>(bytes), 0);
    }
  }

  void poison() const { o_.fill(0x7E); }

  void fetch() {
    runtime::synchronize({}, 0);
    const std::vector<std::uint16_t> patterns = o_.download<std::uint16_t>();
    std::copy(patterns.begin(), patterns.end(), host_.o.begin());
    const std::vector<float> values = lse_.download<float>();
    std::copy(values.begin(), values.end(), host_.lse.begin());
    ASSERT_TRUE(o_.guards_intact());
    ASSERT_TRUE(lse_.guards_intact());
  }

  AttentionTensors tensors;

 private:
  static Tensor on_gpu(Tensor tensor, void* data) {
    tensor.device = {DeviceKind::cuda, 0};
    tensor.data = data;
    return tensor;
  }
  template <class T>
  void add(Tensor& tensor, const std::vector<T>& values) {
    if (tensor.data != nullptr) {
      owned_.push_back(std::make_unique<OnGpu>(values));
      tensor = on_gpu(tensor, owned_.back()->data());
    }
  }
  void add(Tensor& tensor, const std::vector<std::uint16_t>& values, const std::vector<std::uint8_t>& codes) {
    if (codes.empty()) {
      add(tensor, values);
    } else {
      add(tensor, codes);
    }
  }

  AttentionCase& host_;
  OnGpu o_;
  OnGpu lse_;
  std::vector<std::unique_ptr<OnGpu>> owned_;
};

struct Decode {
  std::string name;
  AttentionProblem problem;
  std::vector<std::int32_t> cu_q;
  std::vector<std::int32_t> used;
  Knobs knobs{};
  std::string strategy = "stream_k";
};

AttentionProblem pages_of(std::int64_t page, std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
                          Format format) {
  AttentionProblem problem{.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .format = format};
  problem.variable_length = true;
  problem.causal = true;
  problem.page_size = page;
  return problem;
}

/// `queries` of each sequence.
Decode decode(std::string name, AttentionProblem problem, int queries, std::vector<std::int32_t> used,
              Knobs knobs = {}) {
  std::vector<std::int32_t> cu_q{0};
  for (std::size_t i = 0; i < used.size(); ++i) {
    cu_q.push_back(cu_q.back() + queries);
  }
  problem.batch = static_cast<std::int64_t>(used.size());
  problem.queries = cu_q.back();
  problem.keys = *std::max_element(used.begin(), used.end());
  problem.pages = 3;
  for (const std::int32_t keys : used) {
    problem.pages += ceil_div(std::int64_t{keys}, problem.page_size);
  }
  return {std::move(name), problem, std::move(cu_q), std::move(used), std::move(knobs)};
}

AttentionProblem with_fp8(AttentionProblem problem) {
  problem.kv_format = Format::fp8_e4m3;
  return problem;
}

AttentionProblem with_fp8_queries(AttentionProblem problem) {
  problem.q_format = problem.kv_format = Format::fp8_e4m3;
  return problem;
}

std::vector<Decode> decodes() {
  std::vector<Decode> all;
  const auto plain = pages_of(16, 32, 8, 128, Format::bf16);
  all.push_back(decode("one_sequence", plain, 1, {1024}));
  all.push_back(decode("one_long_sequence", pages_of(64, 8, 1, 128, Format::fp16), 1, {20000}));
  all.push_back(decode("lengths", plain, 1, {1, 17, 4000, 0, 64, 65, 63, 700, 2048, 129}));
  all.push_back(decode("several_queries", plain, 5, {1, 17, 4000, 3, 64, 65}));
  all.push_back(decode("many_queries", pages_of(16, 8, 2, 64, Format::fp16), 150, {150, 700, 33}));
  all.push_back(decode("fp8", with_fp8(plain), 1, {1, 17, 4000, 0, 64, 65, 63, 700, 2048, 129}));
  all.push_back(decode("fp8_halves", with_fp8(pages_of(32, 16, 2, 64, Format::fp16)), 2, {1000, 77}));
  all.push_back(decode("fp8_queries", with_fp8_queries(plain), 1, {1, 17, 4000, 0, 64, 65, 63, 700, 2048, 129}));
  all.push_back(decode("fp8_queries_halves", with_fp8_queries(pages_of(32, 16, 2, 64, Format::fp16)), 2, {1000, 77}));
  all.push_back(decode("fp8_queries_cluster", with_fp8_queries(plain), 3, {777}, {{"cluster", "4"}}));
  all.push_back(decode("pages_of_one", pages_of(1, 32, 8, 128, Format::bf16), 1, {1500, 3, 900}));
  all.push_back(decode("fp8_pages_of_one", with_fp8(pages_of(1, 8, 8, 128, Format::bf16)), 1, {1500, 3, 900}));
  all.push_back(decode("keys_one_by_one", plain, 1, {1500, 3, 900}, {{"boxes", "0"}}));
  all.push_back(decode("pages_of_24", pages_of(24, 4, 4, 128, Format::bf16), 1, {1500, 3, 900}));
  all.push_back(decode("pages_of_256", pages_of(256, 4, 4, 128, Format::fp16), 1, {1500, 3, 900}));
  all.push_back(decode("wide_heads", pages_of(16, 16, 2, 256, Format::bf16), 1, {1500, 3, 900}));
  all.push_back(decode("fp8_wide_heads", with_fp8(pages_of(16, 16, 2, 256, Format::bf16)), 3, {1500, 3, 900}));
  auto everything = with_fp8(pages_of(16, 24, 4, 128, Format::bf16));
  everything.sinks = true;
  everything.softcap = 3.0F;
  everything.window_left = 300;
  all.push_back(decode("everything", everything, 4, {1500, 3, 900, 0, 301}));
  auto other_values = pages_of(16, 8, 2, 128, Format::fp16);
  other_values.value_dim = 64;
  all.push_back(decode("other_values", other_values, 1, {1500, 3, 900}));
  all.push_back(decode("alike_in_parts", plain, 1, std::vector<std::int32_t>(8, 1024)));
  all.push_back(decode("alike_and_whole", plain, 1, std::vector<std::int32_t>(33, 1000)));
  all.push_back(decode("fp8_one_sequence", with_fp8(plain), 1, {1024}));
  const auto pairs = with_fp8(pages_of(16, 32, 8, 64, Format::bf16));
  all.push_back(decode("fp8_pairs_of_heads", pairs, 1, {1500, 3, 900, 0, 301}, {{"heads", "2"}}));
  all.push_back(decode("fp8_pairs_of_heads_alike", pairs, 3, std::vector<std::int32_t>(40, 1000)));
  for (const char* const cluster : {"1", "2", "4", "8", "16"}) {
    all.push_back(decode(std::string("cluster_of_") + cluster, plain, 1, {1024}, {{"cluster", cluster}}));
    all.push_back(decode(std::string("fp8_cluster_of_") + cluster, with_fp8(plain), 3, {777}, {{"cluster", cluster}}));
  }
  all.push_back(decode("clusters_of_lengths", plain, 1, {1, 17, 4000, 0, 64, 65, 63, 700}, {{"cluster", "2"}}));
  all.push_back(
      decode("clusters_of_more_tiles_than_fit", plain, 5, std::vector<std::int32_t>(40, 300), {{"cluster", "8"}}));
  std::vector<std::int32_t> uneven;
  for (int i = 0; i < 20; ++i) {
    uneven.push_back(i * 611 % 2100);
  }
  for (const char* const cluster : {"2", "4", "8"}) {
    const Knobs knobs{{"cluster", cluster}};
    all.push_back(decode(std::string("clusters_of_several_tiles_") + cluster, plain, 1, uneven, knobs));
    all.push_back(decode(std::string("fp8_clusters_of_several_tiles_") + cluster, with_fp8(plain), 3, uneven, knobs));
  }
  all.push_back(decode("cluster_everything", everything, 4, {1500}, {{"cluster", "8"}}));
  all.push_back(decode("cluster_wide_heads", pages_of(16, 16, 2, 256, Format::bf16), 1, {1500}, {{"cluster", "8"}}));
  all.push_back(decode("cluster_pages_of_one", pages_of(1, 32, 8, 128, Format::bf16), 1, {1500}, {{"cluster", "8"}}));
  all.push_back(decode("cluster_pairs_of_heads", pairs, 3, {1500}, {{"cluster", "8"}, {"heads", "2"}}));
  std::vector<std::int32_t> many;
  for (int i = 0; i < 300; ++i) {
    many.push_back(i * 37 % 411);
  }
  all.push_back(decode("many_sequences", pages_of(16, 8, 2, 64, Format::bf16), 1, many));
  return all;
}

Decode decode_named(const std::string& name) {
  const std::vector<Decode> all = decodes();
  return *std::find_if(all.begin(), all.end(), [&](const Decode& on) { return on.name == name; });
}

/// Sequences of different lengths, with two launches and with clusters.
std::vector<Decode> uneven_decodes() {
  Decode two_launches = decode_named("lengths");
  two_launches.knobs = {{"cluster", "1"}};
  return {two_launches, decode_named("clusters_of_several_tiles_2"), decode_named("clusters_of_several_tiles_8")};
}

/// Chunks of prompts beside decode, of which `queries` belong to each sequence in turn.
Decode chunks(std::string name, AttentionProblem problem, const std::vector<int>& queries,
              std::vector<std::int32_t> used, Knobs knobs = {}) {
  Decode made = decode(std::move(name), problem, 1, std::move(used), std::move(knobs));
  for (std::size_t i = 0; i + 1 < made.cu_q.size(); ++i) {
    made.cu_q[i + 1] = made.cu_q[i] + queries[i % queries.size()];
  }
  made.problem.queries = made.cu_q.back();
  made.strategy = "pipelined";
  return made;
}

std::vector<Decode> prefills() {
  std::vector<Decode> all;
  const std::vector<std::int32_t> used{2100, 700, 0, 65, 1500, 128};
  const std::vector<int> queries{300, 129, 1, 40, 1, 0};
  all.push_back(chunks("chunks", pages_of(16, 8, 2, 128, Format::bf16), queries, used));
  all.push_back(chunks("chunks_large_pages", pages_of(256, 4, 4, 64, Format::fp16), queries, used));
  all.push_back(chunks("chunks_pages_of_24", pages_of(24, 4, 1, 128, Format::fp16), queries, used));
  all.push_back(chunks("chunks_wide_heads", pages_of(8, 4, 2, 256, Format::bf16), queries, used));
  auto latent = pages_of(64, 4, 4, 192, Format::bf16);
  latent.value_dim = 128;
  latent.sinks = true;
  latent.softcap = 3.0F;
  latent.window_left = 300;
  all.push_back(chunks("chunks_everything", latent, queries, used));
  for (const char* const title : {"mixed", "mixed_sinks_window"}) {
    auto problem = pages_of(16, 8, 2, 128, Format::bf16);
    if (std::string(title) != "mixed") {
      problem.sinks = true;
      problem.window_left = 200;
    }
    all.push_back(chunks(title, problem, {300, 1, 17, 16, 1, 0}, {2100, 700, 40, 65, 0, 128}));
    all.back().strategy = "mixed";
  }
  all.push_back(chunks("fp8_chunks", with_fp8(pages_of(16, 8, 2, 128, Format::bf16)), queries, used));
  all.push_back(chunks("fp8_chunks_halves", with_fp8(pages_of(32, 8, 2, 128, Format::fp16)), queries, used));
  all.push_back(chunks("fp8_chunks_narrow_heads", with_fp8(pages_of(256, 4, 4, 64, Format::bf16)), queries, used));
  all.push_back(chunks("fp8_chunks_pages_of_24", with_fp8(pages_of(24, 4, 1, 128, Format::fp16)), queries, used));
  all.push_back(chunks("fp8_chunks_wide_heads", with_fp8(pages_of(8, 4, 2, 256, Format::bf16)), queries, used));
  auto everything = with_fp8(pages_of(64, 4, 4, 128, Format::bf16));
  everything.value_dim = 256;
  everything.sinks = true;
  everything.softcap = 3.0F;
  everything.window_left = 300;
  all.push_back(chunks("fp8_chunks_everything", everything, queries, used));
  everything.value_dim = 128;
  all.push_back(chunks("fp8_chunks_general_logits", everything, queries, used));
  for (const Format format : {Format::bf16, Format::fp16}) {
    all.push_back(chunks(format == Format::bf16 ? "fp8_mixed" : "fp8_mixed_halves",
                         with_fp8(pages_of(16, 8, 2, 128, format)), {300, 1, 17, 16, 1, 0},
                         {2100, 700, 40, 65, 0, 128}));
    all.back().strategy = "mixed";
  }
  const auto queries_in_fp8 = [&](const char* name, const AttentionProblem& problem) {
    all.push_back(chunks(name, with_fp8_queries(problem), queries, used));
  };
  queries_in_fp8("fp8_queries_chunks", pages_of(16, 8, 2, 128, Format::bf16));
  queries_in_fp8("fp8_queries_chunks_halves", pages_of(32, 8, 2, 128, Format::fp16));
  queries_in_fp8("fp8_queries_chunks_narrow_heads", pages_of(256, 4, 4, 64, Format::bf16));
  queries_in_fp8("fp8_queries_chunks_pages_of_24", pages_of(24, 4, 1, 128, Format::fp16));
  queries_in_fp8("fp8_queries_chunks_wide_heads", pages_of(8, 4, 2, 256, Format::bf16));
  queries_in_fp8("fp8_queries_chunks_general_logits", everything);
  everything.value_dim = 256;
  queries_in_fp8("fp8_queries_chunks_everything", everything);
  all.push_back(chunks("fp8_queries_mixed", with_fp8_queries(pages_of(16, 8, 2, 128, Format::bf16)),
                       {300, 1, 17, 16, 1, 0}, {2100, 700, 40, 65, 0, 128}));
  all.back().strategy = "mixed";
  all.push_back(
      chunks("fp8_queries_simple", with_fp8_queries(pages_of(7, 4, 2, 128, Format::bf16)), {3, 1}, {700, 90}));
  all.back().strategy = "simple";
  all.push_back(chunks("fp8_simple", with_fp8(pages_of(7, 4, 2, 128, Format::bf16)), {3, 1}, {700, 90}));
  all.back().strategy = "simple";
  all.push_back(chunks("chunks_of_few_rows", pages_of(16, 8, 2, 128, Format::bf16), {8, 1}, {700, 300},
                       {{"math_warpgroups", "1"}, {"take_turns", "0"}}));
  return all;
}

/// Of the prefills, those whose runs are compared with each other.
const std::set<std::string> repeated{"chunks", "mixed", "fp8_chunks", "fp8_mixed", "fp8_queries_chunks"};

Attention planned(const Decode& on) {
  return plan(Device::cuda(0), on.problem, {.strategy = on.strategy, .knobs = on.knobs});
}

class CudaPagedAttention : public testing::TestWithParam<Decode> {
 protected:
  void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaPagedAttention, FollowsTheDefinition) {
  AttentionCase c(GetParam().problem, test::Order::heads_first, GetParam().cu_q, GetParam().used);
  const Attention attention = planned(GetParam());
  const Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  PagesOnGpu on_gpu(c);
  on_gpu.poison();
  attention.run({}, on_gpu.tensors, workspace.data());
  on_gpu.fetch();
  const auto judgement = reference::judge_attention(c.problem, c.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

INSTANTIATE_TEST_SUITE_P(Decodes, CudaPagedAttention, testing::ValuesIn(decodes()),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Prefills, CudaPagedAttention, testing::ValuesIn(prefills()),
                         [](const auto& tested) { return tested.param.name; });

class CudaPagedAttentionPlan : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_GPU(); }
};

/// Whatever else the workspace was used for.
void expect_the_same_bits(const Decode& on) {
  SCOPED_TRACE(on.name);
  AttentionCase c(on.problem, test::Order::heads_first, on.cu_q, on.used);
  const Attention attention = planned(on);
  const Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  PagesOnGpu on_gpu(c);
  attention.run({}, on_gpu.tensors, workspace.data());
  on_gpu.fetch();
  const std::vector<std::uint16_t> first = c.o;
  const std::vector<float> first_lse = c.lse;
  const runtime::OwnedStream stream(0);
  const runtime::Graph graph = runtime::Graph::capture(0, [&](Stream s) {
    for (int i = 0; i < 10; ++i) {
      attention.run(s, on_gpu.tensors, workspace.data());
    }
  });
  for (int i = 0; i < 100; ++i) {
    runtime::fill_async(workspace.data(), static_cast<std::uint8_t>(i * 41), workspace.bytes(), stream.get(), 0);
    graph.launch(stream.get());
    stream.synchronize();
    on_gpu.fetch();
    ASSERT_EQ(c.o, first);
    ASSERT_EQ(c.lse, first_lse);
  }
}

TEST_F(CudaPagedAttentionPlan, AThousandRunsGiveTheSameBits) {
  for (const Decode& on : uneven_decodes()) {
    expect_the_same_bits(on);
  }
  for (const Decode& on : prefills()) {
    if (repeated.contains(on.name)) {
      expect_the_same_bits(on);
    }
  }
}

TEST_F(CudaPagedAttentionPlan, AGraphFollowsTheLengths) {
  Decode on = decodes()[2];
  on.problem.pages += 1000;
  AttentionCase c(on.problem, test::Order::heads_first, on.cu_q, on.used);
  const Attention attention = planned(on);
  const Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  PagesOnGpu on_gpu(c);
  const runtime::OwnedStream stream(0);
  const runtime::Graph graph =
      runtime::Graph::capture(0, [&](Stream s) { attention.run(s, on_gpu.tensors, workspace.data()); });
  for (const unsigned seed : {2, 3, 4}) {
    std::vector<std::int32_t> used = on.used;
    std::rotate(used.begin(), used.begin() + seed, used.end());
    used[0] = static_cast<std::int32_t>(seed) * 1000;
    AttentionCase other(on.problem, test::Order::heads_first, on.cu_q, used, 1);
    on_gpu.follow(other);
    on_gpu.poison();
    graph.launch(stream.get());
    stream.synchronize();
    on_gpu.fetch();
    const std::vector<std::uint16_t> replayed = c.o;
    on_gpu.poison();
    attention.run({}, on_gpu.tensors, workspace.data());
    on_gpu.fetch();
    EXPECT_EQ(c.o, replayed);
    other.o = c.o;
    other.lse = c.lse;
    other.tensors.o.data = other.o.data();
    other.tensors.lse.data = other.lse.data();
    other.tensors.q = c.tensors.q;
    const auto judgement = reference::judge_attention(other.problem, other.tensors);
    EXPECT_TRUE(judgement.passed) << judgement.evidence;
  }
}

TEST_F(CudaPagedAttentionPlan, DependentLaunchesGiveTheSameBits) {
  for (const Decode& on : uneven_decodes()) {
    AttentionCase c(on.problem, test::Order::heads_first, on.cu_q, on.used);
    PagesOnGpu on_gpu(c);
    std::vector<std::uint16_t> first;
    for (const bool dependent : {false, true}) {
      const Attention attention =
          plan(Device::cuda(0), on.problem, {.strategy = "stream_k", .knobs = on.knobs, .dependent_launch = dependent});
      const Workspace workspace(Device::cuda(0), attention.workspace_bytes());
      for (int i = 0; i < 50; ++i) {
        attention.run({}, on_gpu.tensors, workspace.data());
      }
      on_gpu.fetch();
      if (first.empty()) {
        first = c.o;
      }
      EXPECT_EQ(c.o, first) << on.name;
    }
  }
}

/// Lengths and pages that are not there: nothing outside the tensors is touched, and the next call is right.
void expect_nonsense_stays_inside(const Decode& on) {
  SCOPED_TRACE(on.name);
  AttentionCase c(on.problem, test::Order::heads_first, on.cu_q, on.used);
  const Attention attention = planned(on);
  const Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  PagesOnGpu on_gpu(c);
  AttentionCase other(on.problem, test::Order::heads_first, on.cu_q, on.used);
  for (std::size_t i = 0; i < other.cu_seqlens_k.size(); ++i) {
    other.cu_seqlens_k[i] = i % 2 == 0 ? -5 : 2'000'000'000;
  }
  for (std::size_t i = 0; i < other.block_table.size(); ++i) {
    other.block_table[i] = i % 2 == 0 ? -2'000'000'000 : 2'000'000'000;
  }
  on_gpu.follow(other);
  std::vector<std::int32_t> offsets = on.cu_q;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = i % 2 == 0 ? on.cu_q.back() : -1;
  }
  runtime::copy(on_gpu.tensors.cu_seqlens_q.data, offsets.data(), offsets.size() * 4, 0);
  attention.run({}, on_gpu.tensors, workspace.data());
  on_gpu.fetch();
  EXPECT_EQ(attention.status({}, workspace.data()).flags, AttentionStatus::offsets | AttentionStatus::lengths);
  runtime::copy(on_gpu.tensors.cu_seqlens_q.data, on.cu_q.data(), on.cu_q.size() * 4, 0);
  attention.run({}, on_gpu.tensors, workspace.data());
  on_gpu.fetch();
  EXPECT_EQ(attention.status({}, workspace.data()).flags, AttentionStatus::lengths | AttentionStatus::pages);
  on_gpu.follow(c);
  attention.run({}, on_gpu.tensors, workspace.data());
  on_gpu.fetch();
  EXPECT_TRUE(attention.status({}, workspace.data()).makes_sense());
  const auto judgement = reference::judge_attention(c.problem, c.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

TEST_F(CudaPagedAttentionPlan, NonsenseStaysInsideTheTensors) {
  expect_nonsense_stays_inside(decodes()[2]);
  for (const Decode& on : prefills()) {
    if (repeated.contains(on.name)) {
      expect_nonsense_stays_inside(on);
    }
  }
}

}  // namespace
}  // namespace thresher::ops
