// Attention in the arena: its suites, its inputs and its judge, with mistakes planted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "arena/attention/inputs.hpp"
#include "arena/attention/task.hpp"
#include "arena/contestants/registry.hpp"
#include "arena/expect_error.hpp"
#include "arena/gates/correctness.hpp"
#include "arena/gates/verified_calls.hpp"
#include "arena/operations.hpp"
#include "arena/planted.hpp"

namespace thresher::arena {
namespace {

const std::string good = R"(title = "Two"
operation = "attention"
distributions = ["normal"]
[[problem]]
heads = 4
kv_heads = 2
queries = [70, 1]
keys = 150
head_dim = 64
format = "bf16"
causal = [false, true]
lse = true
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string error_in(const std::string& text) {
  return error_of([&] { (void)parse_suite(text, "mine", "mine.toml"); });
}

Problem problem_of(const AttentionProblem& attention, bool lse = true, bool rows_first = false) {
  return problem_of(AttentionTask{attention, lse, rows_first, {}, {}});
}

/// Three tiles of queries in each of four heads, the last one ragged.
const Problem ragged = problem_of({.batch = 2, .heads = 4, .kv_heads = 2, .queries = 150, .keys = 130, .causal = true});

/// A host kernel: gets the task and the tensors of one call, and how many came before it.
using AttentionKernel = std::function<void(const AttentionTask&, const AttentionTensors&, int)>;

class AttentionPlanted final : public Contestant {
 public:
  explicit AttentionPlanted(AttentionKernel kernel)
      : Contestant({"attention", "planted"}), kernel_(std::move(kernel)) {}
  Answer feasible(const Problem&, Memory&) const override { return {true, "a fake needs nothing"}; }
  Answer compile(const Problem&) const override { return {true, "compiled with the tests"}; }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory&, const std::vector<DeviceSet>& sets) const override {
    class Planted final : public Runner {
     public:
      Planted(AttentionTask task, const std::vector<DeviceSet>& sets, AttentionKernel kernel)
          : task_(std::move(task)), sets_(sets), kernel_(std::move(kernel)) {}
      void run(Stream, std::size_t set) override {
        kernel_(task_,
                attention_tensors(task_,
                                  [&](std::string_view name) {
                                    const Tensor* const known = sets_[set].find(name);
                                    return known == nullptr ? Tensor{} : *known;
                                  }),
                calls_++);
      }

     private:
      AttentionTask task_;
      const std::vector<DeviceSet>& sets_;
      AttentionKernel kernel_;
      int calls_ = 0;
    };
    return std::make_unique<Planted>(problem.as<AttentionTask>(), sets, kernel_);
  }

 private:
  AttentionKernel kernel_;
};

void compute(const AttentionProblem& problem, const AttentionTensors& tensors) {
  plan(Device::cpu(), problem).run({}, tensors);
}

Finding judge(const AttentionKernel& kernel, const Problem& problem = ragged,
              Distribution distribution = Distribution::normal) {
  FakeRig rig;
  return run_trial(make_trial(problem, distribution, {DeviceKind::cpu}, 11), AttentionPlanted(kernel), rig).finding;
}

std::uint16_t& element(const AttentionTensors& tensors, std::int64_t head, std::int64_t query, std::int64_t column) {
  return static_cast<std::uint16_t*>(
      tensors.o.data)[head * tensors.o.strides[1] + query * tensors.o.strides[2] + column];
}

TEST(AttentionSuite, ListsMultiplyAndLabelsTellProblemsApart) {
  const Suite suite = parse_suite(good, "mine", "mine.toml");
  ASSERT_EQ(suite.problems.size(), 4U);
  std::set<std::string> labels;
  for (const Problem& problem : suite.problems) {
    labels.insert(label(problem));
  }
  EXPECT_EQ(labels, (std::set<std::string>{"1x4/2x1:150x64 bf16 lse", "1x4/2x1:150x64 bf16 causal lse",
                                           "1x4/2x70:150x64 bf16 lse", "1x4/2x70:150x64 bf16 causal lse"}));
  EXPECT_FALSE(suite.warm);
  EXPECT_TRUE(parse_suite(replaced(good, "distributions", "cache = \"warm\"\ndistributions"), "m", "m.toml").warm);
}

TEST(AttentionSuite, LengthsMakeSequencesOfTheirOwn) {
  std::string text = replaced(good, "queries = [70, 1]\nkeys = 150", "query_lengths = [3, 0]\nkey_lengths = [7, 9]");
  const Suite suite = parse_suite(text, "mine", "mine.toml");
  const auto& task = suite.problems.front().as<AttentionTask>();
  EXPECT_TRUE(task.problem.variable_length);
  EXPECT_EQ(task.problem.batch, 2);
  EXPECT_EQ(task.problem.queries, 3);
  EXPECT_EQ(task.problem.keys, 16);
  EXPECT_EQ(offsets_of(task.key_lengths), (std::vector<std::int32_t>{0, 7, 16}));
  EXPECT_EQ(label(suite.problems.front()), "2x4/2x3:16x64 bf16 lengths(3,0:7,9) lse");
  EXPECT_EQ(error_in(replaced(text, "[7, 9]", "[7]")),
            "mine.toml:8: `key_lengths` in [problem] has 1 sequences, but query_lengths has 2");
}

const std::string paged = R"(title = "Pages"
operation = "attention"
distributions = ["normal"]
[[problem]]
batch = 4
heads = 4
kv_heads = 2
queries = [1, 3]
keys = 40
page_size = 16
head_dim = 64
format = "bf16"
sinks = true
kv_format = ["same", "fp8_e4m3"]
lengths = ["equal", "mixed"]
)";

TEST(AttentionSuite, PagesHoldSequencesOfEqualOrMixedLengths) {
  const Suite suite = parse_suite(paged, "mine", "mine.toml");
  ASSERT_EQ(suite.problems.size(), 8U);
  std::set<std::string> labels;
  for (const Problem& problem : suite.problems) {
    labels.insert(label(problem));
    const auto& task = problem.as<AttentionTask>();
    EXPECT_EQ(task.problem.batch, 4);
    EXPECT_EQ(task.problem.queries, std::accumulate(task.query_lengths.begin(), task.query_lengths.end(), 0));
    EXPECT_EQ(std::accumulate(task.key_lengths.begin(), task.key_lengths.end(), 0), 160) << label(problem);
    EXPECT_GE(task.problem.pages, 4 * 3);
    EXPECT_GE(task.problem.keys, *std::max_element(task.key_lengths.begin(), task.key_lengths.end()));
  }
  EXPECT_EQ(labels.size(), 8U);
  EXPECT_TRUE(labels.contains("4x4/2x1:40x64 bf16 sinks pages(16)"));
  const Suite sparse = parse_suite(replaced(paged, "page_size = 16", "page_size = 4096"), "mine", "mine.toml");
  EXPECT_EQ(find_operation("attention").working_bytes(sparse.problems.front()), 6.0 * 4096 * 2 * 128 * 2)
      << "what no sequence uses takes memory too";
  EXPECT_TRUE(labels.contains("4x4/2x3:40x64 bf16 fp8_e4m3 keys sinks pages(16) mixed"));
  EXPECT_EQ(
      error_in(replaced(paged, "page_size = 16\n", "")),
      "mine.toml:14: `lengths` in [problem] says how long sequences are whose keys are in pages: give page_size too");
  EXPECT_EQ(error_in(replaced(paged, "format = \"bf16\"", "format = \"bf16\"\nvalue_dim = 100")),
            "mine.toml:13: `value_dim` in [problem] is 100, but must be 64, 128, 192, 256 or 512");
}

TEST(AttentionSuite, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(error_in(replaced(good, "kv_heads = 2", "kv_heads = 3")),
            "mine.toml:6: `kv_heads` in [problem] is 3, but must divide heads, which is 4");
  EXPECT_EQ(error_in(replaced(good, "head_dim = 64", "head_dim = 96")),
            "mine.toml:9: `head_dim` in [problem] is 96, but must be 64, 128, 192, 256 or 576");
  EXPECT_EQ(error_in(replaced(good, "\"bf16\"", "\"nvfp4\"")),
            "mine.toml:10: `format` in [problem] is \"nvfp4\", but must be one of fp16, bf16");
  EXPECT_EQ(error_in(replaced(good, "[false, true]", "1")),
            "mine.toml:11: `causal` in [problem] must be true, false or a list of them");
  EXPECT_EQ(error_in(replaced(good, "lse = true", "softcap = -1")),
            "mine.toml:12: `softcap` in [problem] must not be negative");
  EXPECT_EQ(
      error_in(replaced(good, "normal", "contest")),
      "mine.toml:3: `distributions` has \"contest\", but for these problems there is full_range, normal, specials");
  EXPECT_NE(error_in(replaced(good, "lse = true", "dropout = 0.1")).find("unknown key `dropout`"), std::string::npos);
  EXPECT_EQ(error_in(replaced(good, "[70, 1]", "[1, 1]")),
            "mine.toml:5: `heads` in [problem] makes the problem 1x4/2x1:150x64 bf16 lse a second time");
}

TEST(AttentionSuite, TheBuiltInOnesHoldWhatTheyPromise) {
  const Suite origin = load_suite("attention_origin");
  EXPECT_TRUE(origin.warm);
  ASSERT_EQ(origin.problems.size(), 2U);
  EXPECT_EQ(label(origin.problems[0]), "1x8x512x64 fp16");
  EXPECT_EQ(find_operation("attention").cost(origin.problems[0]).operations, 4.0 * 8 * 512 * 512 * 64);
  EXPECT_EQ(find_operation("attention").cost(origin.problems[1]).operations, 4.0 * 8 * (512 * 513 / 2) * 64);
  EXPECT_EQ(load_suite("attention").problems.size(), 11U);
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const Problem& problem : load_suite("attention_edges").problems) {
    const AttentionProblem& p = problem.as<AttentionTask>().problem;
    shapes.insert({p.queries, p.keys});
  }
  for (const auto& [queries, keys] : {std::pair{1, 1},
                                      {1, 339},
                                      {113, 203},
                                      {799, 3},
                                      {113, 113},
                                      {1023, 1023},
                                      {1025, 1025},
                                      {1024, 1023},
                                      {0, 128},
                                      {128, 0}}) {
    EXPECT_TRUE(shapes.contains({queries, keys})) << queries << " " << keys;
  }
}

TEST(AttentionSuite, ThoseOfServingFitOneGpuAndMixTheSameSums) {
  constexpr double max_bytes = 1.3 * (1 << 30);
  for (const char* const name : {"attention_paged", "attention_decode", "attention_mixed"}) {
    const Suite suite = load_suite(name);
    EXPECT_EQ(suite.timed, std::string(name) != "attention_paged");
    for (const Problem& problem : suite.problems) {
      EXPECT_GT(problem.as<AttentionTask>().problem.page_size, 0) << label(problem);
      EXPECT_LT(find_operation("attention").cost(problem).compulsory_bytes, max_bytes) << label(problem);
    }
  }
  std::map<std::int64_t, std::set<double>> bytes;
  for (const Problem& problem : load_suite("attention_mixed").problems) {
    const auto& task = problem.as<AttentionTask>();
    if (task.lengths != SequenceLengths::listed && !task.problem.kv_format) {
      bytes[task.problem.batch].insert(find_operation("attention").cost(problem).compulsory_bytes);
    }
  }
  EXPECT_EQ(bytes.size(), 2U);
  EXPECT_EQ(bytes[16].size(), 1U);
  EXPECT_EQ(bytes[64].size(), 1U);
}

/// Four sequences in pages of 8, keys in FP8 with sinks.
Problem problem_in_pages(std::int64_t head_dim = 64) {
  AttentionTask task{{.heads = 4, .kv_heads = 2, .head_dim = head_dim, .causal = true}, true, true};
  task.problem.page_size = 8;
  task.problem.sinks = true;
  task.problem.kv_format = Format::fp8_e4m3;
  task.query_lengths = {1, 20, 0, 3};
  task.key_lengths = {33, 20, 16, 1};
  return problem_of(completed(task));
}

/// Of rank 0 where there is none of that name.
Tensor tensor_of(const std::vector<HostTensor>& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const HostTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? Tensor{} : found->view();
}

const std::vector<std::uint8_t>& tensor_values(const std::vector<HostTensor>& tensors, std::string_view name) {
  return std::find_if(tensors.begin(), tensors.end(), [&](const HostTensor& tensor) { return tensor.name == name; })
      ->values;
}

TEST(AttentionInputs, PagesAreDealtAtRandomAndWhatNobodyUsesIsNan) {
  const Problem problem = problem_in_pages();
  const auto& task = problem.as<AttentionTask>();
  std::set<std::vector<std::int32_t>> tables;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto inputs = find_operation("attention").inputs(problem, Distribution::normal, seed);
    const auto tensors = attention_tensors(task, [&](std::string_view name) { return tensor_of(inputs, name); });
    const auto* const table = static_cast<const std::int32_t*>(tensors.block_table.data);
    const auto* const used = static_cast<const std::int32_t*>(tensors.seqused_k.data);
    const std::int64_t columns = tensors.block_table.shape[1];
    const auto* const offsets = static_cast<const std::int32_t*>(tensors.cu_seqlens_q.data);
    std::set<std::int32_t> pages;
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::int64_t sequence = 0; sequence < 4; ++sequence) {
      pairs.insert({offsets[sequence + 1] - offsets[sequence], used[sequence]});
      const auto* const first = table + sequence * columns;
      if (used[sequence] == 33) {
        EXPECT_FALSE(std::is_sorted(first, first + 5) || std::is_sorted(first, first + 5, std::greater<>()));
      }
      for (std::int64_t place = 0; place < columns; ++place) {
        const std::int32_t page = table[sequence * columns + place];
        EXPECT_EQ(page >= 0 && page < task.problem.pages, place * 8 < used[sequence]);
        if (place * 8 < used[sequence]) {
          EXPECT_TRUE(pages.insert(page).second) << "page " << page << " belongs to two sequences";
        }
      }
    }
    EXPECT_EQ(pairs, (std::set<std::pair<std::int32_t, std::int32_t>>{{1, 33}, {20, 20}, {0, 16}, {3, 1}}));
    const auto& codes = inputs[1].values;
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 0xFF), (task.problem.pages * 8 - 70) * 2 * 64);
    tables.insert({table, table + 4 * columns});
  }
  EXPECT_EQ(tables.size(), 4U);
}

TEST(AttentionInputs, AVariationOfAPoolLeavesUnusedRowsUnused) {
  const Problem problem = problem_in_pages();
  const Operation& operation = find_operation("attention");
  const auto inputs = operation.inputs(problem, Distribution::normal, 3);
  const auto varied = operation.variation(inputs, 2);
  EXPECT_NE(varied[1].values, inputs[1].values);
  for (std::size_t i = 0; i < inputs[1].values.size(); ++i) {
    ASSERT_EQ(varied[1].values[i] & 0x7F, inputs[1].values[i] & 0x7F) << i;
  }
  EXPECT_EQ(tensor_values(varied, "block_table"), tensor_values(inputs, "block_table"));
}

TEST(AttentionInputs, OtherLengthsFitTheSameTensors) {
  for (const Problem& problem : {problem_in_pages(), parse_suite(replaced(good, "queries = [70, 1]\nkeys = 150",
                                                                          "query_lengths = [9, 0, 5]\n"
                                                                          "key_lengths = [20, 9, 40]"),
                                                                 "mine", "mine.toml")
                                                         .problems.front()}) {
    const Operation& operation = find_operation("attention");
    const auto before = operation.inputs(problem, Distribution::normal, 1);
    std::set<std::vector<std::uint8_t>> lengths;
    for (std::uint64_t change = 0; change < 5; ++change) {
      const auto others = operation.rearranged(problem, Distribution::normal, change, 3);
      ASSERT_TRUE(others);
      ASSERT_EQ(others->size(), before.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ((*others)[i].values.size(), before[i].values.size()) << before[i].name;
      }
      lengths.insert(others->at(problem.as<AttentionTask>().problem.page_size > 0 ? 5 : 4).values);
      const auto& task = problem.as<AttentionTask>();
      const auto outputs = operation.outputs(problem);
      compute(task.problem, attention_tensors(task, [&](std::string_view name) {
                const Tensor input = tensor_of(*others, name);
                return input.rank > 0 ? input : tensor_of(outputs, name);
              }));
      const Finding finding = operation.judge(problem, Distribution::normal, *others, {}, 1)->judge(outputs);
      EXPECT_TRUE(finding.correct) << label(problem) << " " << change << ": " << finding.sentence;
    }
    EXPECT_GE(lengths.size(), 4U);
  }
}

TEST(AttentionInputs, DependOnTheSeedAloneAndVary) {
  const Operation& operation = find_operation("attention");
  const auto first = operation.inputs(ragged, Distribution::normal, 3);
  const auto again = operation.inputs(ragged, Distribution::normal, 3);
  const auto other = operation.inputs(ragged, Distribution::normal, 4);
  const auto varied = operation.variation(first, 1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].values, again[i].values);
    EXPECT_NE(first[i].values, other[i].values);
    EXPECT_NE(first[i].values, varied[i].values);
  }
}

TEST(AttentionJudge, AnHonestKernelPassesEveryDistribution) {
  for (const Distribution distribution : {Distribution::normal, Distribution::full_range, Distribution::specials}) {
    const Finding finding =
        judge([](const auto& task, const auto& tensors, int) { compute(task.problem, tensors); }, ragged, distribution);
    EXPECT_TRUE(finding.correct) << name(distribution) << ": " << finding.fault << ", " << finding.sentence;
    EXPECT_GT(finding.worst_ratio, 0);
  }
}

TEST(AttentionJudge, NamesWhatWasLeftOut) {
  const auto with = [](const std::function<void(AttentionProblem&)>& change) {
    return [change](const AttentionTask& task, const AttentionTensors& tensors, int) {
      AttentionProblem changed = task.problem;
      change(changed);
      compute(changed, tensors);
    };
  };
  EXPECT_EQ(judge(with([](auto& p) { p.causal = false; })).fault, "the causal mask left out");
  EXPECT_EQ(judge(with([](auto& p) { p.scale = 1; })).fault, "the scale left out");
  EXPECT_EQ(judge(with([](auto& p) {
              p.causal = false;
              p.window_right = 20;  // 150 queries, 130 keys
            })).fault,
            "the causal mask aligned top-left");
  Problem options = ragged;
  options.as<AttentionTask>().problem.softcap = 0.5F;
  EXPECT_EQ(judge(with([](auto& p) { p.softcap = 0; }), options).fault, "the softcap left out");
  options = ragged;
  options.as<AttentionTask>().problem.window_left = 5;
  EXPECT_EQ(judge(with([](auto& p) { p.window_left = -1; }), options).fault, "the window left out");
}

TEST(AttentionJudge, SeesWhatIsWrongWithPages) {
  const auto changed = [](const std::function<void(AttentionProblem&, AttentionTensors&)>& change) {
    return [change](const AttentionTask& task, AttentionTensors tensors, int) {
      AttentionProblem problem = task.problem;
      change(problem, tensors);
      compute(problem, tensors);
    };
  };
  const Problem problem = problem_in_pages();
  EXPECT_TRUE(judge(changed([](auto&, auto&) {}), problem).correct);
  EXPECT_TRUE(judge(changed([](auto&, auto&) {}), problem, Distribution::specials).correct);
  EXPECT_EQ(judge(changed([](auto& p, auto& t) {
                    p.sinks = false;
                    t.sinks = {};
                  }),
                  problem)
                .fault,
            "the sinks left out");
  EXPECT_EQ(judge(changed([](auto&, auto& t) { t.k_descale = {}; }), problem).fault,
            "the descale of the keys left out");
  EXPECT_EQ(judge(changed([](auto&, auto& t) { t.v_descale = {}; }), problem).fault,
            "the descale of the values left out");
  std::vector<std::int32_t> other;
  const auto with_table = [&](const std::function<std::int32_t(const std::int32_t*, std::int64_t)>& entry) {
    return changed([&other, entry](auto&, auto& t) {
      const auto* const table = static_cast<const std::int32_t*>(t.block_table.data);
      const auto columns = t.block_table.shape[1];
      other.assign(table, table + 4 * columns);
      for (std::int64_t i = 0; i < 4 * columns; ++i) {
        other[static_cast<std::size_t>(i)] = entry(table, i);
      }
      t.block_table.data = other.data();
    });
  };
  // The longest sequence's second page in place of the third: keys of its own, but not those.
  EXPECT_FALSE(judge(with_table([](const std::int32_t* table, std::int64_t i) {
                       return i > 0 && table[i] >= 0 && table[i - 1] >= 0 && table[i - 1] < 11 ? table[i - 1]
                                                                                               : table[i];
                     }),
                     problem)
                   .correct);
  std::vector<std::int32_t> longer;
  EXPECT_FALSE(judge(changed([&](auto&, auto& t) {
                       const auto* const used = static_cast<const std::int32_t*>(t.seqused_k.data);
                       longer.assign(used, used + 4);
                       for (std::int32_t& keys : longer) {
                         keys += keys % 8 == 0 ? 0 : 1;  // into a row of the page that nobody uses
                       }
                       t.seqused_k.data = longer.data();
                     }),
                     problem)
                   .correct);
}

TEST(AttentionJudge, SeesOneElementOneLseOneTileAndWhatIsNotWritten) {
  const auto after = [](const std::function<void(const AttentionTensors&, int)>& spoil) {
    return [spoil](const AttentionTask& task, const AttentionTensors& tensors, int call) {
      compute(task.problem, tensors);
      spoil(tensors, call);
    };
  };
  EXPECT_EQ(judge(after([](const auto& t, int) { element(t, 1, 70, 3) ^= 0x4000; })).fault, "one element off");
  EXPECT_EQ(judge(after([](const auto& t, int) { element(t, 1, 149, 3) ^= 0x4000; })).fault,
            "one element off at the ragged edge");
  EXPECT_EQ(judge(after([](const auto& t, int) { static_cast<float*>(t.lse.data)[140] += 0.01F; })).fault,
            "one element off");
  EXPECT_EQ(judge(after([](const auto& t, int) {
              element(t, 2, 64, 3) ^= 0x4000;
              element(t, 2, 100, 8) ^= 0x4000;
            })).fault,
            one_tile_wrong);
  EXPECT_EQ(judge(after([](const auto& t, int) {
              element(t, 2, 64, 3) ^= 0x4000;
              element(t, 3, 64, 3) ^= 0x4000;
            })).fault,
            wrong_values);
  EXPECT_EQ(judge(after([](const auto& t, int call) {
              std::memset(&element(t, 0, 100, 0), call == 2 ? second_poison : first_poison, 128);
            })).fault,
            "unwritten outputs");
  EXPECT_EQ(judge(after([](const auto& t, int) { element(t, 7, 149, 64) = 0; })).fault, "write past the end");
  EXPECT_EQ(judge(after([](const auto& t, int call) { element(t, 1, 70, 3) ^= call == 2 ? 0x4000 : 0; })).fault,
            "right at first, wrong later");
}

/// Every strategy of this machine's library, on the shapes of the edges suite that take little time.
TEST(AttentionContestants, OfTheCpuAreCorrectAtTheEdges) {
  const auto registry = library_registry(Device::cpu());
  const std::vector<std::string> strategies = registry->strategies("attention");
  ASSERT_FALSE(strategies.empty());
  Suite suite = load_suite("attention_edges");
  std::erase_if(suite.problems, [](const Problem& problem) {
    const AttentionProblem& p = problem.as<AttentionTask>().problem;
    return p.head_dim != 64 || (p.queries * p.keys > 200 * 200 && !p.variable_length);
  });
  EXPECT_GT(suite.problems.size(), 25U);
  suite.distributions = {Distribution::normal, Distribution::specials};
  const auto rig = cpu_rig();
  for (const std::string& strategy : strategies) {
    const GateResult gate =
        judge_correctness(suite, *registry->create({"attention", strategy}), *rig, 5, [](std::size_t, std::size_t) {});
    EXPECT_EQ(gate.outcome, Outcome::passed) << strategy << ": " << gate.sentence;
  }
}

TEST(AttentionContestants, OfTheCpuAreCorrectOverPages) {
  Suite suite = load_suite("attention_paged");
  std::erase_if(suite.problems, [](const Problem& problem) {
    const AttentionProblem& p = problem.as<AttentionTask>().problem;
    return p.heads * p.queries * p.keys * p.head_dim > 5'000'000;
  });
  EXPECT_GT(suite.problems.size(), 15U);
  suite.distributions = {Distribution::specials};
  const auto registry = library_registry(Device::cpu());
  const GateResult gate = judge_correctness(suite, *registry->create({"attention", "blockwise"}), *cpu_rig(), 5,
                                            [](std::size_t, std::size_t) {});
  EXPECT_EQ(gate.outcome, Outcome::passed) << gate.sentence;
}

TEST(AttentionContestants, KnobsAndStrategiesThatDoNotExistAreNamed) {
  const auto registry = library_registry(Device::cpu());
  EXPECT_NO_THROW((void)registry->create({"attention", "blockwise", {{"threads", "2"}}}));
  EXPECT_NE(error_of([&] { (void)registry->create({"attention", "quantum"}); }).find("expected one of blockwise"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)registry->create({"attention", "blockwise", {{"stages", "2"}}});
            }).find("there is no knob stages"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)registry->create({"attention", "blockwise", {{"threads", "many"}}});
            }).find("must be a whole number"),
            std::string::npos);
}

/// What looking closely at four calls of a sample finds, some samples over.
std::string found_in_samples(const Problem& problem, const AttentionKernel& kernel, Distribution distribution) {
  FakeRig rig;
  const AttentionPlanted contestant(kernel);
  const AttentionPlanted baseline(
      [](const AttentionTask& task, const AttentionTensors& tensors, int) { compute(task.problem, tensors); });
  const Environment environment;
  VerifiedCalls calls(problem, distribution, &contestant, baseline, rig, environment, 4, true, 17);
  const SetRange range = calls.plan().ranges().warm;
  for (int sample = 0; sample < 3; ++sample) {
    const Batch batch = range.batch(4);
    calls.prepare(Role::contestant, batch, false);
    for (std::size_t call = 0; call < batch.calls; ++call) {
      calls.contestant()->runner.run({}, batch.set_of(call));
    }
    if (std::string fault = calls.inspect(Role::contestant, batch, true); !fault.empty()) {
      return fault;
    }
  }
  return calls.last_look();
}

TEST(AttentionSamples, HonestOutputsHoldAndOneWrongElementInAWholeOutputDoesNot) {
  const AttentionKernel honest = [](const AttentionTask& task, const AttentionTensors& tensors, int) {
    compute(task.problem, tensors);
  };
  const AttentionKernel one_off = [](const AttentionTask& task, const AttentionTensors& tensors, int) {
    compute(task.problem, tensors);
    element(tensors, 1, 77, 9) ^= 0x8040U;
  };
  const AttentionKernel no_mask = [](const AttentionTask& task, const AttentionTensors& tensors, int) {
    AttentionProblem without = task.problem;
    without.causal = false;
    compute(without, tensors);
  };
  const AttentionProblem shape{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 150, .keys = 180, .causal = true};
  EXPECT_EQ(found_in_samples(problem_in_pages(), honest, Distribution::normal), "");
  EXPECT_NE(found_in_samples(problem_in_pages(), no_mask, Distribution::normal), "");
  for (const bool rows_first : {false, true}) {
    const Problem problem = problem_of(shape, true, rows_first);
    for (const Distribution distribution : {Distribution::normal, Distribution::full_range}) {
      EXPECT_EQ(found_in_samples(problem, honest, distribution), "") << label(problem);
      EXPECT_NE(found_in_samples(problem, one_off, distribution).find("a trusted computation of the same inputs gives"),
                std::string::npos);
      EXPECT_NE(found_in_samples(problem, no_mask, distribution).find(" is "), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace thresher::arena
