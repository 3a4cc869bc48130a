#include "cli/problem_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "cli/run_output.hpp"
#include "ops/validate_product.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

template <std::size_t count>
Format format_of(const char* option, const std::string& text, const std::array<Format, count>& allowed) {
  std::array<std::string_view, count> names;
  std::transform(allowed.begin(), allowed.end(), names.begin(), [](Format format) { return name(format); });
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is \"{}\": use one of {}", option, text, fmt::join(names, ", ")));
  }
  return allowed[static_cast<std::size_t>(found - names.begin())];
}

std::string one_of_formats() {
  std::vector<std::string_view> names;
  std::transform(operand_formats.begin(), operand_formats.end(), std::back_inserter(names),
                 [](Format format) { return name(format); });
  return fmt::format("{}", fmt::join(names, ", "));
}

std::array<std::int64_t, 3> shape_of(const std::string& text) {
  std::array<std::int64_t, 3> shape{};
  const char* at = text.data();
  const char* end = at + text.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, shape[i]);
    const bool separated = i + 1 < shape.size() ? next != end && *next == 'x' : next == end;
    if (error != std::errc{} || shape[i] < 1 || shape[i] > max_extent || !separated) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("problem is \"{}\": write MxNxK with numbers from 1 to {}, as in 256x4096x7168", text,
                              max_extent));
    }
    at = next + 1;
  }
  return shape;
}

}  // namespace

void ProblemArgument::add_to(CLI::App& command) {
  command.add_option("problem", shape, "MxNxK of the dual GEMM, as in 256x4096x7168")->required();
  command.add_option("--a", a, "Format of the activations: " + one_of_formats())->capture_default_str();
  command.add_option("--b", b, "Format of the weights: " + one_of_formats())->capture_default_str();
  out_option_ = command.add_option(
      "--out", out,
      "Format of the output: fp16, bf16, fp32, or quantized: nvfp4, fp8_tensor, fp8_row, fp8_block; of the "
      "tokens, else of the weights where they have 16 bits, else bf16");
}

DualGemmProblem ProblemArgument::problem() const {
  const auto [m, n, k] = shape_of(shape);
  DualGemmProblem problem{.m = m, .n = n, .k = k};
  problem.a = format_of("--a", a, operand_formats);
  problem.b = format_of("--b", b, operand_formats);
  problem.out =
      out_option_->count() == 0 ? default_out_type(problem.a, problem.b) : format_of("--out", out, output_formats);
  ops::validate(problem);
  return problem;
}

}  // namespace thresher::cli
