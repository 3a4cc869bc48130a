// Times every configuration of the grouped strategies on one GPU, with weights from DRAM, in graphs of a few calls.
// Configurations alternate, so that clocks are the same for all. Some outputs of each are checked against float64.
//
// usage: bench_grouped_gemm [--warm] [--format F] [--tokens F] [--numerics exact|fast] [--down|--plain]
//                           [--strategy NAME] [--knobs "a=1 b=2"]... LIST|CASE...
//
// A list is origin, decode, prefill, scan, experts, rows or all (the first four). A case is EXPERTSxNxK:ROWS with rows
// distributed at random, or with commas between the rows of each expert. --warm compiles the kernels into the cache and
// needs no GPU. --down times the grouped GEMM of the layer whose gate and up have these N and K: it has K and N.
// --plain times the product of the case's one matrix, whose rows a launch knows. The formats are bf16, fp16, nvfp4,
// fp8_tensor, fp8_row and fp8_block. By default, tokens have the weights' format, or fp16 for nvfp4 weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "formats/numbers.hpp"
#include "operand_numbers.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/cuda_programs.hpp"
#include "planner/predict.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"
#include "timed_graph.hpp"

namespace {

using thresher::strategies::gemm::Product;
using namespace thresher;
using namespace thresher::bench;
namespace grouped = strategies::gemm;

constexpr double dram_bytes_per_us = 4.30e6;
constexpr double flops_per_us_16bit = 800e6;
constexpr double flops_per_us_fp8 = 1450e6;
constexpr std::size_t cold_bytes = 240U << 20U;  ///< several times the L2
constexpr int rounds = 15;
/// Equal to the peers' bound (bench/peers/compare.py).
constexpr double error_bound_exact = 0.005;
constexpr double error_bound_fast = 0.1;

struct Case {
  std::string name;
  std::int64_t experts;
  std::int64_t n;
  std::int64_t k;
  std::vector<std::int64_t> rows;  ///< of each expert
};

/// Tokens choose `top` out of `all` experts, of which the first `here` are on this GPU.
std::vector<std::int64_t> routed(std::int64_t tokens, int top, std::int64_t all, std::int64_t here) {
  std::mt19937_64 random(7);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(here));
  std::vector<std::int64_t> experts(static_cast<std::size_t>(all));
  std::iota(experts.begin(), experts.end(), 0);
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (int choice = 0; choice < top; ++choice) {
      const auto left = static_cast<std::uint64_t>(all - choice);
      std::swap(experts[static_cast<std::size_t>(choice)], experts[static_cast<std::size_t>(choice) + random() % left]);
      const std::int64_t expert = experts[static_cast<std::size_t>(choice)];
      if (expert < here) {
        ++rows[static_cast<std::size_t>(expert)];
      }
    }
  }
  return rows;
}

void add_routed(std::vector<Case>& cases, const std::string& name, std::int64_t here, std::int64_t all, int top,
                std::int64_t n, std::int64_t k, std::initializer_list<std::int64_t> tokens) {
  for (const std::int64_t count : tokens) {
    cases.push_back({fmt::format("{} T={}", name, count), here, n, k, routed(count, top, all, here)});
  }
}

/// Eight of the experts have rows, equally many.
Case of_eight(std::int64_t experts, std::int64_t each) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(experts));
  for (std::size_t i = 0; i < 8; ++i) {
    rows[i * static_cast<std::size_t>(experts) / 8] = each;
  }
  return {fmt::format("8 of {} experts, {} rows each", experts, each), experts, 2048, 2048, rows};
}

std::vector<Case> cases_of(const std::string& list) {
  std::vector<Case> cases;
  const bool all = list == "all";
  if (all || list == "origin") {
    cases.push_back({"origin 1", 8, 4096, 7168, {80, 176, 128, 72, 64, 248, 96, 160}});
    cases.push_back({"origin 2", 8, 7168, 2048, {40, 76, 168, 72, 164, 148, 196, 160}});
    cases.push_back({"origin 3", 2, 3072, 4096, {192, 320}});
    cases.push_back({"origin 4", 2, 4096, 1536, {128, 384}});
  }
  if (all || list == "decode") {
    add_routed(cases, "DeepSeek-V3 EP8", 32, 256, 8, 2048, 7168, {1, 32, 128, 512});
    add_routed(cases, "Qwen3-30B", 128, 128, 8, 768, 2048, {1, 16, 64});
    add_routed(cases, "Qwen3-Next", 512, 512, 10, 512, 2048, {16, 64});
    add_routed(cases, "gpt-oss-120b", 128, 128, 4, 2880, 2880, {1, 16});
    add_routed(cases, "Mixtral", 8, 8, 2, 14336, 4096, {1, 16});
  }
  if (all || list == "prefill") {
    add_routed(cases, "DeepSeek-V3 EP8", 32, 256, 8, 2048, 7168, {4096});
    add_routed(cases, "Qwen3-30B", 128, 128, 8, 768, 2048, {1024, 4096});
    add_routed(cases, "Mixtral", 8, 8, 2, 14336, 4096, {128, 1024});
    add_routed(cases, "GLM-4.5-Air", 128, 128, 8, 1408, 4096, {512});
  }
  if (all || list == "scan") {  // 512 experts of which 8 have rows cost no more than 8
    for (const std::int64_t each : {4, 64}) {
      cases.push_back(of_eight(8, each));
      cases.push_back(of_eight(512, each));
    }
  }
  if (list == "experts") {  // the same rows and weights, with a growing number of experts without rows
    for (const std::int64_t experts : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      cases.push_back(of_eight(experts, 64));
    }
  }
  if (list == "rows") {
    for (std::int64_t each = 16; each <= 1024; each += each < 256 ? 16 : 64) {
      cases.push_back(of_eight(8, each));
    }
  }
  return cases;
}

Case parsed_case(const std::string& text) {
  Case parsed{text, 0, 0, 0, {}};
  int used = 0;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ld:%n", &parsed.experts, &parsed.n, &parsed.k, &used) < 3 || used == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no list and no case EXPERTSxNxK:ROWS", text));
  }
  const std::string rows = text.substr(static_cast<std::size_t>(used));
  if (rows.find(',') == std::string::npos) {
    parsed.rows = routed(whole_number(rows, 0), 1, parsed.experts, parsed.experts);
    return parsed;
  }
  for (std::size_t at = 0; at < rows.size(); at = rows.find(',', at) + 1) {
    parsed.rows.push_back(whole_number(std::string_view(rows).substr(at), 0));
    if (rows.find(',', at) == std::string::npos) {
      break;
    }
  }
  parsed.rows.resize(static_cast<std::size_t>(parsed.experts));
  return parsed;
}

/// The options of the command line.
struct Wanted {
  Format weights = Format::bf16;
  Format tokens = Format::bf16;
  bool down = false;
  bool plain = false;
  bool warm = false;
  std::string strategy{};
  Knobs common{};
  std::vector<Knobs> knobs{};
  std::vector<Case> cases{};

  [[nodiscard]] bool is_fast() const {
    const std::string* const numerics = common.find("numerics");
    return numerics != nullptr && *numerics == "fast";
  }
};

GroupedProblem problem_of(const Wanted& wanted, const Case& of) {
  const std::int64_t rows = std::accumulate(of.rows.begin(), of.rows.end(), std::int64_t{0});
  GroupedProblem problem{.experts = of.experts,
                         .rows = std::max<std::int64_t>(rows, 1),
                         .n = wanted.down ? of.k : of.n,
                         .k = wanted.down ? of.n : of.k,
                         .expected_rows = rows,
                         .a = wanted.tokens,
                         .b = wanted.weights,
                         .out = bits(wanted.tokens) == 16 ? wanted.tokens
                                : is_fp8(wanted.tokens)   ? Format::bf16
                                                          : Format::fp16};
  if (!wanted.down && !wanted.plain) {
    problem.activation = Activation{};
  }
  return problem;
}

struct Variant {
  std::string name;
  strategies::PlannedCall call;
};

/// What a strategy plans: of a plain product dense rows.
grouped::ProductProblem planned(const Wanted& wanted, const GroupedProblem& of) {
  grouped::ProductProblem problem(of);
  if (wanted.plain) {
    problem.layout = grouped::ProductRows::dense;
  }
  return problem;
}

std::vector<Variant> variants_of(const Wanted& wanted, const grouped::ProductProblem& problem,
                                 const DeviceSpec& device) {
  std::vector<Variant> variants;
  const std::vector<Knobs> asked = wanted.knobs.empty() ? std::vector<Knobs>{Knobs{}} : wanted.knobs;
  for (const auto* const strategy : grouped::strategies_of(grouped::product_of(problem), DeviceKind::cuda)) {
    if ((!wanted.strategy.empty() && strategy->name() != wanted.strategy) ||
        strategy->unsupported_reason(problem, device)) {
      continue;
    }
    for (Knobs knobs : asked) {
      for (const auto& [name, value] : wanted.common) {
        knobs.set(name, value);
      }
      for (const Knobs& candidate : strategy->candidates(problem, knobs, device)) {
        strategies::PlannedCall call = strategy->plan(problem, candidate, device);
        if (std::none_of(variants.begin(), variants.end(),
                         [&](const Variant& known) { return known.call.knobs == call.knobs; })) {
          variants.push_back({fmt::format("{} {}", strategy->name(), candidate.text()), std::move(call)});
        }
      }
    }
  }
  return variants;
}

/// The operands of one case: as many sets as cold calls need.
struct Data {
  GroupedProblem problem;
  bool plain;
  std::vector<std::int64_t> rows;
  Numbers tokens;
  Numbers gate;
  Numbers up;
  Numbers::OnGpu a;
  std::vector<Numbers::OnGpu> gates{};
  std::vector<Numbers::OnGpu> ups{};
  runtime::DeviceBuffer c{};
  runtime::DeviceBuffer offsets{};

  Data(const GroupedProblem& of, std::vector<std::int64_t> rows_of, bool is_plain)
      : problem(of),
        plain(is_plain),
        rows(std::move(rows_of)),
        tokens(of.a, OperandRole::tokens, {1, of.rows, of.k}, 1.0F, 1),
        gate(of.b, OperandRole::weights, {of.experts, of.n, of.k}, 0.02F, 11),
        up(of.b, OperandRole::weights, {of.experts, of.n, of.k}, 0.02F, 21),
        a(tokens.on_gpu()),
        c(0, static_cast<std::size_t>(of.rows * of.n * bits(of.out) / 8)) {
    const std::size_t one = static_cast<std::size_t>(of.experts * of.n * of.k) * static_cast<std::size_t>(bits(of.b)) /
                            8 * (of.activation ? 2 : 1);
    const std::size_t sets = std::max<std::size_t>(1, (cold_bytes + one - 1) / one);
    for (std::size_t set = 0; set < sets; ++set) {
      gates.push_back(gate.on_gpu());
      ups.push_back(of.activation ? up.on_gpu() : Numbers::OnGpu{});
    }
    std::vector<std::int32_t> starts{0};
    for (const std::int64_t count : rows) {
      starts.push_back(starts.back() + static_cast<std::int32_t>(count));
    }
    offsets = runtime::DeviceBuffer(0, starts.size() * 4);
    runtime::copy(offsets.data(), starts.data(), starts.size() * 4, 0);
  }

  [[nodiscard]] std::array<Tensor, grouped::tensor_count> tensors(std::size_t set) const {
    GroupedTensors of;
    of.a = a.tensor;
    of.c = Tensor::contiguous(c.data(), problem.out, {problem.rows, problem.n}, c.device());
    if (!plain) {
      of.offsets = Tensor::contiguous(offsets.data(), Format::int32, {problem.experts + 1}, c.device());
    }
    return grouped::in_order({gates[set].tensor, ups[set].tensor, {}, {}}, of);
  }

  /// The norm of the error of some outputs over the outputs' norm; infinite where one is NaN.
  [[nodiscard]] double error() const {
    const auto elements = static_cast<std::size_t>(problem.rows * problem.n);
    std::vector<std::uint16_t> out(elements);
    runtime::copy(out.data(), c.data(), elements * 2, 0);
    std::mt19937_64 random(3);
    double of_errors = 0;
    double of_outputs = 0;
    std::int64_t first = 0;
    for (std::size_t expert = 0; expert < rows.size(); first += rows[expert], ++expert) {
      for (int sample = 0; sample < 3 && rows[expert] > 0; ++sample) {
        const auto any = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows[expert]));
        const std::int64_t row = first + (sample == 0 ? rows[expert] - 1 : any);
        const auto n = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.n));
        const double want = output(static_cast<std::int64_t>(expert), row, n);
        const std::uint16_t word = out[static_cast<std::size_t>(row * problem.n + n)];
        const double got = static_cast<double>(problem.out == Format::bf16 ? formats::bf16_to_float(word)
                                                                           : formats::fp16_to_float(word));
        of_errors += (got - want) * (got - want);
        of_outputs += want * want;
      }
    }
    return std::isnan(of_errors) ? INFINITY : std::sqrt(of_errors / std::max(of_outputs, 1e-30));
  }

 private:
  [[nodiscard]] double output(std::int64_t expert, std::int64_t row, std::int64_t n) const {
    double g = 0;
    double u = 0;
    for (std::int64_t k = 0; k < problem.k; ++k) {
      const double token = tokens.at(0, row, k);
      g += token * gate.at(expert, n, k);
      u += problem.activation ? token * up.at(expert, n, k) : 0;
    }
    return problem.activation ? g / (1 + std::exp(-g)) * u : g;
  }
};

/// One variant, captured over all sets of weights.
struct Contender {
  std::string name;
  double predicted;
  double error;
  std::vector<runtime::DeviceBuffer> packed{};
  runtime::DeviceBuffer workspace{};
  std::unique_ptr<TimedGraph> timed{};
};

Contender contender(const Variant& variant, const Data& data, const DeviceSpec& device) {
  Contender made{variant.name, planner::predict(variant.call.work, device).us(), 0};
  const std::size_t sets = data.gates.size();
  for (std::size_t set = 0; set < sets && variant.call.packing != nullptr; ++set) {
    const auto tensors = data.tensors(set);
    made.packed.emplace_back(0, variant.call.packed_bytes(), "packed weights");
    const strategies::CallTensors of{tensors, nullptr, made.packed.back().data()};
    ops::CudaCall(*variant.call.packing, 0, of).run({}, of);
    runtime::synchronize({}, 0);
  }
  const auto packed = [&](std::size_t set) { return made.packed.empty() ? nullptr : made.packed[set].data(); };
  // Each call has its own tensor maps of the weights: one for each set.
  std::vector<ops::CudaCall> of_sets;
  for (std::size_t set = 0; set < sets; ++set) {
    const auto tensors = data.tensors(set);
    of_sets.emplace_back(variant.call, 0, strategies::CallTensors{tensors, nullptr, packed(set)});
  }
  made.workspace = runtime::DeviceBuffer(0, of_sets.front().workspace_bytes());
  const auto run = [&](Stream stream, std::size_t set) {
    const auto tensors = data.tensors(set);
    of_sets[set].run(stream, {tensors, made.workspace.data(), packed(set)});
  };
  runtime::fill_async(data.c.data(), 0xFF, data.c.bytes(), {}, 0);
  run({}, 0);
  runtime::synchronize({}, 0);
  made.error = data.error();
  const std::size_t calls = std::max<std::size_t>(sets, 8) / sets * sets;
  auto graph = runtime::Graph::capture(0, [&](Stream stream) {
    for (std::size_t call = 0; call < calls; ++call) {
      run(stream, call % sets);
    }
  });
  made.timed = std::make_unique<TimedGraph>(TimedGraph{std::move(graph), calls});
  return made;
}

struct Floor {
  double bytes_us;
  double products_us;
};

Floor floor_of(const Wanted& wanted, const GroupedProblem& p, const std::vector<std::int64_t>& rows) {
  const auto active = static_cast<double>(std::count_if(rows.begin(), rows.end(), [](auto r) { return r > 0; }));
  const auto stored = [](Format format, OperandRole role) { return format_traits(format).stored_bits(role) / 8; };
  const double matrices = p.activation ? 2 : 1;
  const auto n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k);
  const double total = static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
  return {(active * matrices * n * k * stored(p.b, OperandRole::weights) +
           total * (k * stored(p.a, OperandRole::tokens) + n * 2)) /
              dram_bytes_per_us,
          2 * matrices * total * n * k / (wanted.is_fast() || is_fp8(p.b) ? flops_per_us_fp8 : flops_per_us_16bit)};
}

void measure(const Wanted& wanted, const Case& of, const DeviceSpec& device) {
  const GroupedProblem problem = problem_of(wanted, of);
  const std::vector<Variant> variants = variants_of(wanted, planned(wanted, problem), device);
  const Data data(problem, of.rows, wanted.plain);
  std::vector<Contender> contenders;
  for (const Variant& variant : variants) {
    contenders.push_back(contender(variant, data, device));
  }
  time_in_turn(contenders, rounds, [](Contender& one) -> TimedGraph& { return *one.timed; });
  const Floor floor = floor_of(wanted, problem, of.rows);
  const auto active = std::count_if(of.rows.begin(), of.rows.end(), [](auto rows) { return rows > 0; });
  const double least = std::max(floor.bytes_us, floor.products_us);
  fmt::print("{}: {} rows, {} of {} experts, N {} K {}: bytes {:.1f} us, products {:.1f} us\n", of.name, problem.rows,
             active, of.experts, problem.n, problem.k, floor.bytes_us, floor.products_us);
  std::stable_sort(contenders.begin(), contenders.end(),
                   [](const Contender& a, const Contender& b) { return a.timed->median() < b.timed->median(); });
  for (const Contender& one : contenders) {
    const double median = one.timed->median();
    const double fastest = *std::min_element(one.timed->us.begin(), one.timed->us.end());
    fmt::print("  {:>8.2f} us  least {:>8.2f}  {:>5.1f} % of the floor  predicted {:>8.2f}  error {:.1e}{}  {}\n",
               median, fastest, 100 * least / median, one.predicted, one.error,
               one.error <= (wanted.is_fast() ? error_bound_fast : error_bound_exact) ? "" : " WRONG", one.name);
  }
  std::fflush(stdout);
}

void warm(const Wanted& wanted) {
  for (const Case& of : wanted.cases) {
    for (const Variant& variant : variants_of(wanted, planned(wanted, problem_of(wanted, of)), device_spec("H200"))) {
      for (const strategies::PlannedCall* call : {&variant.call, variant.call.packing.get()}) {
        for (const strategies::Step& step : call == nullptr ? std::vector<strategies::Step>{} : call->steps) {
          (void)ops::warm_program(std::get<strategies::KernelLaunch>(step).program, "sm_90a");
        }
      }
      fmt::print("{}: {}\n", of.name, variant.name);
    }
  }
}

Wanted parse(const std::vector<std::string>& arguments) {
  Wanted wanted;
  bool has_tokens = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--warm" || word == "--down" || word == "--plain") {
      (word == "--warm" ? wanted.warm : word == "--down" ? wanted.down : wanted.plain) = true;
    } else if (word.starts_with("--")) {
      if (++i == arguments.size()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("{} wants a value", word));
      }
      const std::string& value = arguments[i];
      if (word == "--format") {
        wanted.weights = format_named(value);
        wanted.tokens = has_tokens ? wanted.tokens : wanted.weights == Format::nvfp4 ? Format::fp16 : wanted.weights;
      } else if (word == "--tokens") {
        wanted.tokens = format_named(value);
        has_tokens = true;
      } else if (word == "--numerics") {
        wanted.common.set("numerics", value);
      } else if (word == "--strategy") {
        wanted.strategy = value;
      } else if (word == "--knobs") {
        wanted.knobs.push_back(Knobs::parse(value));
      } else {
        throw Error(ErrorCode::invalid_argument, fmt::format("there is no {}", word));
      }
    } else if (const std::vector<Case> listed = cases_of(word); !listed.empty()) {
      wanted.cases.insert(wanted.cases.end(), listed.begin(), listed.end());
    } else {
      wanted.cases.push_back(parsed_case(word));
    }
  }
  if (wanted.plain &&
      std::any_of(wanted.cases.begin(), wanted.cases.end(), [](const Case& of) { return of.experts != 1; })) {
    throw Error(ErrorCode::invalid_argument, "--plain wants cases of one expert");
  }
  if (wanted.plain && wanted.down) {
    throw Error(ErrorCode::invalid_argument, "--plain and --down are two products: give one of them");
  }
  return wanted;
}

}  // namespace

int main(int argc, char** argv) try {
  const Wanted wanted = parse({argv + 1, argv + argc});
  if (wanted.cases.empty()) {
    fmt::print(stderr,
               "usage: bench_grouped_gemm [--warm] [--down|--plain] [--format F] [--tokens F] [--numerics exact|fast] "
               "[--strategy S] [--knobs \"...\"]... origin|decode|prefill|scan|experts|rows|all|EXPERTSxNxK:ROWS...\n");
    return 2;
  }
  if (wanted.warm) {
    warm(wanted);
    return 0;
  }
  const DeviceSpec device = ops::spec_of(Device::cuda(0));
  for (const Case& of : wanted.cases) {
    measure(wanted, of, device);
  }
  return 0;
} catch (const thresher::Error& error) {
  return thresher::bench::end_with(error);
}
