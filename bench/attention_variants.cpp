// Checks and times variants of the attention strategies side by side on one GPU, inputs warm, in graphs of many calls.
// Variants alternate, so that clocks are the same for all.
//
// usage: bench_attention_variants --warm               compiles every kernel into the cache; needs no GPU
//        bench_attention_variants split [--causal]     the origin's problem, in ordinary and in dependent launch
//        bench_attention_variants pipelined [--causal] long sequences of head dimensions 64, 128 and 256
//        bench_attention_variants codes [--causal]     the same with queries, keys and values in FP8, beside 16 bits
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "ops/attention_call.hpp"
#include "ops/cuda_programs.hpp"
#include "reference/attention_rows.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/attention.hpp"
#include "thresher/error.hpp"

namespace {

using namespace thresher;

constexpr int rounds = 31;
constexpr double budget_operations = 2e9;  ///< of the definition, in float64

struct Variant {
  std::string name;
  Knobs knobs;
  bool in_16_bits = false;  ///< the same problem with 16-bit queries, keys and values
};

/// A problem, the variants of one strategy for it, and the number of calls of each in a graph.
struct Field {
  std::string strategy;
  AttentionProblem problem;
  std::vector<Variant> variants;
  int calls;
  bool dependent;  ///< also times programmatic dependent launch
};

/// The unchanged kernel, and one change after another.
class Changes {
 public:
  Changes(const char* name, Knobs knobs) : knobs_(std::move(knobs)) { variants.push_back({name, knobs_}); }
  void then(const char* name, const char* knob, int value) {
    knobs_.set(knob, std::to_string(value));
    variants.push_back({name, knobs_});
  }
  std::vector<Variant> variants;

 private:
  Knobs knobs_;
};

Field split_field(bool causal) {
  Changes all("general", {{"parts", "1"},
                          {"meet_early", "0"},
                          {"narrow_exchange", "0"},
                          {"alone", "0"},
                          {"inspect_early", "0"},
                          {"whole", "0"}});
  if (!causal) {
    all.then("+ whole tiles", "whole", 1);
  }
  all.then("+ parts of 64 keys", "parts", 2);
  all.then("+ parts of 32 keys", "parts", 4);
  if (!causal) {
    all.then("+ early maximum", "inspect_early", 1);
  }
  all.then("+ early meeting", "meet_early", 1);
  all.then("+ 16-bit exchange", "narrow_exchange", 1);
  all.then("+ alone", "alone", 1);
  return {"split",
          {.heads = 8, .kv_heads = 8, .queries = 512, .keys = 512, .head_dim = 64, .causal = causal},
          all.variants,
          200,
          true};
}

std::vector<Variant> stream_variants(int head_dim) {
  std::vector<Variant> list{{"default", {}}};
  if (head_dim == 64) {
    list.push_back({"base descriptors", {{"base_descriptors", "1"}}});
    list.push_back({"hold softmax", {{"hold_softmax", "1"}}});
    list.push_back({"two warpgroups", {{"math_warpgroups", "2"}, {"queries_in_registers", "1"}}});
    list.push_back({"three stages", {{"stages", "3"}}});
    list.push_back({"96 keys", {{"keys", "96"}}});
  } else if (head_dim == 256) {
    list.push_back({"descriptors by themselves", {{"base_descriptors", "0"}}});
    list.push_back({"softmax not held", {{"hold_softmax", "0"}}});
    list.push_back({"no turns", {{"take_turns", "0"}}});
    list.push_back({"64 keys", {{"keys", "64"}}});
    list.push_back({"cluster of two", {{"multicast", "2"}}});
    list.push_back({"cluster of two, no turns", {{"multicast", "2"}, {"take_turns", "0"}}});
  } else {
    list.push_back({"descriptors by themselves", {{"base_descriptors", "0"}}});
    list.push_back({"cluster of two", {{"multicast", "2"}}});
    list.push_back({"cluster of two, no turns", {{"multicast", "2"}, {"take_turns", "0"}}});
    list.push_back({"no turns", {{"take_turns", "0"}}});
    list.push_back({"112 keys", {{"keys", "112"}}});
  }
  return list;
}

Field stream_field(int head_dim, bool causal) {
  const std::int64_t heads = 2048 / head_dim;
  return {"pipelined",
          {.batch = 4,
           .heads = heads,
           .kv_heads = heads,
           .queries = 4096,
           .keys = 4096,
           .head_dim = head_dim,
           .format = Format::bf16,
           .causal = causal},
          stream_variants(head_dim),
          4,
          false};
}

AttentionProblem in_16_bits(AttentionProblem problem) {
  problem.q_format.reset();
  problem.kv_format.reset();
  return problem;
}

Field codes_field(int head_dim, bool causal) {
  Field field = stream_field(head_dim, causal);
  field.problem.q_format = field.problem.kv_format = Format::fp8_e4m3;
  field.variants = {{"16 bits", {}, true}, {"default", {}}};
  const auto add = [&](const std::string& name, Knobs knobs) { field.variants.push_back({name, std::move(knobs)}); };
  const std::vector<const char*> sizes = head_dim == 64    ? std::vector{"96", "128", "192"}
                                         : head_dim == 128 ? std::vector{"64", "96", "128"}
                                                           : std::vector{"64", "96"};
  for (const char* const keys : sizes) {
    add(fmt::format("{} keys", keys), {{"keys", keys}});
  }
  add("turns", {{"take_turns", "1"}});
  add("descriptors by themselves", {{"base_descriptors", "0"}});
  if (head_dim < 256) {
    add("queries in registers", {{"queries_in_registers", "1"}});
    add("two warpgroups", {{"math_warpgroups", "2"}});
  }
  return field;
}

std::vector<Field> fields(const std::string& kind, bool causal) {
  if (kind == "split") {
    return {split_field(causal)};
  }
  const auto field = kind == "codes" ? codes_field : stream_field;
  return {field(64, causal), field(128, causal), field(256, causal)};
}

void warm() {
  for (const std::string kind : {"split", "pipelined", "codes"}) {
    for (const bool causal : {false, true}) {
      for (const Field& field : fields(kind, causal)) {
        for (const Variant& variant : field.variants) {
          const strategies::PlannedCall call =
              ops::attention_call(variant.in_16_bits ? in_16_bits(field.problem) : field.problem,
                                  {.strategy = field.strategy, .knobs = variant.knobs}, device_spec("H200"));
          (void)ops::warm_program(std::get<strategies::KernelLaunch>(call.steps.front()).program, "sm_90a");
          fmt::print("{} {}{}\n", kind, variant.name, causal ? ", causal" : "");
        }
      }
    }
  }
}

/// Bytes of normally distributed values; few, to be quick, in another order for each tensor.
std::vector<std::uint8_t> values(Format format, std::size_t count, std::size_t start) {
  constexpr std::size_t made = 1'000'003;
  static const std::vector<float> normal = [] {
    std::mt19937 random(7);
    std::normal_distribution<float> distribution;
    std::vector<float> all(made);
    std::generate(all.begin(), all.end(), [&] { return distribution(random); });
    return all;
  }();
  const std::size_t bytes = static_cast<std::size_t>(bits(format)) / 8;
  std::vector<std::uint8_t> out(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = normal[(start + i) % made];
    const std::uint16_t stored = format == Format::fp16   ? formats::float_to_fp16(value)
                                 : format == Format::bf16 ? formats::float_to_bf16(value)
                                                          : formats::float_to_e4m3(value);
    std::memcpy(&out[i * bytes], &stored, bytes);
  }
  return out;
}

/// The problem's data on the host and on the GPU, with the right outputs.
struct Data {
  AttentionProblem problem;
  std::vector<std::uint8_t> host[4];  // q, k, v, o
  std::vector<runtime::DeviceBuffer> device;
  AttentionTensors here;
  AttentionTensors there;
  reference::AttentionRows definition;
  reference::AttentionRows plain;

  explicit Data(const AttentionProblem& of) : problem(of) {
    Tensor* const on_host[] = {&here.q, &here.k, &here.v, &here.o};
    Tensor* const on_gpu[] = {&there.q, &there.k, &there.v, &there.o};
    const auto count = static_cast<std::size_t>(of.batch * of.heads * of.queries * of.head_dim);
    const Format keys = effective_kv_format(of);
    const Format formats[] = {effective_q_format(of), keys, keys, of.format};
    for (std::size_t i = 0; i < 4; ++i) {
      host[i] = values(formats[i], count, i * 333'331);
      device.emplace_back(0, host[i].size());
      runtime::copy(device[i].data(), host[i].data(), host[i].size(), 0);
      const std::initializer_list<std::int64_t> shape{of.batch, of.heads, of.queries, of.head_dim};
      *on_host[i] = Tensor::contiguous(host[i].data(), formats[i], shape);
      *on_gpu[i] = Tensor::contiguous(device[i].data(), formats[i], shape, device[i].device());
    }
    const auto samples = reference::sample_queries(problem, here, budget_operations, 1);
    definition = reference::attention_rows(problem, here, samples);
    plain = reference::attention_rows_plain_low_precision(problem, here, samples);
  }

  /// Error over the allowed error, of the worst element that the GPU wrote.
  double worst() {
    runtime::copy(host[3].data(), device[3].data(), host[3].size(), 0);
    return reference::judge_rows(problem, here, definition, plain).judgement.worst_excess;
  }
};

/// One variant in one kind of launch.
struct Contender {
  std::string name;
  Attention attention;
  runtime::Graph graph;
  double error;
  std::vector<double> us{};
};

struct Timer {
  runtime::OwnedStream stream{0};
  runtime::Event begin{0};
  runtime::Event end{0};

  double us(const runtime::Graph& graph) const {
    begin.record(stream.get());
    graph.launch(stream.get());
    end.record(stream.get());
    return end.elapsed_us_since(begin);
  }
};

Contender contender(const Field& field, const Variant& variant, bool dependent, Data& data, const Timer& timer) {
  const Attention attention = plan(Device::cuda(0), data.problem,
                                   {.strategy = field.strategy, .knobs = variant.knobs, .dependent_launch = dependent});
  runtime::Graph graph = runtime::Graph::capture(0, [&](Stream into) {
    for (int call = 0; call < field.calls; ++call) {
      attention.run(into, data.there);
    }
  });
  runtime::fill_async(data.device[3].data(), 0xFF, data.device[3].bytes(), timer.stream.get(), 0);
  (void)timer.us(graph);
  return {variant.name + (dependent ? ", dependent launch" : ""), attention, std::move(graph), data.worst()};
}

void measure(const Field& field) {
  const AttentionProblem& p = field.problem;
  Data data(p);
  std::optional<Data> wide;  // in 16 bits
  const Timer timer;
  std::vector<Contender> contenders;
  for (const Variant& variant : field.variants) {
    if (variant.in_16_bits && !wide) {
      wide.emplace(in_16_bits(p));
    }
    for (const bool dependent : {false, true}) {
      if (!dependent || field.dependent) {
        contenders.push_back(contender(field, variant, dependent, variant.in_16_bits ? *wide : data, timer));
      }
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Contender& one : contenders) {
      one.us.push_back(timer.us(one.graph) / field.calls);
    }
  }
  fmt::print(
      "{} {}x{}x{}x{} {}{}{}: us a call, median and least of {} graphs of {} calls; error over what is allowed\n",
      field.strategy, p.batch, p.heads, p.queries, p.head_dim, name(p.format), p.q_format ? ", operands in fp8" : "",
      p.causal ? " causal" : "", rounds, field.calls);
  for (Contender& one : contenders) {
    std::sort(one.us.begin(), one.us.end());
    fmt::print("  {:<44} {:>9.3f} {:>9.3f} {:>6.2f}{}\n", one.name, one.us[one.us.size() / 2], one.us.front(),
               one.error, one.error <= 1 ? "" : "  WRONG");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool causal = arguments.size() == 2 && arguments[1] == "--causal";
  if (arguments == std::vector<std::string>{"--warm"}) {
    warm();
  } else if (!arguments.empty() &&
             (arguments[0] == "split" || arguments[0] == "pipelined" || arguments[0] == "codes") &&
             (arguments.size() == 1 || causal)) {
    for (const Field& field : fields(arguments[0], causal)) {
      measure(field);
    }
  } else {
    fmt::print(stderr, "usage: bench_attention_variants --warm | split|pipelined|codes [--causal]\n");
    return 2;
  }
  return 0;
} catch (const thresher::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
