// The [[problem]]s of suites about the grouped products.
#include <algorithm>

#include "arena/dual_gemm/activation_keys.hpp"
#include "arena/dual_gemm/scale_layout_keys.hpp"
#include "arena/grouped_gemm/inputs.hpp"
#include "arena/grouped_gemm/operation.hpp"
#include "arena/grouped_gemm/suite_keys.hpp"
#include "arena/grouped_gemm/task.hpp"

namespace thresher::arena {
namespace {

/// Rows whose experts were drawn for the problems that are there already.
std::int64_t drawn_rows(const std::vector<Problem>& problems) {
  std::int64_t rows = 0;
  std::optional<RoutedTokens> before;
  for (const Problem& problem : problems) {
    const std::optional<RoutedTokens>& routed = problem.as<GroupedTask>().routed;
    rows += routed && routed != before ? routed->tokens * routed->top_k : 0;
    before = routed;
  }
  return rows;
}

/// The counts that are listed, or those that every number of tokens and every routing give.
struct Counts {
  std::vector<std::int64_t> counts;
  std::optional<RoutedTokens> routed;
};

std::vector<Counts> counts_of(const ProblemTable& tables, const std::vector<Problem>& problems) {
  if (tables.has("counts")) {
    std::vector<std::int64_t> counts = tables.extents("counts", 0);
    if (std::ssize(counts) > max_experts) {
      tables.holder("counts").fail("counts",
                                   fmt::format("has {} experts, expected at most {}", counts.size(), max_experts));
    }
    return {{std::move(counts), std::nullopt}};
  }
  const auto [experts, total_experts, top_k, routings] = router_of(tables);
  if (experts == 0) {
    tables.problem.fail("experts", "is missing: say counts, or experts with tokens, top_k and routing");
  }
  std::int64_t drawn = drawn_rows(problems);
  std::vector<Counts> all;
  for (const Routing routing : routings) {
    for (const std::int64_t tokens : tables.extents("tokens", 1)) {
      drawn += tokens * top_k;
      if (drawn > max_drawn_rows) {
        tables.holder("tokens").fail(
            "tokens", fmt::format("makes a suite of more than the {} rows whose experts may be drawn", max_drawn_rows));
      }
      const RoutedTokens routed{tokens, top_k, total_experts, routing};
      all.push_back({routed_counts(routed, experts), routed});
    }
  }
  return all;
}

/// A key of one layout would be passed over where no problem has it.
void check_layout_keys(const ProblemTable& tables, const std::vector<RowLayout>& layouts) {
  const auto check = [&](const char* key, RowLayout layout) {
    if (tables.problem.has(key) && std::find(layouts.begin(), layouts.end(), layout) == layouts.end()) {
      tables.problem.fail(key, fmt::format("is of layout = \"{}\"", name(layout)));
    }
  };
  check("capacity", RowLayout::slots);
  check("row_ids_divisor", RowLayout::gathered);
  check("skipped", RowLayout::gathered);
  if (tables.has("counts")) {
    check("tokens", RowLayout::gathered);
  } else if (tables.has("row_ids_divisor")) {
    tables.holder("row_ids_divisor").fail("row_ids_divisor", "is top_k where tokens are routed: leave it out");
  }
}

void check_task(const ProblemTable& tables, const GroupedTask& task, std::int64_t capacity) {
  const GroupedProblem& p = task.problem;
  if (p.layout == RowLayout::slots && capacity > 0 && capacity < p.rows) {
    tables.holder("capacity").fail("capacity", fmt::format("is {}, but an expert has {} rows", capacity, p.rows));
  }
  const int multiple = std::max(format_traits(p.a).k_multiple, format_traits(p.b).k_multiple);
  if (p.k % multiple != 0) {
    tables.problem.fail("k", fmt::format("is {}, but must be a multiple of {} for these formats", p.k, multiple));
  }
  if (const int of_out = format_traits(p.out).n_multiple; p.n % of_out != 0) {
    tables.problem.fail("n",
                        fmt::format("is {}, but must be a multiple of {} for outputs in {}", p.n, of_out, name(p.out)));
  }
  if (p.layout == RowLayout::gathered && p.tokens == 0) {
    tables.problem.fail("tokens", "is missing: gathered rows are rows of so many tokens");
  }
  check_scale_layout(tables, task.scale_layout, {{p.a, OperandRole::tokens}, {p.b, OperandRole::weights}});
  check_order(tables, task.order, p.b, p.n, task.scale_layout);
}

}  // namespace

/// In the keys of the dual GEMM, and `bias`.
void GroupedOperation::add_dense_problems(const ProblemTable& tables, std::vector<Problem>& problems) const {
  GemmProblem p;
  ScaleLayout layout = ScaleLayout::row_major;
  BiasFormat bias;
  const auto add = [&] {
    p.bias = bias.has_value();
    GroupedTask task = dense_task(p, layout);
    task.bias_format = bias.value_or(Format::bf16);
    check_task(tables, task, 0);
    add_once(tables, "n", problem_of(std::move(task)), problems);
  };
  const auto ms = tables.extents("m", 1);
  const auto ns = tables.extents("n", 1);
  const auto ks = tables.extents("k", 1);
  const auto as = choices<Format>(tables, "a", named(operand_formats), std::nullopt);
  const auto bs = choices<Format>(tables, "b", named(operand_formats), std::nullopt);
  const auto outs = choices<Format>(tables, "out", named(unscaled_output_formats), std::nullopt);
  const auto layouts = scale_layouts_of(tables);
  const auto of_bias = choices<BiasFormat>(tables, "bias", biases, BiasFormat{});
  const auto by_m = [&] { each(ms, p.m, add); };
  const auto by_n = [&] { each(ns, p.n, by_m); };
  const auto by_k = [&] { each(ks, p.k, by_n); };
  const auto by_out = [&] { each(outs, p.out, by_k); };
  const auto by_b = [&] { each(bs, p.b, by_out); };
  const auto by_a = [&] { each(as, p.a, by_b); };
  const auto by_bias = [&] { each(of_bias, bias, by_a); };
  each(layouts, layout, by_bias);
}

void GroupedOperation::add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const {
  if (is_dense()) {
    add_dense_problems(tables, problems);
    return;
  }
  GroupedTask task;
  GroupedProblem& p = task.problem;
  task.margin = integer_or(tables, "margin", 0, 0);
  task.skipped = integer_or(tables, "skipped", 0, 0);
  const std::int64_t capacity = integer_or(tables, "capacity", 0, 0);
  const std::int64_t listed_tokens = tables.has("counts") ? integer_or(tables, "tokens", 1, 0) : 0;
  const std::int64_t divisor = integer_or(tables, "row_ids_divisor", 1, 1);
  p.row_weights = tables.holder("row_weights").boolean_or("row_weights", false);
  const auto all_counts = counts_of(tables, problems);
  const auto ns = tables.extents("n", 1);
  const auto ks = tables.extents("k", 1);
  const auto as = choices<Format>(tables, "a", named(operand_formats), std::nullopt);
  const auto bs = choices<Format>(tables, "b", named(operand_formats), std::nullopt);
  const auto outs = choices<Format>(tables, "out", named(grouped_output_formats), std::nullopt);
  const auto layouts = choices<RowLayout>(tables, "layout", named(all_row_layouts), RowLayout::packed);
  check_layout_keys(tables, layouts);
  const auto scale_layouts = scale_layouts_of(tables);
  const auto of_bias = choices<BiasFormat>(tables, "bias", biases, BiasFormat{});
  std::vector<std::optional<Activation>> activations{std::nullopt};
  std::vector<Order> of_order{std::nullopt};
  if (is_dual()) {
    activations.clear();
    for (const Activation& activation : activations_of(tables)) {
      activations.emplace_back(activation);
    }
    of_order = choices<Order>(tables, "order", orders, Order{});
  }
  BiasFormat bias;
  const auto add = [&] {
    for (const Counts& counts : all_counts) {
      task.counts = counts.counts;
      task.routed = counts.routed;
      p.bias = bias.has_value();
      task.bias_format = bias.value_or(Format::bf16);
      p.rows = p.layout == RowLayout::slots ? capacity : 0;
      p.tokens = p.layout == RowLayout::gathered ? listed_tokens : 0;
      p.row_ids_divisor = p.layout == RowLayout::gathered ? divisor : 1;
      const GroupedTask whole = completed(task);
      check_task(tables, whole, capacity);
      add_once(tables, "n", problem_of(whole), problems);
    }
  };
  const auto by_n = [&] { each(ns, p.n, add); };
  const auto by_k = [&] { each(ks, p.k, by_n); };
  const auto by_out = [&] { each(outs, p.out, by_k); };
  const auto by_b = [&] { each(bs, p.b, by_out); };
  const auto by_a = [&] { each(as, p.a, by_b); };
  const auto by_bias = [&] { each(of_bias, bias, by_a); };
  const auto by_order = [&] { each(of_order, task.order, by_bias); };
  const auto by_activation = [&] { each(activations, p.activation, by_order); };
  const auto by_layout = [&] { each(layouts, p.layout, by_activation); };
  each(scale_layouts, task.scale_layout, by_layout);
}

}  // namespace thresher::arena
