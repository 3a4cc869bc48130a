#include <gtest/gtest.h>

#include <functional>
#include <unordered_map>
#include <vector>

#include "thresher/append.hpp"
#include "thresher/attention.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher {
namespace {

/// `changes` each make another value of `start`: none may be equal to it or have its hash.
template <class Value>
void expect_that_every_change_counts(const Value& start, const std::vector<std::function<void(Value&)>>& changes) {
  const std::hash<Value> hash;
  const Value same = start;
  EXPECT_EQ(same, start);
  EXPECT_EQ(hash(same), hash(start));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Value other = start;
    changes[i](other);
    EXPECT_NE(other, start) << "change " << i;
    EXPECT_NE(hash(other), hash(start)) << "change " << i;
  }
}

TEST(Hash, EveryMemberOfADualGemmProblemCounts) {
  using P = DualGemmProblem;
  expect_that_every_change_counts<P>(
      {.m = 1, .n = 2, .k = 16},
      {[](P& p) { ++p.m; }, [](P& p) { ++p.n; }, [](P& p) { ++p.k; }, [](P& p) { std::swap(p.m, p.n); },
       [](P& p) { p.a = Format::bf16; }, [](P& p) { p.b = Format::bf16; }, [](P& p) { p.out = Format::bf16; },
       [](P& p) { p.activation.kind = ActivationKind::gelu_tanh; }, [](P& p) { p.activation.alpha = 1; },
       [](P& p) { p.activation.limit = 1; }, [](P& p) { p.activation.up_offset = 0; }});
}

TEST(Hash, EveryMemberOfOptionsCounts) {
  using D = DualGemmOptions;
  expect_that_every_change_counts<D>({}, {[](D& o) { o.strategy = "packed"; }, [](D& o) { o.knobs.set("stages", "4"); },
                                          [](D& o) { o.knobs.set("stages", "5"); }, [](D& o) { o.threads = 1; },
                                          [](D& o) { o.knobs.set("numerics", "fast"); }});
  using A = AttentionOptions;
  expect_that_every_change_counts<A>({}, {[](A& o) { o.strategy = "split"; }, [](A& o) { o.knobs.set("parts", "4"); },
                                          [](A& o) { o.threads = 1; }, [](A& o) { o.dependent_launch = true; }});
}

TEST(Hash, EveryMemberOfAnAttentionProblemCounts) {
  using P = AttentionProblem;
  expect_that_every_change_counts<P>(
      {.queries = 3, .keys = 5},
      {[](P& p) { ++p.batch; }, [](P& p) { ++p.heads; }, [](P& p) { ++p.kv_heads; }, [](P& p) { ++p.queries; },
       [](P& p) { ++p.keys; }, [](P& p) { p.head_dim = 128; }, [](P& p) { p.format = Format::bf16; },
       [](P& p) { p.causal = true; }, [](P& p) { p.scale = 0.0F; }, [](P& p) { p.window_left = 0; },
       [](P& p) { p.window_right = 0; }, [](P& p) { p.softcap = 1; }, [](P& p) { p.variable_length = true; },
       [](P& p) { p.value_dim = 128; }, [](P& p) { p.kv_format = Format::fp8_e4m3; }, [](P& p) { p.page_size = 16; },
       [](P& p) { p.pages = 2; }, [](P& p) { p.sinks = true; }});
}

TEST(Hash, EveryMemberOfAnAppendProblemCounts) {
  using P = AppendProblem;
  expect_that_every_change_counts<P>(
      {.tokens = 3},
      {[](P& p) { ++p.tokens; }, [](P& p) { ++p.heads; }, [](P& p) { ++p.kv_heads; }, [](P& p) { p.head_dim = 128; },
       [](P& p) { p.value_dim = 128; }, [](P& p) { p.format = Format::bf16; },
       [](P& p) { p.kv_format = Format::fp8_e4m3; }, [](P& p) { p.pairs = RotaryPairs::none; },
       [](P& p) { p.rotary_dim = 32; }, [](P& p) { p.theta = 5e5F; }, [](P& p) { p.max_position = 1; },
       [](P& p) { p.page_size = 1; }, [](P& p) { p.pages = 2; }});
  expect_that_every_change_counts<AppendOptions>({}, {[](AppendOptions& o) { o.threads = 1; }});
}

TEST(Hash, PlansCanBeKeptByTheirProblem) {
  std::unordered_map<DualGemmProblem, int> plans;
  plans[{.m = 1, .n = 8, .k = 16}] = 1;
  plans[{.m = 2, .n = 8, .k = 16}] = 2;
  EXPECT_EQ(plans.at({.m = 2, .n = 8, .k = 16}), 2);
}

}  // namespace
}  // namespace thresher
