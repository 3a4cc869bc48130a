#include "thresher/append.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/attention.hpp"
#include "support/append_case.hpp"
#include "support/attention_case.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

class AppendCase : public test::AppendCase {
 public:
  using test::AppendCase::AppendCase;
  /// Runs it on the CPU and says what is wrong.
  [[nodiscard]] std::string fault(int threads = 2) {
    return fault_after([&] { plan(Device::cpu(), problem, {.threads = threads}).run({}, tensors); });
  }
};

AppendProblem small(Format format = Format::bf16) {
  return {.tokens = 9, .heads = 4, .kv_heads = 2, .head_dim = 64, .format = format, .page_size = 4, .pages = 5};
}

TEST(Append, TurnsAndWritesAsTheDefinitionSays) {
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const RotaryPairs pairs : {RotaryPairs::none, RotaryPairs::halves, RotaryPairs::interleaved}) {
      for (const bool is_fp8 : {false, true}) {
        AppendProblem problem = small(format);
        problem.pairs = pairs;
        problem.value_dim = 128;
        problem.rotary_dim = pairs == RotaryPairs::none ? 0 : 32;
        if (is_fp8) {
          problem.kv_format = Format::fp8_e4m3;
        }
        EXPECT_EQ(AppendCase(problem, is_fp8 ? 32 : 64).fault(), "") << static_cast<int>(pairs) << is_fp8;
      }
    }
  }
}

TEST(Append, TurnsByKnownAngles) {
  AppendProblem problem{.tokens = 1, .head_dim = 64, .format = Format::fp16, .page_size = 1};
  for (const bool is_interleaved : {false, true}) {
    problem.pairs = is_interleaved ? RotaryPairs::interleaved : RotaryPairs::halves;
    AppendCase c(problem);
    c.positions[0] = 3;
    std::fill(c.k.begin(), c.k.end(), formats::float_to_fp16(0.0F));
    c.k[2] = formats::float_to_fp16(1.0F);  // interleaved: x of pair 1; halves: x of pair 2, whose y is column 34
    EXPECT_EQ(c.fault(), "");
    const double angle = 3.0 * std::pow(10000.0, is_interleaved ? -1.0 / 32 : -2.0 / 32);
    const auto key = [&](std::size_t column) { return formats::fp16_to_float(c.k_out[column]); };
    EXPECT_NEAR(key(2), std::cos(angle), 1e-3);
    EXPECT_NEAR(key(is_interleaved ? 3 : 34), std::sin(angle), 1e-3);
    EXPECT_EQ(key(is_interleaved ? 34 : 3), 0.0F);
  }
}

/// A table of the same angles gives the same, and another table something else.
TEST(Append, TakesCosinesAndSinesFromATable) {
  AppendProblem problem = small();
  AppendCase by_angle(problem);
  EXPECT_EQ(by_angle.fault(), "");
  problem.max_position = 4096;
  std::vector<float> table;
  for (int position = 0; position < 4096; ++position) {
    for (const bool is_sine : {false, true}) {
      for (int pair = 0; pair < 32; ++pair) {
        const double angle = position * std::pow(10000.0, -pair / 32.0);
        table.push_back(static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  AppendCase by_table(problem);
  by_table.tensors.cos_sin = Tensor::contiguous(table.data(), Format::fp32, {4096, 64});
  EXPECT_EQ(by_table.fault(), "");
  EXPECT_EQ(by_table.q_out, by_angle.q_out);
  EXPECT_EQ(by_table.k_cache, by_angle.k_cache);
  for (float& value : table) {
    value = 0.25F;
  }
  AppendCase other(problem);
  other.tensors.cos_sin = by_table.tensors.cos_sin;
  EXPECT_EQ(other.fault(), "");
  EXPECT_NE(other.q_out, by_angle.q_out);
}

TEST(Append, WorksInPlaceAndDoesNotDependOnThreads) {
  AppendCase apart(small());
  EXPECT_EQ(apart.fault(7), "");
  AppendCase in_place(small());
  in_place.tensors.q_out.data = in_place.tensors.q.data;
  in_place.tensors.k_out.data = in_place.tensors.k.data;
  EXPECT_EQ(in_place.fault(1), "");
  EXPECT_EQ(in_place.q, apart.q_out);
  EXPECT_EQ(in_place.k, apart.k_out);
  EXPECT_EQ(in_place.k_cache, apart.k_cache);
  AppendCase keys_alone(small());
  keys_alone.tensors.q = keys_alone.tensors.q_out = keys_alone.tensors.k_out = {};
  EXPECT_EQ(keys_alone.fault(), "");
  EXPECT_EQ(keys_alone.k_cache, apart.k_cache);
}

/// What attention then finds in the pages is what was appended.
TEST(Append, AttentionReadsWhatWasAppended) {
  AppendProblem problem = small(Format::fp16);
  AppendCase c(problem);
  std::iota(c.slots.begin(), c.slots.end(), 8);  // pages 2, 3 and 4
  EXPECT_EQ(c.fault(), "");
  AttentionProblem paged{.heads = 4, .kv_heads = 2, .queries = 9, .keys = 12, .causal = true, .variable_length = true};
  paged.page_size = 4;
  paged.pages = 5;
  test::AttentionCase over_pages(paged, test::Order::heads_first, {0, 9}, {9});
  over_pages.block_table = {2, 3, 4};
  over_pages.tensors.q.data = c.q_out.data();
  over_pages.tensors.k.data = c.k_cache.data();
  over_pages.tensors.v.data = c.v_cache.data();
  AttentionProblem plain{.heads = 4, .kv_heads = 2, .queries = 9, .keys = 9, .causal = true, .variable_length = true};
  test::AttentionCase packed(plain, test::Order::heads_first, {0, 9}, {0, 9});
  packed.tensors.q.data = c.q_out.data();
  packed.tensors.k.data = c.k_out.data();
  packed.tensors.v.data = c.v.data();
  plan(Device::cpu(), paged).run({}, over_pages.tensors);
  plan(Device::cpu(), plain).run({}, packed.tensors);
  EXPECT_EQ(over_pages.o, packed.o);
}

std::string append_refusal(const std::function<void(AppendCase&)>& change) {
  AppendProblem problem = small();
  problem.kv_format = Format::fp8_e4m3;
  AppendCase c(problem);
  change(c);
  const std::vector<std::uint8_t> before = c.k_cache;
  try {
    plan(Device::cpu(), c.problem).run({}, c.tensors);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(c.k_cache, before);
    EXPECT_EQ(c.q_out, std::vector<std::uint16_t>(c.q_out.size(), 0x5A5A));
    return error.what();
  }
  return "accepted";
}

TEST(Append, ProblemsThatCannotBeAreRefused) {
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.format = Format::fp32; }),
            "problem.format is fp32, expected fp16 or bf16");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.kv_format = Format::fp16; }),
            "problem.kv_format is fp16, expected bf16 (problem.format) or fp8_e4m3");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.head_dim = 72; }),
            "problem.head_dim is 72, expected a multiple of 16 up to 1024");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.rotary_dim = 33; }),
            "problem.rotary_dim is 33, expected an even number up to problem.head_dim, which is 64");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.theta = 0.0F; }),
            "problem.theta is 0, expected a finite number above 0");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.page_size = 0; }),
            "problem.page_size is 0, expected 1 to 2147483647");
  EXPECT_EQ(append_refusal([](auto& c) {
              c.problem.pairs = RotaryPairs::none;
              c.problem.max_position = 4;
            }),
            "problem.pairs is none, but problem.rotary_dim is 0 and problem.max_position 4: leave both 0");
}

TEST(Append, TensorsAndNumbersThatDoNotFitAreRefusedAndNothingIsWritten) {
  EXPECT_EQ(append_refusal([](auto&) {}), "accepted");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.tokens = 8; }),
            "k has 9 tokens, expected 0 to problem.tokens, which is 8");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.v.shape[0] = 8; }), "v is [8, 2, 64], expected [9, 2, 64]");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.q_out.shape[1] = 2; }), "q_out is [9, 2, 64], expected [9, 4, 64]");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.k_cache.format = Format::bf16; }),
            "k_cache is bf16, expected fp8_e4m3");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.k_cache.strides[0] = 0; }),
            "k_cache has overlapping rows: a stride of 0 where the smaller dimensions reach over 1 elements");
  EXPECT_NE(append_refusal([](auto& c) {
              c.tensors.q_out.data = static_cast<char*>(c.tensors.q.data) + 16;
              c.tensors.q_out.shape[0] = c.tensors.q.shape[0];
            }).find("q_out"),
            std::string::npos);
  EXPECT_EQ(append_refusal([](auto& c) { c.slots[3] = 20; }),
            "slots[3] is 20, expected less than the 20 rows of all pages, or a negative number for no row");
  EXPECT_EQ(append_refusal([](auto& c) { c.slots[3] = c.slots[4] = 7; }).substr(0, 25), "slots name the row 7 twic");
  EXPECT_EQ(append_refusal([](auto& c) { c.positions[8] = -1; }), "positions[8] is -1, expected 0 to 2147483647");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.positions.data = nullptr; }), "positions has a null data pointer");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.slots.bits = 16; }), "slots have 16 bits, expected 32 or 64");
  EXPECT_EQ(append_refusal([](auto& c) { c.k_descale[1] = 0.0F; }),
            "k_descale[1] is 0, expected a finite number above 0");
  EXPECT_EQ(append_refusal([](auto& c) { c.problem.max_position = 100; }), "cos_sin is fp16, expected fp32");
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.cos_sin = c.tensors.k_descale; }),
            "cos_sin is given, but problem.max_position is 0 (no table): leave it empty");
}

/// Queries, keys and values of one product lie between each other, and so may pages of keys and of values.
TEST(Append, RowsMayLieBetweenEachOther) {
  AppendProblem problem = small();
  AppendCase apart(problem);
  EXPECT_EQ(apart.fault(), "");
  AppendCase c(problem);
  const std::int64_t token_columns = (4 + 2 + 2) * 64;
  std::vector<std::uint16_t> product(static_cast<std::size_t>(problem.tokens * token_columns));
  std::int64_t column = 0;
  for (Tensor* tensor : {&c.tensors.q, &c.tensors.k, &c.tensors.v}) {
    const std::int64_t columns = tensor->shape[1] * 64;
    const auto* const from = static_cast<const std::uint16_t*>(tensor->data);
    for (std::int64_t token = 0; token < problem.tokens; ++token) {
      std::copy_n(from + token * columns, columns, &product[static_cast<std::size_t>(token * token_columns + column)]);
    }
    tensor->data = &product[static_cast<std::size_t>(column)];
    tensor->strides[0] = token_columns;
    column += columns;
  }
  c.tensors.q_out = c.tensors.q;
  c.tensors.k_out = c.tensors.k;
  const std::int64_t page = problem.page_size * problem.kv_heads * 64;
  std::vector<std::uint16_t> pages(static_cast<std::size_t>(problem.pages * 2 * page));
  c.tensors.k_cache.data = pages.data();
  c.tensors.v_cache.data = pages.data() + page;
  c.tensors.k_cache.strides[0] = c.tensors.v_cache.strides[0] = 2 * page;
  plan(Device::cpu(), problem).run({}, c.tensors);
  for (std::int64_t token = 0; token < problem.tokens; ++token) {
    EXPECT_TRUE(std::equal(&apart.q_out[static_cast<std::size_t>(token * 4 * 64)],
                           &apart.q_out[static_cast<std::size_t>((token + 1) * 4 * 64 - 1)],
                           &product[static_cast<std::size_t>(token * token_columns)]));
  }
  for (std::int64_t row = 0; row < problem.pages; ++row) {
    const auto* const keys = reinterpret_cast<const std::uint16_t*>(apart.k_cache.data()) + row * page;
    const bool is_written = std::any_of(keys, keys + page, [](auto pattern) { return pattern != 0xA5A5; });
    EXPECT_EQ(is_written, std::any_of(&pages[static_cast<std::size_t>(2 * row * page)],
                                      &pages[static_cast<std::size_t>(2 * row * page)] + page,
                                      [](auto pattern) { return pattern != 0; }));
  }
}

TEST(Append, OutputsThatShareMemoryAreRefused) {
  const auto shares = [](const char* out, const char* other) {
    return fmt::format("{} shares memory with {}, expected an output apart from every operand", out, other);
  };
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.v_cache.data = c.tensors.k_cache.data; }),
            shares("k_cache", "v_cache"));
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.v.data = c.tensors.q_out.data; }), shares("q_out", "v"));
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.k.data = c.tensors.q_out.data; }), shares("q_out", "k"));
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.k_out.data = c.tensors.q_out.data; }), shares("q_out", "k_out"));
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.slots.data = c.tensors.k_cache.data; }), shares("k_cache", "slots"));
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.positions.data = c.tensors.k_out.data; }),
            shares("k_out", "positions"));
  EXPECT_EQ(append_refusal([](auto& c) { c.tensors.v_descale.data = c.tensors.q_out.data; }),
            shares("q_out", "v_descale"));
  EXPECT_EQ(append_refusal([](auto& c) {
              c.problem.max_position = 1;
              c.tensors.cos_sin = Tensor::contiguous(c.k_cache.data(), Format::fp32, {1, 64});
            }),
            shares("k_cache", "cos_sin"));
}

}  // namespace
}  // namespace thresher
