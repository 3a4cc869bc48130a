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
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "operand_numbers.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"
#include "thresher/gated_mlp.hpp"
#include "timed_graph.hpp"

namespace {

using namespace thresher;
using namespace thresher::bench;

constexpr std::size_t cold_bytes = 240U << 20U;  ///< several times the L2
constexpr std::size_t min_calls = 12;

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
  std::unique_ptr<TimedGraph> timed{};

  Contender(const Variant& variant, const GatedMlpProblem& problem, const Data& data) : name(variant.name) {
    for (std::size_t set = 0; set < data.sets(); ++set) {
      plans.push_back(plan(Device::cuda(0), problem, data.weights(set), variant.options));
    }
    workspace = runtime::DeviceBuffer(0, std::max<std::size_t>(plans.front().workspace_bytes(), 16), "workspace");
    plans.front().run({}, data.x(), data.out(), workspace.data());
    runtime::synchronize({}, 0);
    const std::size_t calls = (min_calls + data.sets() - 1) / data.sets() * data.sets();
    auto graph = runtime::Graph::capture(0, [&](Stream stream) {
      for (std::size_t call = 0; call < calls; ++call) {
        plans[call % data.sets()].run(stream, data.x(), data.out(), workspace.data());
      }
    });
    timed = std::make_unique<TimedGraph>(TimedGraph{std::move(graph), calls});
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
  time_in_turn(contenders, wanted.rounds, [](Contender& one) -> TimedGraph& { return *one.timed; });
  std::stable_sort(contenders.begin(), contenders.end(),
                   [](const Contender& a, const Contender& b) { return a.timed->median() < b.timed->median(); });
  for (const Contender& one : contenders) {
    fmt::print("  {:>8.2f} us  {}\n", one.timed->median(), one.name);
  }
  std::fflush(stdout);
}

void add_cases(Wanted& wanted, const std::string& text) {
  GatedMlpProblem problem;
  problem.gate_up = problem.down = wanted.weights;
  problem.x = problem.intermediate = wanted.weights == Format::nvfp4 ? Format::bf16 : wanted.weights;
  int used = 0;
  if (std::sscanf(text.c_str(), "%ldx%ld:%n", &problem.hidden_size, &problem.intermediate_size, &used) < 2 ||
      used == 0 || std::min(problem.hidden_size, problem.intermediate_size) < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no case HIDDENxINTERMEDIATE:TOKENS", text));
  }
  for (const std::int64_t tokens : whole_numbers(std::string_view(text).substr(static_cast<std::size_t>(used)), 1)) {
    problem.tokens = tokens;
    wanted.problems.push_back(problem);
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

Wanted parse(std::span<char* const> arguments) {
  Wanted wanted;
  std::vector<std::string> cases;
  for_each_argument(
      arguments, [&](const std::string& word) { cases.push_back(word); },
      [&](const std::string& option, const std::string& value) {
        if (option == "--gate-up" || option == "--down") {
          Variant& variant = wanted.variants.emplace_back(Variant{fmt::format("{} {}", option.substr(2), value)});
          (option == "--down" ? variant.options.down : variant.options.gate_up) = options_of(value);
        } else if (option == "--format") {
          wanted.weights = format_named(value);
        } else if (option == "--rounds") {
          wanted.rounds = static_cast<int>(whole_number(value, 1));
        } else {
          return false;
        }
        return true;
      });
  for (const std::string& text : cases) {  // in the format that stands behind them too
    add_cases(wanted, text);
  }
  return wanted;
}

}  // namespace

int main(int argc, char** argv) try {
  const Wanted wanted = parse({argv + 1, argv + argc});
  if (wanted.problems.empty()) {
    fmt::print(stderr,
               "usage: bench_gated_mlp_knobs [--format F] [--gate-up \"STRATEGY a=1\"]... [--down \"STRATEGY a=1\"]... "
               "[--rounds N] HIDDENxINTERMEDIATE:TOKENS[,TOKENS...]...\n");
    return 2;
  }
  for (const GatedMlpProblem& problem : wanted.problems) {
    measure(problem, wanted);
  }
  return 0;
} catch (const thresher::Error& error) {
  return thresher::bench::end_with(error);
}
