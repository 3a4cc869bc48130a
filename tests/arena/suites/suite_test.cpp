#include "arena/suites/suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "arena/contestants/registry.hpp"
#include "arena/expect_error.hpp"
#include "arena/gates/match.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operations.hpp"
#include "core/device_spec.hpp"

namespace thresher::arena {
namespace {

const std::string good_suite = R"(title = "Two"
operation = "dual_gemm"
distributions = ["contest"]
[defaults]
a = "nvfp4"
b = "nvfp4"
out = "fp16"
[[problem]]
m = [1, 2]
n = 8
k = [16, 32]
)";

std::string suite_with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string error_in(const std::string& text) {
  return error_of([&] { (void)parse_suite(text, "mine", "mine.toml"); });
}

TEST(Suite, ListsMultiplyAndDefaultsFillIn) {
  const Suite suite = parse_suite(good_suite, "mine", "mine.toml");
  ASSERT_EQ(suite.problems.size(), 4U);
  EXPECT_EQ(label(suite.problems[0]), "1x8x16 nvfp4*nvfp4->fp16");
  EXPECT_EQ(label(suite.problems[1]), "2x8x16 nvfp4*nvfp4->fp16");
  EXPECT_EQ(label(suite.problems[3]), "2x8x32 nvfp4*nvfp4->fp16");
  EXPECT_EQ(suite.title, "Two");
  EXPECT_TRUE(suite.timed);
  EXPECT_EQ(suite.distributions, std::vector{Distribution::contest});
}

TEST(Suite, AProblemOverridesTheDefaults) {
  const Suite suite = parse_suite(
      good_suite + "out = \"fp32\"\nactivation = \"gelu_tanh\"\nscale_layout = \"blocked\"\n", "mine", "mine.toml");
  EXPECT_EQ(dual_gemm(suite.problems[0]).out, Format::fp32);
  EXPECT_EQ(label(suite.problems[0]), "1x8x16 nvfp4*nvfp4->fp32 gelu_tanh blocked");
}

TEST(Suite, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(
      error_in(suite_with(good_suite, "n = 8", "n = 8\ncolour = 3")),
      "mine.toml:11: unknown key `colour` in [problem]; known here: a, activation, alpha, b, k, limit, m, n, out, "
      "scale_layout, up_offset");
  EXPECT_EQ(
      error_in(suite_with(good_suite, "title", "titel")),
      "mine.toml:1: unknown key `titel`; known here: cache, defaults, distributions, operation, problem, timed, title");
  EXPECT_EQ(error_in(suite_with(good_suite, "n = 8", "n = 8.5")),
            "mine.toml:10: `n` in [problem] must be a whole number or a list of them");
  EXPECT_EQ(error_in(suite_with(good_suite, "n = 8", "n = 0")),
            "mine.toml:10: `n` in [problem] is 0, but must lie between 1 and 16777216");
  EXPECT_EQ(error_in(suite_with(good_suite, "16, 32", "16, 24")),
            "mine.toml:11: `k` in [problem] is 24, but must be a multiple of 16 for these formats");
  EXPECT_EQ(error_in(suite_with(good_suite, "a = \"nvfp4\"", "a = \"fp4\"")),
            "mine.toml:5: `a` in [defaults] is \"fp4\", but must be one of fp16, bf16, nvfp4, fp8_tensor, fp8_row, "
            "fp8_block");
  EXPECT_EQ(
      error_in(suite_with(good_suite, "\"contest\"", "\"cotnest\"")),
      "mine.toml:3: `distributions` has \"cotnest\", but must be of contest, full_range, normal, integers, specials");
  EXPECT_EQ(
      error_in(suite_with(good_suite, "dual_gemm", "conv")),
      fmt::format("mine.toml:2: `operation` is \"conv\", but must be one of {}", fmt::join(operation_names(), ", ")));
  EXPECT_EQ(error_in(suite_with(good_suite, "[1, 2]", "[2, 2]")),
            "mine.toml:9: `m` in [problem] makes the problem 2x8x16 nvfp4*nvfp4->fp16 a second time");
  EXPECT_NE(error_in(suite_with(good_suite, "m = [1, 2]", "m = [1, 2")).find("mine.toml:10: this is not TOML"),
            std::string::npos);
}

TEST(Suite, AKeyOfTooManyPartsIsNamed) {
  std::string deep = "a";
  for (int part = 0; part < 40'000; ++part) {
    deep += ".a";
  }
  EXPECT_EQ(error_in("title = \"x\"\n" + deep + " = 1\n"), "mine.toml:2: this key has more than 32 parts");
  EXPECT_EQ(error_in("[" + deep + "]\n"), "mine.toml:1: this key has more than 32 parts");
  EXPECT_EQ(error_in("x = { " + deep + " = 1 }\n"), "mine.toml:1: this key has more than 32 parts");
}

TEST(Suite, DotsInStringsAndCommentsAreNoParts) {
  const std::string dots(100, '.');
  EXPECT_EQ(
      parse_suite(suite_with(good_suite, "m = [1, 2]", "m = [1, 2] # " + dots), "mine", "mine.toml").problems.size(),
      parse_suite(good_suite, "mine", "mine.toml").problems.size());
  for (const std::string quote : {"\"", "'", "\"\"\"", "'''"}) {
    const std::string title = "title = " + quote + dots + quote + "\n";
    EXPECT_EQ(error_in(title + "x = 1\n").find("parts"), std::string::npos) << title;
  }
}

// The parser's behaviour is undefined for some of them, U+FE80 for one.
TEST(Suite, OutsideOfTextsAndCommentsThereIsAsciiAlone) {
  const std::string refused = "this is not TOML: outside of texts and comments there is nothing but ASCII";
  EXPECT_EQ(error_in("\xef\xba\x80 = 1\n"), "mine.toml:1: " + refused);
  EXPECT_EQ(error_in("title = \"x\" \xef\xba\x80\n"), "mine.toml:1: " + refused);
  EXPECT_EQ(error_in("\xef\xbb\xbb"), "mine.toml:1: " + refused);
  EXPECT_EQ(error_in("title = 7'\xef\xba\x80\n"), "mine.toml:1: this is not TOML: a quote stands where no text begins");
  EXPECT_EQ(error_in("title = \"\"\"a\nb\\\n  \xef\xba\x80\"\"\"\n"), "mine.toml:3: " + refused);
  for (const char* const text :
       {"\xef\xbb\xbf# a mark of the order of bytes\n", "title = \"\xef\xba\x80\" # \xef\xba\x80\n",
        "title = '\xef\xba\x80\\'\n", "title = '''\n\xef\xba\x80\\\n\xef\xba\x80'''\n",
        "title = \"\"\"\\\"\xef\xba\x80\\\n  x\"\"\"\n", "title = \"\"\"x\"\"\"\"\"\n"}) {
    EXPECT_EQ(error_in(text).find("ASCII"), std::string::npos) << text << error_in(text);
  }
  for (const char* const text : {"a = 1.\"\"\"\xce\x8c\"\"\"\n", "a = [1, 2.\"\xc3\xa9\"]\n", "a = b=\"\xc3\xa9\"\n",
                                 "a = { b = c=\"\xc3\xa9\" }\n", "a = b[\"\xc3\xa9\"]\n", "a = \"x\" \"\xc3\xa9\"\n",
                                 "a = \"\"\"\\\xc3\xa9\"\"\"\n"}) {
    EXPECT_NE(error_in(text).find("this is not TOML"), std::string::npos) << text;
  }
  for (const char* const text : {"\"k\".'l' = \"\xc3\xa9\"\n", "a = [\n  \"\xc3\xa9\", # \xc3\xa9\n  'x',\n]\n",
                                 "a = { \"k\" = '\xc3\xa9', l = [{}, {b = 1}] }\n",
                                 "[\"h\".i]\na = 1979-05-27T07:32:00Z\n[[j]]\nk = '''\n'\xc3\xa9'''\n"}) {
    EXPECT_EQ(error_in(text).find("this is not TOML"), std::string::npos) << text << error_in(text);
  }
}

TEST(Suite, ListsThatMultiplyToTooManyProblemsAreRefused) {
  std::string many = "[1";
  for (int m = 2; m <= 80; ++m) {
    many += ", " + std::to_string(m);
  }
  many += "]";
  const std::string text = suite_with(suite_with(good_suite, "m = [1, 2]", "m = " + many), "n = 8", "n = " + many);
  EXPECT_NE(error_in(text).find("makes more than the 4096 problems that a suite may have"), std::string::npos)
      << error_in(text);
}

TEST(Suite, MissingPartsAreNamed) {
  EXPECT_EQ(error_in(suite_with(good_suite, "k = [16, 32]", "")), "mine.toml:8: `k` in [problem] is missing");
  EXPECT_EQ(error_in(good_suite.substr(0, good_suite.find("[[problem]]"))),
            "mine.toml:1: `problem` is missing: a suite needs at least one [[problem]]");
  EXPECT_EQ(error_in(suite_with(good_suite, "distributions = [\"contest\"]", "distributions = []")),
            "mine.toml:3: `distributions` must not be an empty list");
}

TEST(Suite, ADefaultThatNoProblemHasIsUnknown) {
  EXPECT_EQ(
      error_in(suite_with(good_suite, "out = \"fp16\"", "out = \"fp16\"\nstages = 4")),
      "mine.toml:8: unknown key `stages` in [defaults]; known here: a, activation, alpha, b, k, limit, m, n, out, "
      "scale_layout, up_offset");
}

TEST(Suite, BuiltInSuitesAreWhatTheyPromise) {
  const Suite origin = load_suite("origin");
  ASSERT_EQ(origin.problems.size(), 4U);
  EXPECT_EQ(label(origin.problems[0]), "256x4096x7168 nvfp4*nvfp4->fp16");
  EXPECT_EQ(label(origin.problems[1]), "512x4096x7168 nvfp4*nvfp4->fp16");
  EXPECT_EQ(label(origin.problems[2]), "256x3072x4096 nvfp4*nvfp4->fp16");
  EXPECT_EQ(label(origin.problems[3]), "512x3072x7168 nvfp4*nvfp4->fp16");
  EXPECT_EQ(origin.distributions, (std::vector{Distribution::contest, Distribution::full_range}));

  const Suite edges = load_suite("edges");
  EXPECT_FALSE(edges.timed);
  EXPECT_EQ(edges.distributions.size(), all_distributions.size());
  std::set<std::int64_t> ms;
  for (const Problem& problem : edges.problems) {
    ms.insert(dual_gemm(problem).m);
    EXPECT_NE(dual_gemm(problem).n % 64, 0);
    EXPECT_NE(dual_gemm(problem).k % 32, 0);
  }
  EXPECT_EQ(ms, (std::set<std::int64_t>{1, 7, 40, 64, 127, 128, 129}));

  for (const std::string& name : built_in_suites()) {
    EXPECT_FALSE(load_suite(name).problems.empty()) << name;
  }
}

/// A strategy that is not made for one of a timed suite's formats is not entered on it.
bool has_contestant(const Suite& suite, const DeviceSpec& card) {
  const std::unique_ptr<Registry> registry = card_registry(card);
  const std::string operation(suite.problems.front().operation().name());
  const std::vector<std::string> strategies = registry->strategies(operation);
  return std::any_of(strategies.begin(), strategies.end(), [&](const std::string& strategy) {
    return unsupported_reason(suite, *registry->create({operation, strategy})).empty();
  });
}

TEST(Suite, EveryOneHasAStrategyOfSomeGpuThatIsMadeForAllOfIt) {
  for (const std::string& name : built_in_suites()) {
    const Suite suite = load_suite(name);
    EXPECT_TRUE(has_contestant(suite, device_spec("H200")) || has_contestant(suite, device_spec("B200"))) << name;
  }
}

TEST(Suite, LongNamesAreCutInSentences) {
  const std::string name(5000, 'x');
  EXPECT_LT(error_in(suite_with(good_suite, "a = \"nvfp4\"", "a = \"" + name + "\"")).size(), 300U);
  EXPECT_LT(error_in("title = \"t\"\noperation = \"" + name + "\"\n").size(), 300U);
}

TEST(Suite, UnknownSuitesNameTheOnesThereAre) {
  EXPECT_EQ(
      error_of([] { (void)load_suite("orgin"); }),
      fmt::format("suite orgin: it is none of the built-in suites {}, and the file cannot be read: No such file or "
                  "directory",
                  fmt::join(built_in_suites(), ", ")));
  EXPECT_NE(error_of([] { (void)load_suite("/"); }).find("not a regular file"), std::string::npos);
}

TEST(Suite, AFileIsFoundByPath) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "tiny.toml";
  std::ofstream(path) << good_suite;
  const Suite suite = load_suite(path.string());
  EXPECT_EQ(suite.name, "tiny");
  EXPECT_EQ(suite.text, good_suite);
}

}  // namespace
}  // namespace thresher::arena
