// Times an MoE layer on one GPU, whole and launch by launch, with weights from DRAM, in graphs of a few calls. A launch
// is timed alone, in a graph of copies of it, and by what the layer takes less without it. Results are not
// checked: tests do that.
//
// usage: bench_moe_launches [--format F] [--tokens F] [--numerics exact|fast] [--rounds N] CASE...
//
// A case is EXPERTSxTOP_KxHIDDENxINTERMEDIATE:TOKENS[,TOKENS...]; each token chooses at random. Weights have the format
// --format, x and the intermediate --tokens: by default that of the weights, or bf16 for nvfp4 weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "operand_numbers.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/layer_parts.hpp"
#include "ops/product_choice.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/moe_layer/tensors.hpp"
#include "thresher/error.hpp"
#include "thresher/moe_layer.hpp"
#include "timed_graph.hpp"

namespace {

using namespace thresher;
using namespace thresher::bench;
namespace layer = strategies::moe_layer;

constexpr std::size_t cold_bytes = 240U << 20U;  ///< several times the L2
constexpr std::size_t min_copies = 8;

struct Wanted {
  Format weights = Format::bf16;
  Format tokens = Format::bf16;
  std::string numerics = "exact";
  int rounds = 15;
  std::vector<MoeProblem> problems{};
};

/// `top_k` different experts for each token.
std::vector<std::int32_t> random_choices(const MoeProblem& problem) {
  std::mt19937_64 random(7);
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> experts(static_cast<std::size_t>(problem.experts));
  std::iota(experts.begin(), experts.end(), 0);
  for (std::int64_t token = 0; token < problem.tokens; ++token) {
    for (std::size_t choice = 0; choice < static_cast<std::size_t>(problem.top_k); ++choice) {
      std::swap(experts[choice], experts[choice + random() % (experts.size() - choice)]);
      ids.push_back(experts[choice]);
    }
  }
  return ids;
}

/// One product's weights, as often as cold calls need them, and its calls.
class Product {
 public:
  Product(const GroupedProblem& problem, const Wanted& wanted, std::size_t sets, const ops::CallChange& change)
      : call_(planned(problem, wanted, change)) {
    const Numbers numbers(problem.b, OperandRole::weights, {problem.experts, problem.n, problem.k}, 0.02F, 11);
    for (std::size_t set = 0; set < sets; ++set) {
      gates_.push_back(numbers.on_gpu());
      ups_.push_back(problem.activation ? numbers.on_gpu() : Numbers::OnGpu{});
    }
  }

  /// Loads a call for each set, once the tensors are known.
  void load(const std::function<GroupedTensors()>& tensors, const layer::RoutedTensors& routed) {
    tensors_ = tensors();
    routed_ = routed;
    for (std::size_t set = 0; set < gates_.size(); ++set) {
      const auto all = in_order(set);
      if (call_.packing != nullptr) {
        packed_.emplace_back(0, call_.packed_bytes(), "packed weights");
        const strategies::CallTensors of{all, nullptr, packed_.back().data()};
        ops::CudaCall(*call_.packing, 0, of).run({}, of);
        runtime::synchronize({}, 0);
      }
      calls_.emplace_back(call_, 0, strategies::CallTensors{all, nullptr, packed(set)});
    }
    workspace_ = runtime::DeviceBuffer(0, std::max<std::size_t>(calls_.front().workspace_bytes(), 16));
  }

  [[nodiscard]] const strategies::PlannedCall& call() const { return call_; }
  void run(Stream stream, std::size_t step, std::size_t copy) const {
    const std::size_t set = copy % calls_.size();
    const auto all = in_order(set);
    calls_[set].run(stream, {all, workspace_.data(), packed(set)}, step, step + 1);
  }

 private:
  static strategies::PlannedCall planned(const GroupedProblem& problem, const Wanted& wanted,
                                         const ops::CallChange& change) {
    GroupedOptions options;
    if (problem.b == Format::nvfp4) {
      options.knobs.set("numerics", wanted.numerics);
    }
    return ops::planned_calls(Device::cuda(0), problem, options, {}, change).back().call;
  }
  [[nodiscard]] std::array<Tensor, layer::routed_tensor_count> in_order(std::size_t set) const {
    return layer::in_order({gates_[set].tensor, ups_[set].tensor, {}, {}}, tensors_, routed_);
  }
  [[nodiscard]] void* packed(std::size_t set) const { return packed_.empty() ? nullptr : packed_[set].data(); }

  strategies::PlannedCall call_;
  std::vector<Numbers::OnGpu> gates_;
  std::vector<Numbers::OnGpu> ups_;
  GroupedTensors tensors_;
  layer::RoutedTensors routed_;
  std::vector<runtime::DeviceBuffer> packed_;
  std::vector<ops::CudaCall> calls_;
  runtime::DeviceBuffer workspace_;
};

struct Launch {
  std::string title;
  std::function<void(Stream, std::size_t copy)> enqueue;
};

/// A layer's tensors and launches.
class Layer {
 public:
  Layer(const MoeProblem& problem, const Wanted& wanted)
      : sets_(sets_of(problem)),
        x_(Numbers(problem.x, OperandRole::tokens, {1, problem.tokens, problem.hidden_size}, 1.0F, 1).on_gpu()),
        gate_up_(gate_up_problem(problem), wanted, sets_,
                 [](strategies::PlannedCall call, const ops::ProductProblem& sized) {
                   return layer::with_routing(std::move(call), sized, DeviceKind::cuda);
                 }),
        down_(down_problem(problem), wanted, sets_, {}),
        combine_(layer::combine_call(problem, DeviceKind::cuda), 0, {}) {
    const std::vector<std::int32_t> ids = random_choices(problem);
    const auto choices = static_cast<std::int64_t>(ids.size());
    const Tensor topk_ids = made(Format::int32, {problem.tokens, problem.top_k});
    runtime::copy(topk_ids.data, ids.data(), ids.size() * sizeof ids.front(), 0);
    const std::vector<float> shares(ids.size(), 1.0F / static_cast<float>(problem.top_k));
    const Tensor topk_weights = made(Format::fp32, {problem.tokens, problem.top_k});
    runtime::copy(topk_weights.data, shares.data(), shares.size() * sizeof shares.front(), 0);
    const Tensor inverse = made(Format::int32, {problem.tokens, problem.top_k});
    const Tensor offsets = made(Format::int32, {problem.experts + 1});
    const Tensor row_ids = made(Format::int32, {choices});
    const Tensor rows = made(problem.rows, {choices, problem.hidden_size});
    const Tensor out = made(problem.out, {problem.tokens, problem.hidden_size});
    std::vector<strategies::WorkspacePiece> pieces;
    const ops::Intermediate intermediate(Device::cuda(0), problem.intermediate, problem.intermediate_scale, choices,
                                         problem.intermediate_size, pieces);
    buffers_.emplace_back(0, strategies::total_bytes(pieces), "the intermediate");
    const Tensor hidden = intermediate.tensor(choices, buffers_.back().data());
    gate_up_.load([&] { return GroupedTensors{.a = x_.tensor, .c = hidden, .offsets = offsets, .row_ids = row_ids}; },
                  {topk_ids, inverse});
    down_.load([&] { return GroupedTensors{.a = hidden, .c = rows, .offsets = offsets}; }, {});
    add(gate_up_, "gate and up: ");
    add(down_, "down: ");
    launches_.push_back(
        {"add up the rows", [this, tensors = std::array{rows, inverse, topk_weights, out}](Stream stream, std::size_t) {
           combine_.run(stream, {tensors, nullptr});
         }});
  }
  Layer(const Layer&) = delete;

  [[nodiscard]] const std::vector<Launch>& launches() const { return launches_; }
  [[nodiscard]] std::size_t copies() const { return std::max(min_copies, sets_) / sets_ * sets_; }
  [[nodiscard]] std::string strategies() const {
    return fmt::format("{} {}; {} {}", gate_up_.call().strategy, gate_up_.call().knobs.text(), down_.call().strategy,
                       down_.call().knobs.text());
  }

 private:
  static std::size_t sets_of(const MoeProblem& problem) {
    const auto bytes = static_cast<std::size_t>(3 * problem.experts * problem.hidden_size * problem.intermediate_size *
                                                bits(problem.gate_up) / 8);
    return (cold_bytes + bytes - 1) / bytes;
  }
  Tensor made(Format format, std::initializer_list<std::int64_t> shape) {
    const Tensor like = Tensor::contiguous(nullptr, format, shape);
    buffers_.emplace_back(0, static_cast<std::size_t>(like.elements() * bits(format) / 8), "a tensor");
    return Tensor::contiguous(buffers_.back().data(), format, shape, buffers_.back().device());
  }
  void add(const Product& product, const std::string& whose) {
    for (std::size_t step = 0; step < product.call().steps.size(); ++step) {
      const auto& launch = std::get<strategies::KernelLaunch>(product.call().steps[step]);
      launches_.push_back({whose + launch.title,
                           [&product, step](Stream stream, std::size_t copy) { product.run(stream, step, copy); }});
    }
  }

  std::size_t sets_;
  std::vector<runtime::DeviceBuffer> buffers_;
  Numbers::OnGpu x_;
  Product gate_up_;
  Product down_;
  ops::CudaCall combine_;
  std::vector<Launch> launches_;
};

/// A graph of copies of those launches whose number `takes` takes.
template <class Takes>
TimedGraph graph_of(const Layer& of, const Takes& takes) {
  return {runtime::Graph::capture(0,
                                  [&](Stream stream) {
                                    for (std::size_t copy = 0; copy < of.copies(); ++copy) {
                                      for (std::size_t i = 0; i < of.launches().size(); ++i) {
                                        if (takes(i)) {
                                          of.launches()[i].enqueue(stream, copy);
                                        }
                                      }
                                    }
                                  }),
          of.copies()};
}

void measure(const MoeProblem& problem, const Wanted& wanted) {
  const Layer of(problem, wanted);
  const std::size_t count = of.launches().size();
  for (const Launch& launch : of.launches()) {  // in order: each reads what the one before it left
    launch.enqueue({}, 0);
  }
  runtime::synchronize({}, 0);
  std::vector<TimedGraph> timed;
  timed.reserve(2 * count + 1);
  timed.push_back(graph_of(of, [](std::size_t) { return true; }));
  for (std::size_t launch = 0; launch < count; ++launch) {
    timed.push_back(graph_of(of, [&](std::size_t i) { return i == launch; }));
    timed.push_back(graph_of(of, [&](std::size_t i) { return i != launch; }));
  }
  time_in_turn(timed, wanted.rounds, [](TimedGraph& one) -> TimedGraph& { return one; });
  const double whole = timed[0].median();
  fmt::print("{} experts, top {}, {} to {}, {} tokens, {} x {}: {:.2f} us  [{}]\n", problem.experts, problem.top_k,
             problem.hidden_size, problem.intermediate_size, problem.tokens, name(problem.x), name(problem.gate_up),
             whole, of.strategies());
  for (std::size_t launch = 0; launch < count; ++launch) {
    fmt::print("  alone {:>8.2f} us  of the layer {:>8.2f}  {}\n", timed[2 * launch + 1].median(),
               whole - timed[2 * launch + 2].median(), of.launches()[launch].title);
  }
  std::fflush(stdout);
}

void add_case(Wanted& wanted, const std::string& text) {
  MoeProblem problem;
  int used = 0;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ldx%ld:%n", &problem.experts, &problem.top_k, &problem.hidden_size,
                  &problem.intermediate_size, &used) < 4 ||
      used == 0 || std::min({problem.experts, problem.top_k, problem.hidden_size, problem.intermediate_size}) < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is no case EXPERTSxTOP_KxHIDDENxINTERMEDIATE:TOKENS", text));
  }
  problem.x = problem.intermediate = wanted.tokens;
  problem.gate_up = problem.down = wanted.weights;
  problem.rows = bits(wanted.tokens) == 16 ? wanted.tokens : Format::bf16;
  for (const std::int64_t tokens : whole_numbers(std::string_view(text).substr(static_cast<std::size_t>(used)), 1)) {
    problem.tokens = tokens;
    problem.expected_rows = tokens * problem.top_k;
    wanted.problems.push_back(problem);
  }
}

Wanted parse(std::span<char* const> arguments) {
  Wanted wanted;
  std::vector<std::string> cases;
  std::optional<Format> tokens;
  for_each_argument(
      arguments, [&](const std::string& word) { cases.push_back(word); },
      [&](const std::string& option, const std::string& value) {
        if (option == "--format") {
          wanted.weights = format_named(value);
        } else if (option == "--tokens") {
          tokens = format_named(value);
        } else if (option == "--numerics") {
          wanted.numerics = value;
        } else if (option == "--rounds") {
          wanted.rounds = static_cast<int>(whole_number(value, 1));
        } else {
          return false;
        }
        return true;
      });
  wanted.tokens = tokens.value_or(wanted.weights == Format::nvfp4 ? Format::bf16 : wanted.weights);
  for (const std::string& text : cases) {  // in the formats that stand behind them too
    add_case(wanted, text);
  }
  return wanted;
}

}  // namespace

int main(int argc, char** argv) try {
  const Wanted wanted = parse({argv + 1, argv + argc});
  if (wanted.problems.empty()) {
    fmt::print(stderr,
               "usage: bench_moe_launches [--format F] [--tokens F] [--numerics exact|fast] [--rounds N] "
               "EXPERTSxTOP_KxHIDDENxINTERMEDIATE:TOKENS[,TOKENS...]...\n");
    return 2;
  }
  for (const MoeProblem& problem : wanted.problems) {
    measure(problem, wanted);
  }
  return 0;
} catch (const thresher::Error& error) {
  return thresher::bench::end_with(error);
}
