#include "mutants/pieces.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace thresher::mutants {
namespace {

struct Piece {
  std::string text, before, after;
};

std::string reason_of(const Piece& piece) {
  return misfit(piece.text, piece.text.find(piece.before), piece.before, piece.after);
}

TEST(Pieces, AreWholeExpressions) {
  for (const Piece& piece : std::vector<Piece>{
           {"{\n  return k % block == 0 ? none : last(k);\n}", "k % block == 0", "k % block != 1"},
           {"{\n  return sees_all && !problem.sinks &&\n         fits(problem);\n}", "!problem.sinks", "true"},
           {"{\n  const u32 at = first + row * stride + lane;\n}", "row * stride", "row"},
           {"{\n  const auto up = sums.template chunk<columns, 2>(0);\n}", "sums.template chunk<columns, 2>(0)",
            "sums.template chunk<columns, 2>(8)"},
           {"{\n  return Engine::template of<wide>(tile).later(8);\n}", "Engine::template of<wide>(tile).later(8)",
            "typename Engine::template Of<wide>{Engine::template of<narrow>(tile).bits}"},
           {"{\n  copy(factor, codes ? of_codes : of_floats);\n}", "of_codes", "Range{10.0F, 10.0F}"},
           {"{\n  Statement same(\"? AND id IN (a)\");\n}", "\"? AND id IN (a)\"", "\"? AND id NOT IN (a)\""},
           {"  constexpr int doubled(int x) { return 2 * x; }", "2 * x", "3 * x"},
           {"  Part(int warp)\n      : row_(warp * rows), end_(row_ + rows) {}", "row_ + rows", "row_"},
       }) {
    EXPECT_EQ(reason_of(piece), "") << piece.before;
  }
}

TEST(Pieces, OfExpressionsAreMisfits) {
  for (const Piece& piece : std::vector<Piece>{
           {"return k % block == 0 ? none : last(k);", "k % block == 0 ? none", "k % block != 1 ? none"},
           {"return left > 9 ? 0xFFU : 0U;", "left > 9 ?", "left > 10 ?"},
           {"return sees_all && !problem.sinks && fits(problem);", "sees_all && !problem.sinks &&", "sees_all &&"},
           {"return given(a) || (is_held(a) && is_met(a));", "|| (is_held(a) && is_met(a))", ""},
           {"return factor_of(q) * factor_of(k);", "factor_of(q) *", "1.0F *"},
           {"x = exponent(descale * reduce(dot));", "descale * reduce", "reduce"},
           {"x = from.load(second);", "load(second)", "load(chunk)"},
           {"x = (lane + panel) % warps == own;", "% warps == own", "% warps == own / 2"},
           {"x = a * b + c;", "b + c", "b"},
           {"x = a - b + c;", "b + c", "b"},
           {"x = a + b * c;", "a + b", "a"},
           {"x = !a && b;", "a && b", "a"},
           {"x = a + b;", "a", "{a}"},
           {"x = map({rows, stride, 1});", "{rows, stride, 1}", "{rows, 1, 1}"},
           {"x = map(rows, stride);", "rows, stride", "rows, 1"},
           {"if (!is_new) {\n", "if (!is_new)", "if (false)"},
           {"const u32 code = has_nan ? 127 : 0;", "const u32 code = has_nan ? 127 :", "const u32 code ="},
           {"constexpr u32 bytes = 0x6420;", "bytes = 0x6420", "bytes = 0x6240"},
           {"inline constexpr Range codes{8.0F, 8.0F};", "codes{8.0F, 8.0F}", "codes{10.0F, 10.0F}"},
           {"Statement same(\"a = ? AND id IN (b)\");", "AND id IN", "AND id NOT IN"},
           {"x = a + b;", "a", "a;"},
           {"x = a + b;", "a", ""},
       }) {
    EXPECT_NE(reason_of(piece), "") << piece.before << " becomes " << piece.after;
  }
}

TEST(Pieces, OfWhatIsEvaluatedAsItIsCompiledAreMisfits) {
  for (const Piece& piece : std::vector<Piece>{
           {"{\n  constexpr int rows = 8 * lanes;\n}", "8 * lanes", "lanes"},
           {"{\n  if constexpr (rows > 8) {\n", "rows > 8", "true"},
           {"static_assert(rows > 8);", "rows > 8", "true"},
           {"inline constexpr Range codes{8.0F, 8.0F};", "8.0F", "1.0F"},
           {"{\n  Tile<rows> tile;\n}", "rows", "8"},
       }) {
    EXPECT_EQ(reason_of(piece), "is evaluated as it is compiled") << piece.text;
  }
}

TEST(Pieces, AreWholeStatements) {
  for (const Piece& piece : std::vector<Piece>{
           {"{\n  block::sync();\n}", "block::sync();", ""},
           {"{\n  block::sync();  // all are here; none leaves\n  store(1);\n}",
            "block::sync();  // all are here; none leaves\n  store(1);", "store(1);"},
           {"{\n  Engine::template retire<1>();\n}", "Engine::template retire<1>();", "Engine::template retire<2>();"},
           {"{\n  const int next = of(at);\n  at = next;\n  return at;\n}", "const int next = of(at);\n  at = next;",
            ""},
           {"  ~Known() { known_ = before_; }", "known_ = before_;", "known_ = true;"},
           {"{\n  for (; running > 0; --running) {\n    wait();\n  }\n}",
            "for (; running > 0; --running) {\n    wait();\n  }", "wait();"},
       }) {
    EXPECT_EQ(reason_of(piece), "") << piece.before;
  }
}

TEST(Pieces, OfStatementsAreMisfits) {
  for (const Piece& piece : std::vector<Piece>{
           {"{\n  const u32 begin = piece * size;\n  load(begin);\n}", "const u32 begin = piece * size;",
            "const u32 begin = 0;"},
           {"{\n  const auto [slot, count] = find(key);\n  load(slot);\n}", "const auto [slot, count] = find(key);",
            "const auto [slot, count] = find(0);"},
           {"{\n  const ValidatedPointers of_products;\n  run();\n}", "const ValidatedPointers of_products;",
            "(void)0;"},
           {"inline constexpr int block = 32;\nint of(int x) { return x / block; }", "inline constexpr int block = 32;",
            "inline constexpr int block = 16;"},
           {"  ~Known() { known_ = before_; }", "{ known_ = before_; }", "{ known_ = true; }"},
           {"{\n  x = a + first(b);\n}", "first(b);", "first(a);"},
           {"{\n  if (a) {\n    b();\n  } else {\n    c();\n  }\n}", "if (a) {\n    b();\n  }", ""},
           {"{\n  b();\n}", "b();", "c()"},
       }) {
    EXPECT_NE(reason_of(piece), "") << piece.before << " becomes " << piece.after;
  }
}

}  // namespace
}  // namespace thresher::mutants
