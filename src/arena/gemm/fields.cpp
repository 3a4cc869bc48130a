// The problems of products: in suites, and on a command line, where every expert has as many rows but for one that has
// none.
#include "arena/gemm/fields.hpp"

#include <algorithm>

#include "arena/gemm/inputs.hpp"
#include "arena/gemm/parts.hpp"
#include "arena/gemm/suite_keys.hpp"

namespace thresher::arena {
namespace {

/// Rows whose experts were drawn for the problems that are there already.
std::int64_t drawn_rows(const std::vector<Problem>& problems) {
  std::int64_t rows = 0;
  std::optional<RoutedTokens> before;
  for (const Problem& problem : problems) {
    const std::optional<RoutedTokens>& routed = problem.as<ProductTask>().routed;
    rows += routed && routed != before ? routed->tokens * routed->top_k : 0;
    before = routed;
  }
  return rows;
}

/// The rows of every expert, and where they are from.
struct Counts {
  std::vector<std::int64_t> counts;
  std::optional<RoutedTokens> routed;
};

/// A dense product has one expert, whose rows the key `m` says.
std::vector<Counts> dense_counts(const ProblemTable& tables) {
  std::vector<Counts> all;
  for (const std::int64_t rows : tables.extents("m", 1)) {
    all.push_back({{rows}, std::nullopt});
  }
  return all;
}

/// The counts that are listed, or those that every number of tokens and every routing give.
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

void check_task(const ProblemTable& tables, const ProductTask& task, std::int64_t capacity) {
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

/// As many rows for each expert but the second, which has none.
std::vector<std::int64_t> even_counts(std::int64_t experts, std::int64_t rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(experts), rows);
  if (experts > 2) {
    counts[1] = 0;
  }
  return counts;
}

using ProductField = Field<ProductTask>;

ProductField dense_rows(const char* help) {
  return {.key = "m",
          .help = help,
          .allowed = {},
          .is_extent = true,
          .set = [](ProductTask& task, const std::string& text) { task.counts = {std::stoll(text)}; },
          .text = [](const ProductTask& task) { return std::to_string(task.problem.rows); }};
}

void set_layout(ProductTask& task, const std::string& text) {
  task.problem.layout = value_of(all_row_layouts, text);
  task.problem.tokens = task.problem.layout == RowLayout::gathered ? task.owned_rows() : 0;
  task.problem.rows = 0;
}

void set_rows(ProductTask& task, const std::string& text) {
  task.counts = even_counts(std::ssize(task.counts), std::stoll(text));
  task.problem.rows = 0;
}

void add_group_fields(Fields<ProductTask>& fields) {
  fields.push_back({.key = "layout",
                    .help = "how the rows of the experts lie; packed when left out",
                    .allowed = names_of(all_row_layouts),
                    .set = set_layout,
                    .text = [](const ProductTask& task) { return std::string(name(task.problem.layout)); }});
  fields.push_back({.key = "experts",
                    .help = "experts, all with as many rows but the second, which has none",
                    .allowed = {},
                    .is_extent = true,
                    .set = [](ProductTask& task,
                              const std::string& text) { task.counts = even_counts(std::stoll(text), task.counts[0]); },
                    .text = [](const ProductTask& task) { return std::to_string(task.problem.experts); }});
  fields.push_back(
      {.key = "rows",
       .help = "rows of each expert that has any",
       .allowed = {},
       .is_extent = true,
       .set = set_rows,
       .text = [](const ProductTask& task) { return std::to_string(task.counts.empty() ? 0 : task.counts.front()); }});
}

/// The keys of a grouped product that are no lists.
struct GroupKeys {
  explicit GroupKeys(const ProblemTable& tables)
      : margin(integer_or(tables, "margin", 0, 0)),
        skipped(integer_or(tables, "skipped", 0, 0)),
        capacity(integer_or(tables, "capacity", 0, 0)),
        listed_tokens(tables.has("counts") ? integer_or(tables, "tokens", 1, 0) : 0),
        divisor(integer_or(tables, "row_ids_divisor", 1, 1)),
        row_weights(tables.holder("row_weights").boolean_or("row_weights", false)) {}

  void apply(ProductTask& task) const {
    GroupedProblem& p = task.problem;
    task.margin = margin;
    task.skipped = skipped;
    p.row_weights = row_weights;
    p.rows = p.layout == RowLayout::slots ? capacity : 0;
    p.tokens = p.layout == RowLayout::gathered ? listed_tokens : 0;
    p.row_ids_divisor = p.layout == RowLayout::gathered ? divisor : 1;
  }

  std::int64_t margin;
  std::int64_t skipped;
  std::int64_t capacity;
  std::int64_t listed_tokens;
  std::int64_t divisor;
  bool row_weights;
};

}  // namespace

Fields<ProductTask> product_fields(bool is_dense, bool is_dual) {
  const bool is_dual_gemm = is_dense && is_dual;
  Fields<ProductTask> all{
      choice<ProductTask>("a", "format of a; bf16 when left out", operand_formats, in_problem(&GroupedProblem::a)),
      choice<ProductTask>("b",
                          is_dual_gemm ? "format of b1 and b2; that of a when left out"
                                       : "format of the weights; that of a when left out",
                          operand_formats, in_problem(&GroupedProblem::b)),
      choice<ProductTask>("out", "format of c; bf16 when left out", unscaled_output_formats,
                          in_problem(&GroupedProblem::out))};
  all[0].set = [](ProductTask& task, const std::string& text) {
    task.problem.a = task.problem.b = value_of(operand_formats, text);
  };
  if (is_dual) {
    all.push_back(activation_field<ProductTask>([](auto& task) -> auto& { return *task.problem.activation; }));
    all.back().text = is_dense ? all.back().text : nullptr;
  }
  if (is_dense) {
    all.push_back(dense_rows(is_dual ? "tokens" : "rows"));
  } else {
    add_group_fields(all);
  }
  all.push_back(
      extent<ProductTask>("n", is_dual_gemm ? "outputs, a multiple of 8" : "outputs", in_problem(&GroupedProblem::n)));
  all.push_back(extent<ProductTask>("k", is_dual_gemm ? "a multiple of 16" : "a multiple of 8, of 16 with NVFP4",
                                    in_problem(&GroupedProblem::k)));
  return all;
}

void add_product_problems(bool is_dense, bool is_dual, const ProblemTable& tables, std::vector<Problem>& problems) {
  const Fields<ProductTask> fields = product_fields(is_dense, is_dual);
  const bool is_dual_gemm = is_dense && is_dual;
  const auto keys = is_dense ? std::nullopt : std::optional<GroupKeys>(tables);
  ProductTask task;
  task.is_dense = is_dense;
  GroupedProblem& p = task.problem;
  Counts counts;
  BiasFormat bias;
  Lists lists;
  lists.over("counts", is_dense ? dense_counts(tables) : counts_of(tables, problems), counts);
  read_lists(fields, {"n", "k", "a", "b"}, tables, lists, task);
  if (is_dense) {
    read_lists(fields, {"out"}, tables, lists, task);
  } else {
    lists.over("out", choices<Format>(tables, "out", named(grouped_output_formats), std::nullopt), p.out);
    const auto layouts = choices<RowLayout>(tables, "layout", named(all_row_layouts), RowLayout::packed);
    check_layout_keys(tables, layouts);
    lists.over("layout", layouts, p.layout);
  }
  lists.over("scale_layout", scale_layouts_of(tables), task.scale_layout);
  if (!is_dual_gemm) {
    lists.over("bias", choices<BiasFormat>(tables, "bias", biases, BiasFormat{}), bias);
  }
  if (is_dual) {
    lists.over("activation", activations_of(tables), p.activation);
  }
  if (is_dual && !is_dense) {
    lists.over("order", choices<Order>(tables, "order", orders, Order{}), task.order);
  }
  lists.each({"scale_layout", "layout", "activation", "order", "bias", "a", "b", "out", "k", "n", "counts"}, [&] {
    task.counts = counts.counts;
    task.routed = counts.routed;
    p.bias = bias.has_value();
    task.bias_format = bias.value_or(Format::bf16);
    if (keys) {
      keys->apply(task);
    }
    const ProductTask whole = completed(task);
    check_task(tables, whole, keys ? keys->capacity : 0);
    add_once(tables, is_dual_gemm ? "m" : "n", problem_of(whole), problems);
  });
}

}  // namespace thresher::arena
