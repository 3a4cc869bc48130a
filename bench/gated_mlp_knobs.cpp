// Times whole gated MLPs on one GPU with chosen knobs, with weights from DRAM, in graphs of a few calls. Variants
// alternate, so that clocks are the same for all. Results are not checked: tests do that.
//
// usage: bench_gated_mlp_knobs [--format F] [--gate-up "STRATEGY a=1 b=2"]... [--down "STRATEGY a=1 b=2"]... [--rounds
// N]
//                              CASE...
//
// A case is HIDDENxINTERMEDIATE:TOKENS[,TOKENS...]. Its variants are the planner's choice, and that with each given
// strategy in place of the planner's. Weights, tokens and what lies between the products have the format; with NVFP4
// weights, tokens and outputs are BF16.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "arguments.hpp"
#include "operand_numbers.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"
#include "thresher/gated_mlp.hpp"

namespace {

using namespace thresher;
using namespace thresher::bench;

constexpr std::size_t cold_bytes = 240U << 20U;  ///< several times the L2
constexpr std::size_t min_calls = 12;
constexpr auto rest = std::chrono::milliseconds(3);

struct Variant {
  std::string name;
  GatedMlpOptions options{};
};

struct Wanted {
  int rounds = 9;
  Format weights = Format::bf16;
  std::vector<Variant> variants{{"planned"}};
  std::vector<GatedMlpProblem> problems{};
};

/// A layer's tensors; of weights, so many copies that every call reads them from memory.
class Data {
 public:
  explicit Data(const GatedMlpProblem& problem)
      : x_(Numbers(problem.x, OperandRole::tokens, {1, problem.tokens, problem.hidden_size}, 1.0F, 1).on_gpu()),
        out_(0, static_cast<std::size_t>(problem.tokens * problem.hidden_size * 2), "out"),
        problem_(problem) {
    const Numbers wide(problem.gate_up, OperandRole::weights, {1, problem.intermediate_size, problem.hidden_size},
                       0.02F, 11);
    const Numbers narrow(problem.down, OperandRole::weights, {1, problem.hidden_size, problem.intermediate_size}, 0.02F,
                         21);
    const auto bytes =
        static_cast<std::size_t>(3 * problem.hidden_size * problem.intermediate_size * bits(problem.gate_up) / 8);
    for (std::size_t set = 0; set < (cold_bytes + bytes - 1) / bytes; ++set) {
      const auto gate = wide.on_gpu();
      const auto up = wide.on_gpu();
      const auto down = narrow.on_gpu();
      packed_.push_back(
          pack(Device::cuda(0), GatedMlpWeights{matrix(gate.tensor), matrix(up.tensor), matrix(down.tensor)}));
    }
  }
  Data(const Data&) = delete;

  [[nodiscard]] std::size_t sets() const { return packed_.size(); }
  [[nodiscard]] const PackedGatedMlpWeights& weights(std::size_t set) const { return packed_[set]; }
  [[nodiscard]] Tensor x() const { return x_.tensor; }
  [[nodiscard]] Tensor out() const {
    return Tensor::contiguous(out_.data(), Format::bf16, {problem_.tokens, problem_.hidden_size}, out_.device());
  }

 private:
  /// The only matrix of a stack.
  static Tensor matrix(const Tensor& stack) {
    Tensor one = Tensor::contiguous(stack.data, stack.format, {stack.shape[1], stack.shape[2]}, stack.device);
    one.global_scale = stack.global_scale;
    if (stack.scales.data != nullptr) {
      one.describe_scales(OperandRole::weights);
      one.scales.data = stack.scales.data;
    }
    return one;
  }

  Numbers::OnGpu x_;
  runtime::DeviceBuffer out_;
  GatedMlpProblem problem_;
  std::vector<PackedGatedMlpWeights> packed_;
};

/// One variant, captured over all sets of weights.
struct Contender {
  std::string name;
  std::vector<GatedMlp> plans{};
  runtime::DeviceBuffer workspace{};
  std::unique_ptr<runtime::Graph> graph{};
  std::size_t calls = 0;
  std::vector<double> us{};

  Contender(const Variant& variant, const GatedMlpProblem& problem, const Data& data) : name(variant.name) {
    for (std::size_t set = 0; set < data.sets(); ++set) {
      plans.push_back(plan(Device::cuda(0), problem, data.weights(set), variant.options));
    }
    workspace = runtime::DeviceBuffer(0, std::max<std::size_t>(plans.front().workspace_bytes(), 16), "workspace");
    plans.front().run({}, data.x(), data.out(), workspace.data());
    runtime::synchronize({}, 0);
    calls = (min_calls + data.sets() - 1) / data.sets() * data.sets();
    graph = std::make_unique<runtime::Graph>(runtime::Graph::capture(0, [&](Stream stream) {
      for (std::size_t call = 0; call < calls; ++call) {
        plans[call % data.sets()].run(stream, data.x(), data.out(), workspace.data());
      }
    }));
  }

  [[nodiscard]] double median() const {
    std::vector<double> sorted = us;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::vector<Contender> contenders_of(const GatedMlpProblem& problem, const Wanted& wanted, const Data& data) {
  std::vector<Contender> found;
  for (const Variant& variant : wanted.variants) {
    try {
      found.emplace_back(variant, problem, data);
    } catch (const Error& error) {
      fmt::print("  not run: {}: {}\n", variant.name, error.what());
    }
  }
  return found;
}

void measure(const GatedMlpProblem& problem, const Wanted& wanted) {
  const Data data(problem);
  fmt::print("{} tokens, {} to {}\n", problem.tokens, problem.hidden_size, problem.intermediate_size);
  std::vector<Contender> contenders = contenders_of(problem, wanted, data);
  const runtime::OwnedStream stream(0);
  const runtime::Event begin(0);
  const runtime::Event end(0);
  for (int round = -1; round < wanted.rounds; ++round) {
    for (Contender& one : contenders) {
      std::this_thread::sleep_for(rest);
      begin.record(stream.get());
      one.graph->launch(stream.get());
      end.record(stream.get());
      const double us = end.elapsed_us_since(begin) / static_cast<double>(one.calls);
      if (round >= 0) {
        one.us.push_back(us);
      }
    }
  }
  std::stable_sort(contenders.begin(), contenders.end(),
                   [](const Contender& a, const Contender& b) { return a.median() < b.median(); });
  for (const Contender& one : contenders) {
    fmt::print("  {:>8.2f} us  {}\n", one.median(), one.name);
  }
  std::fflush(stdout);
}

void add_cases(Wanted& wanted, const std::string& text) {
  GatedMlpProblem problem;
  problem.gate_up = problem.down = wanted.weights;
  problem.x = problem.intermediate = wanted.weights == Format::nvfp4 ? Format::bf16 : wanted.weights;
  int used = 0;
  if (std::sscanf(text.c_str(), "%ldx%ld:%n", &problem.hidden_size, &problem.intermediate_size, &used) < 2 ||
      used == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no case HIDDENxINTERMEDIATE:TOKENS", text));
  }
  for (std::size_t at = static_cast<std::size_t>(used); at != std::string::npos && at < text.size();) {
    problem.tokens = whole_number(std::string_view(text).substr(at), 1);
    wanted.problems.push_back(problem);
    const std::size_t comma = text.find(',', at);
    at = comma == std::string::npos ? comma : comma + 1;
  }
}

/// "STRATEGY a=1 b=2"
DualGemmOptions options_of(const std::string& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  DualGemmOptions options;
  options.strategy = text.substr(0, space);
  options.knobs = Knobs::parse(text.substr(space));
  return options;
}

Wanted parse(const std::vector<std::string>& arguments) {
  Wanted wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) {
      add_cases(wanted, word);
      continue;
    }
    if (++i == arguments.size()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} wants a value", word));
    }
    const std::string& value = arguments[i];
    Variant variant{fmt::format("{} {}", word.substr(2), value)};
    if (word == "--gate-up") {
      variant.options.gate_up = options_of(value);
      wanted.variants.push_back(variant);
    } else if (word == "--down") {
      variant.options.down = options_of(value);
      wanted.variants.push_back(variant);
    } else if (word == "--format") {
      wanted.weights = format_named(value);
    } else if (word == "--rounds") {
      wanted.rounds = static_cast<int>(whole_number(value, 1));
    } else {
      throw Error(ErrorCode::invalid_argument, fmt::format("there is no {}", word));
    }
  }
  return wanted;
}

}  // namespace

int main(int argc, char** argv) try {
  const Wanted wanted = parse({argv + 1, argv + argc});
  if (wanted.problems.empty()) {
    fmt::print(stderr,
               "usage: bench_gated_mlp_knobs [--format F] [--gate-up \"STRATEGY a=1\"]... [--down \"STRATEGY a=1\"]... "
               "[--rounds N] "
               "HIDDENxINTERMEDIATE:TOKENS[,TOKENS...]...\n");
    return 2;
  }
  for (const GatedMlpProblem& problem : wanted.problems) {
    measure(problem, wanted);
  }
  return 0;
} catch (const thresher::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
