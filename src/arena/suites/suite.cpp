#include "arena/suites/suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "arena/operation.hpp"
#include "arena/suites/config.hpp"
#include "arena/suites/suite_keys.hpp"
#include "arena/text_file.hpp"
#include "embedded/suite_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

void check_k(const ConfigTable& table, const DualGemmProblem& gemm) {
  const int multiple = std::max(format_traits(gemm.a).k_multiple, format_traits(gemm.b).k_multiple);
  if (gemm.k % multiple != 0) {
    table.fail("k", fmt::format("is {}, but must be a multiple of {} for these formats", gemm.k, multiple));
  }
}

Activation activation_parameters(const ProblemTable& tables) {
  Activation activation;
  const auto read = [&](const std::string& key, float& value) {
    if (const auto number = tables.holder(key).optional_number(key)) {
      value = static_cast<float>(*number);
    }
  };
  read("alpha", activation.alpha);
  read("limit", activation.limit);
  read("up_offset", activation.up_offset);
  if (!(activation.limit > 0)) {
    tables.holder("limit").fail("limit", "must be greater than 0");
  }
  return activation;
}

/// The product of every list in one [[problem]].
void add_dual_gemm_problems(const ProblemTable& tables, std::vector<Problem>& problems) {
  const ConfigTable& table = tables.problem;
  const auto ms = tables.extents("m", 1);
  const auto ns = tables.extents("n", 1);
  const auto ks = tables.extents("k", 1);
  const auto as = choices<Format>(tables, "a", named(operand_formats), std::nullopt);
  const auto bs = choices<Format>(tables, "b", named(operand_formats), std::nullopt);
  const auto outs = choices<Format>(tables, "out", named(output_formats), std::nullopt);
  const auto kinds = choices<ActivationKind>(tables, "activation", named(all_activation_kinds), ActivationKind::silu);
  const auto layouts = choices<ScaleLayout>(tables, "scale_layout", named(all_scale_layouts), ScaleLayout::row_major);
  Problem problem;
  problem.dual_gemm.activation = activation_parameters(tables);
  const auto each = [](const auto& values, auto& place, const auto& body) {
    for (const auto& value : values) {
      place = value;
      body();
    }
  };
  DualGemmProblem& gemm = problem.dual_gemm;
  const auto add = [&] {
    check_k(table, gemm);
    if (std::find(problems.begin(), problems.end(), problem) != problems.end()) {
      table.fail("m", fmt::format("makes the problem {} a second time", label(problem)));
    }
    problems.push_back(problem);
  };
  const auto by_m = [&] { each(ms, gemm.m, add); };
  const auto by_n = [&] { each(ns, gemm.n, by_m); };
  const auto by_k = [&] { each(ks, gemm.k, by_n); };
  const auto by_out = [&] { each(outs, gemm.out, by_k); };
  const auto by_b = [&] { each(bs, gemm.b, by_out); };
  const auto by_a = [&] { each(as, gemm.a, by_b); };
  const auto by_kind = [&] { each(kinds, gemm.activation.kind, by_a); };
  each(layouts, problem.scale_layout, by_kind);
}

std::vector<Distribution> read_distributions(const ConfigTable& top) {
  std::vector<Distribution> distributions;
  for (const std::string& wanted : top.texts("distributions")) {
    const std::optional<Distribution> distribution = distribution_from_name(wanted);
    if (!distribution) {
      std::vector<std::string_view> names;
      std::transform(all_distributions.begin(), all_distributions.end(), std::back_inserter(names),
                     [](Distribution known) { return name(known); });
      top.fail("distributions", fmt::format("has \"{}\", but must be of {}", wanted, fmt::join(names, ", ")));
    }
    distributions.push_back(*distribution);
  }
  return distributions;
}

/// A distribution that no problem can take would be passed over in silence.
void check_offered(const ConfigTable& top, const Suite& suite) {
  const Operation& operation = find_operation(suite.problems.front().operation);
  const auto offered = [&](Distribution distribution) {
    return std::any_of(suite.problems.begin(), suite.problems.end(),
                       [&](const Problem& problem) { return operation.offers(problem, distribution); });
  };
  for (const Distribution distribution : suite.distributions) {
    if (!offered(distribution)) {
      std::vector<std::string_view> names;
      for (const Distribution known : all_distributions) {
        if (offered(known)) {
          names.push_back(name(known));
        }
      }
      top.fail("distributions", fmt::format("has \"{}\", but for these problems there is {}", name(distribution),
                                            fmt::join(names, ", ")));
    }
  }
}

using AddProblems = void (*)(const ProblemTable&, std::vector<Problem>&);
constexpr std::array operations{Named<AddProblems>{"attention", add_attention_problems},
                                Named<AddProblems>{"dual_gemm", add_dual_gemm_problems}};
constexpr std::array caches{Named<bool>{"cold", false}, Named<bool>{"warm", true}};

std::string suite_name(std::string_view path) { return std::filesystem::path(path).stem().string(); }

}  // namespace

Suite parse_suite(std::string_view text, const std::string& name, const std::string& file) {
  const ConfigTable top = ConfigTable::parse(text, file);
  Suite suite;
  suite.name = name;
  suite.text = text;
  suite.title = top.text_or("title", name);
  suite.timed = top.boolean_or("timed", true);
  const auto add_problems = choose(top, "operation", top.text("operation"), operations);
  suite.warm = choose(top, "cache", top.text_or("cache", "cold"), caches);
  suite.distributions = read_distributions(top);
  const std::optional<ConfigTable> defaults = top.optional_table("defaults");
  for (const ConfigTable& problem : top.tables("problem")) {
    add_problems({problem, defaults ? &*defaults : nullptr}, suite.problems);
    problem.reject_unknown();
  }
  if (suite.problems.empty()) {
    top.fail("problem", "is missing: a suite needs at least one [[problem]]");
  }
  check_offered(top, suite);
  if (defaults) {
    defaults->reject_unknown();
  }
  top.reject_unknown();
  return suite;
}

std::vector<std::string> built_in_suites() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded::suite_files()) {
    names.push_back(suite_name(file.name));
  }
  return names;
}

Suite load_suite(const std::string& name_or_path) {
  for (const EmbeddedFile& file : embedded::suite_files()) {
    if (suite_name(file.name) == name_or_path) {
      return parse_suite(file.text, name_or_path, "suites/" + name_or_path + ".toml");
    }
  }
  const std::optional<std::string> text = read_text(name_or_path);
  if (!text) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("suite {}: neither a file that can be read nor one of the built-in suites {}", name_or_path,
                            fmt::join(built_in_suites(), ", ")));
  }
  return parse_suite(*text, suite_name(name_or_path), name_or_path);
}

}  // namespace thresher::arena
