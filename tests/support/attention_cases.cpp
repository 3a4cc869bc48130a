// The edge cases of attention. Each must hold on every implementation: the CPU, the emulator, a GPU.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>

#include "support/attention_case.hpp"

namespace thresher::test {
namespace {

using Cases = std::vector<NamedCase>;
using Change = std::function<void(AttentionCase&)>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

void add(Cases& cases, std::string name, const AttentionProblem& problem, const Change& change = {},
         Order order = Order::heads_first) {
  cases.push_back({std::move(name), [=] {
                     auto made = std::make_unique<AttentionCase>(problem, order);
                     if (change) {
                       change(*made);
                     }
                     return made;
                   }});
}

AttentionProblem shape(std::int64_t queries, std::int64_t keys, bool causal = false, std::int64_t head_dim = 64,
                       Format format = Format::fp16) {
  return {.batch = 1,
          .heads = 2,
          .kv_heads = 1,
          .queries = queries,
          .keys = keys,
          .head_dim = head_dim,
          .format = format,
          .causal = causal};
}

void add_shapes(Cases& cases, bool small_only) {
  const std::pair<std::int64_t, std::int64_t> pairs[] = {
      {1, 1},       {1, 339}, {113, 203}, {799, 3}, {113, 113}, {1023, 1023}, {1025, 1025},
      {1024, 1023}, {128, 0}, {0, 128},   {0, 0},   {64, 64},   {128, 256},   {300, 129}};
  for (const auto& [queries, keys] : pairs) {
    if (small_only && queries * keys > 113 * 203) {
      continue;
    }
    for (const bool causal : {false, true}) {
      for (const std::int64_t head_dim : {64, 128}) {
        const Format format = head_dim == 64 ? Format::fp16 : Format::bf16;
        add(cases, fmt::format("q{}_k{}_d{}{}", queries, keys, head_dim, causal ? "_causal" : ""),
            shape(queries, keys, causal, head_dim, format));
      }
    }
  }
}

void add_logits(Cases& cases) {
  add(cases, "every_logit_minus_200000", shape(70, 150), [](AttentionCase& c) {
    for (auto& value : c.q) value = c.narrow(-56.0F);
    for (auto& value : c.k) value = c.narrow(56.0F);
    c.problem.scale = 1.0F;  // -56·56·64 = -200704
  });
  for (const Format format : {Format::fp16, Format::bf16}) {
    add(cases, fmt::format("logits_up_to_10000_{}", name(format)), shape(70, 150, true, 64, format),
        [](AttentionCase& c) { AttentionCase::multiply(c.q, c.problem.format, 2000.0F); });
  }
  for (const float scale : {0.0F, -0.125F, -1.0F, 1.0F}) {
    add(cases, fmt::format("scale_{}", scale), shape(70, 150, true),
        [=](AttentionCase& c) { c.problem.scale = scale; });
  }
  AttentionProblem capped = shape(70, 150, true);
  capped.softcap = 2.0F;
  add(cases, "softcap", capped);
  capped.scale = -1.0F;
  capped.softcap = 30.0F;
  add(cases, "softcap_negative_scale", capped);
  add(cases, "the_masked_keys_have_the_largest_logits", shape(130, 140, true), [](AttentionCase& c) {
    // Key 139 is seen by query 129 alone, key 135 by the last five.
    for (const std::int64_t row : {135, 139}) {
      c.set(c.tensors.k, 0, row, -1, 60.0F);
    }
    for (auto& value : c.q) value = c.narrow(std::abs(formats::fp16_to_float(value)));
  });
}

void add_non_finite(Cases& cases) {
  for (const std::int64_t head_dim : {64, 128}) {
    const std::string tail = fmt::format("_d{}", head_dim);
    for (const float value : {not_a_number, infinity, -infinity}) {
      // With 130 queries and 140 keys query i sees keys 0 … i + 10: key 100 reaches queries 90 … 129 only.
      add(cases, fmt::format("{}_in_a_visible_key{}", value, tail), shape(130, 140, true, head_dim),
          [=](AttentionCase& c) { c.set(c.tensors.k, 0, 100, 5, value); });
      add(cases, fmt::format("{}_in_a_visible_value{}", value, tail), shape(130, 140, true, head_dim),
          [=](AttentionCase& c) {
            c.set(c.tensors.v, 0, 100, 5, value);
            c.problem.scale = 0.01F;  // weights that float32 and 16 bits can all represent
          });
    }
    AttentionProblem window = shape(130, 140, false, head_dim);
    window.window_left = 7;
    window.window_right = 9;
    add(cases, fmt::format("nan_outside_the_window{}", tail), window, [](AttentionCase& c) {
      c.set(c.tensors.k, 0, 60, -1, not_a_number);
      c.set(c.tensors.v, 0, 61, -1, not_a_number);
    });
    add(cases, fmt::format("only_minus_infinite_logits{}", tail), shape(20, 30, true, head_dim), [](AttentionCase& c) {
      for (auto& value : c.q) value = c.narrow(1.0F);
      for (std::int64_t row = 0; row < 15; ++row) {
        c.set(c.tensors.k, 0, row, 3, -infinity);  // queries 0 … 4 see nothing else
      }
    });
  }
}

void add_options(Cases& cases) {
  for (const bool causal : {false, true}) {
    for (const auto& [left, right] :
         {std::pair{0, 0}, std::pair{5, 3}, std::pair{-1, 2}, std::pair{40, -1}, std::pair{100, 0}, std::pair{0, -1}}) {
      AttentionProblem problem = shape(150, 190, causal);
      problem.window_left = left;
      problem.window_right = right;
      add(cases, fmt::format("window_{}_{}{}", left, right, causal ? "_causal" : ""), problem);
    }
  }
  AttentionProblem narrow_window = shape(200, 60);
  narrow_window.window_left = 10;
  narrow_window.window_right = 20;
  add(cases, "window_with_rows_that_see_no_key", narrow_window);
  AttentionProblem group = shape(33, 65, true);
  group.batch = 2;
  group.heads = 14;
  group.kv_heads = 2;
  add(cases, "seven_query_heads_a_key_head", group);
  for (const std::int64_t head_dim : {64, 128}) {
    AttentionProblem strided = shape(70, 150, true, head_dim, Format::bf16);
    strided.batch = 2;
    strided.heads = 4;
    strided.kv_heads = 2;
    add(cases, fmt::format("rows_first_d{}", head_dim), strided, {}, Order::rows_first);
  }
}

void add_variable_length(Cases& cases) {
  const std::vector<std::int32_t> q{0, 0, 113, 113, 114, 250, 250};
  const std::vector<std::int32_t> k{0, 17, 220, 260, 260, 389, 389};  // a sequence without queries, one without keys
  for (const bool causal : {false, true}) {
    for (const std::int64_t head_dim : {64, 128}) {
      AttentionProblem problem = shape(250, 389, causal, head_dim);
      problem.batch = 6;
      problem.variable_length = true;
      const std::string tail = fmt::format("_d{}{}", head_dim, causal ? "_causal" : "");
      cases.push_back({fmt::format("variable_length{}", tail),
                       [=] { return std::make_unique<AttentionCase>(problem, Order::heads_first, q, k); }});
      cases.push_back({fmt::format("variable_length_nan_in_a_neighbour{}", tail), [=] {
                         auto made = std::make_unique<AttentionCase>(problem, Order::heads_first, q, k);
                         for (std::int64_t row = 220; row < 260; ++row) {  // keys of the sequence without queries
                           made->set(made->tensors.k, 0, row, -1, not_a_number);
                           made->set(made->tensors.v, 0, row, -1, not_a_number);
                         }
                         return made;
                       }});
    }
  }
}

/// Queries and keys of each sequence.
struct Lengths {
  std::vector<std::int32_t> queries;
  std::vector<std::int32_t> keys;
};

/// Decode beside chunks of a prompt; no keys, no queries, more queries than keys, and pages that are just full.
const Lengths mixed{{1, 3, 0, 1, 20, 2, 1}, {33, 16, 40, 0, 50, 1, 64}};

std::vector<std::int32_t> offsets(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> all{0};
  std::partial_sum(lengths.begin(), lengths.end(), std::back_inserter(all));
  return all;
}

/// `problem` with the mixed lengths in pages of `page_size`, and some pages more than they take.
AttentionProblem in_pages(AttentionProblem problem, std::int64_t page_size) {
  problem.variable_length = true;
  problem.batch = static_cast<std::int64_t>(mixed.queries.size());
  problem.queries = offsets(mixed.queries).back();
  problem.keys = 70;
  problem.page_size = page_size;
  problem.pages = 3;
  for (const std::int64_t keys : mixed.keys) {
    problem.pages += (keys + page_size - 1) / page_size;
  }
  return problem;
}

void add_paged(Cases& cases, const std::string& title, const AttentionProblem& problem, const Change& change = {}) {
  cases.push_back({title, [=] {
                     auto made = std::make_unique<AttentionCase>(problem, Order::heads_first, offsets(mixed.queries),
                                                                 mixed.keys);
                     if (change) {
                       change(*made);
                     }
                     return made;
                   }});
}

void add_pages(Cases& cases) {
  const AttentionProblem plain{.heads = 4, .kv_heads = 2, .causal = true};
  for (const std::int64_t page_size : {1, 7, 16, 256}) {
    add_paged(cases, fmt::format("pages_of_{}", page_size), in_pages(plain, page_size));
  }
  AttentionProblem wide{.heads = 8, .kv_heads = 1, .head_dim = 256, .format = Format::bf16, .causal = true};
  wide.softcap = 20.0F;
  wide.window_left = 30;
  add_paged(cases, "pages_d256_window_softcap", in_pages(wide, 16));
  add_paged(cases, "pages_of_keys_and_values_side_by_side", in_pages(plain, 16), [](AttentionCase& c) {
    const std::int64_t row = c.tensors.k.strides[1];
    std::vector<std::uint16_t> both;
    for (std::int64_t i = 0; i < c.problem.pages * c.problem.page_size; ++i) {
      both.insert(both.end(), c.k.begin() + i * row, c.k.begin() + (i + 1) * row);
      both.insert(both.end(), c.v.begin() + i * row, c.v.begin() + (i + 1) * row);
    }
    c.k = std::move(both);
    c.tensors.k.data = c.k.data();
    c.tensors.v.data = c.k.data() + row;
    for (Tensor* const tensor : {&c.tensors.k, &c.tensors.v}) {
      tensor->strides[0] *= 2;
      tensor->strides[1] *= 2;
    }
  });
}

void add_sinks(Cases& cases) {
  for (const Format format : {Format::fp16, Format::bf16}) {
    AttentionProblem problem = shape(40, 90, true, 64, format);
    problem.sinks = true;
    problem.window_left = 20;
    add(cases, fmt::format("sinks_{}", name(format)), problem, [](AttentionCase& c) {
      c.sinks = {12.0F, -infinity};  // larger than every logit; none
    });
  }
  AttentionProblem unseen = shape(200, 60);
  unseen.sinks = true;
  unseen.softcap = 3.0F;
  unseen.window_left = 10;
  unseen.window_right = 20;
  add(cases, "sinks_of_rows_that_see_no_key", unseen, [](AttentionCase& c) {
    c.sinks = {7.0F, -4.0F};  // beyond the softcap
  });
  AttentionProblem paged{.heads = 8, .kv_heads = 1, .format = Format::bf16, .causal = true, .window_left = 25};
  paged.sinks = true;
  add_paged(cases, "pages_sinks_window", in_pages(paged, 16));
}

void add_fp8(Cases& cases) {
  AttentionProblem fixed{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 20, .keys = 150, .causal = true};
  fixed.kv_format = Format::fp8_e4m3;
  add(cases, "fp8_keys", fixed);
  add(cases, "fp8_keys_without_descales", fixed, [](AttentionCase& c) {
    c.tensors.k_descale = {};
    c.tensors.v_descale = {};
  });
  AttentionProblem queries = fixed;
  queries.q_format = Format::fp8_e4m3;
  add(cases, "fp8_queries", queries, {}, Order::rows_first);
  add(cases, "fp8_queries_without_descales", queries, [](AttentionCase& c) {
    c.tensors.q_descale = {};
    c.tensors.k_descale = {};
  });
  AttentionProblem paged{.heads = 4, .kv_heads = 2, .head_dim = 128, .format = Format::bf16, .causal = true};
  paged.kv_format = Format::fp8_e4m3;
  AttentionProblem paged_queries = paged;
  paged_queries.q_format = Format::fp8_e4m3;
  add_paged(cases, "pages_fp8_queries_one_descale", in_pages(paged_queries, 16),
            [](AttentionCase& c) { c.tensors.q_descale.strides = {}; });
  add_paged(cases, "pages_fp8_keys", in_pages(paged, 16));
  add_paged(cases, "pages_fp8_keys_one_descale", in_pages(paged, 16), [](AttentionCase& c) {
    c.tensors.k_descale.strides = {};
    c.tensors.v_descale.strides = {};
  });
}

void add_value_dims(Cases& cases) {
  AttentionProblem prefill = shape(33, 65, true, 192, Format::bf16);
  prefill.value_dim = 128;
  add(cases, "d192_values_128", prefill);
  add(cases, "d192_values_128_rows_first", prefill, {}, Order::rows_first);
  AttentionProblem latent{.heads = 5, .head_dim = 576, .value_dim = 512, .format = Format::bf16, .causal = true};
  add_paged(cases, "pages_d576_values_512", in_pages(latent, 64));
  AttentionProblem wider = shape(20, 40, false, 64);
  wider.value_dim = 256;
  add(cases, "d64_values_256", wider);
  add(cases, "d256", shape(70, 150, true, 256));
}

void add_all_together(Cases& cases) {
  AttentionProblem problem{.heads = 6, .kv_heads = 2, .head_dim = 256, .value_dim = 128, .format = Format::bf16};
  problem.kv_format = Format::fp8_e4m3;
  problem.scale = -0.1F;
  problem.window_left = 30;
  problem.window_right = 2;
  problem.softcap = 5.0F;
  problem.sinks = true;
  add_paged(cases, "all_together", in_pages(problem, 7));
}

}  // namespace

std::vector<NamedCase> attention_width_cases() {
  Cases cases;
  for (const auto& [head_dim, value_dim] : {std::pair{256, 256}, std::pair{192, 128}, std::pair{64, 192}}) {
    const std::string title = fmt::format("d{}_values_{}", head_dim, value_dim);
    AttentionProblem problem = shape(300, 459, true, head_dim, Format::bf16);
    problem.value_dim = value_dim;
    add(cases, title, problem, [](AttentionCase& c) { c.set(c.tensors.v, 0, 400, 7, not_a_number); });
    AttentionProblem few = problem;
    few.queries = 33;
    few.window_left = 50;
    add(cases, title + "_few_queries", few, {}, Order::rows_first);
    AttentionProblem lengths = problem;
    lengths.batch = 4;
    lengths.variable_length = true;
    lengths.softcap = 3.0F;
    cases.push_back({title + "_lengths", [=] {
                       return std::make_unique<AttentionCase>(lengths, Order::heads_first,
                                                              std::vector<std::int32_t>{0, 0, 163, 164, 300},
                                                              std::vector<std::int32_t>{0, 17, 220, 320, 459});
                     }});
  }
  return cases;
}

std::vector<NamedCase> attention_serving_cases() {
  Cases cases;
  add_pages(cases);
  add_sinks(cases);
  add_fp8(cases);
  add_value_dims(cases);
  add_all_together(cases);
  return cases;
}

std::vector<NamedCase> attention_edge_cases(bool small_only) {
  Cases cases;
  add_shapes(cases, small_only);
  add_logits(cases);
  add_non_finite(cases);
  add_options(cases);
  add_variable_length(cases);
  return cases;
}

}  // namespace thresher::test
