// Checks and times variants of the attention strategy `split` side by side on one GPU: the origin's problem, warm, in a
// graph of many calls, in ordinary and in dependent launch. Variants take turns, so that clocks are the same for all.
//
// usage: bench_attention_split_variants --warm     compiles every kernel into the cache; needs no GPU
//        bench_attention_split_variants [--causal] [--rounds N]
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "kernels/attention/program.hpp"
#include "ops/attention_choice.hpp"
#include "ops/cuda_programs.hpp"
#include "reference/attention_rows.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/attention.hpp"
#include "thresher/error.hpp"

namespace {

using namespace thresher;

constexpr int calls = 200;
constexpr std::int64_t heads = 8;
constexpr std::int64_t length = 512;
constexpr std::int64_t width = 64;

AttentionProblem origin(bool causal) {
  return {.heads = heads, .kv_heads = heads, .queries = length, .keys = length, .head_dim = width, .causal = causal};
}

struct Variant {
  std::string name;
  std::map<std::string, int> knobs;
};

/// From the kernel as it was, one change after another.
std::vector<Variant> variants(bool causal) {
  std::map<std::string, int> knobs{{"parts", 1}, {"meet_early", 0},    {"narrow_exchange", 0},
                                   {"alone", 0}, {"inspect_early", 0}, {"whole", 0}};
  std::vector<Variant> list{{"general", knobs}};
  const auto then = [&](const char* name, const char* knob, int value) {
    knobs[knob] = value;
    list.push_back({name, knobs});
  };
  if (!causal) {
    then("+ whole tiles", "whole", 1);
  }
  then("+ parts of 64 keys", "parts", 2);
  then("+ parts of 32 keys", "parts", 4);
  if (!causal) {
    then("+ early maximum", "inspect_early", 1);
  }
  then("+ early meeting", "meet_early", 1);
  then("+ 16-bit exchange", "narrow_exchange", 1);
  then("+ alone", "alone", 1);
  knobs["narrow_exchange"] = 0;
  list.push_back({"alone, float32 exchange", knobs});
  knobs["parts"] = 2;
  list.push_back({"alone, float32, parts of 64", knobs});
  return list;
}

void warm() {
  for (const bool causal : {false, true}) {
    for (const Variant& variant : variants(causal)) {
      const ops::AttentionChoice choice =
          ops::choose_attention(origin(causal), {.strategy = "split", .knobs = variant.knobs}, 132);
      (void)ops::warm_program(
          kernels::attention::split_program(Format::fp16, choice.split, kernels::attention::Logits::direct), "sm_90a");
      fmt::print("{}{}\n", variant.name, causal ? ", causal" : "");
    }
  }
}

/// The problem's data on the host and on the GPU, with what is right.
struct Data {
  AttentionProblem problem;
  std::vector<std::uint16_t> host[4];  // q, k, v, o
  std::vector<runtime::DeviceBuffer> device;
  AttentionTensors here;
  AttentionTensors there;
  reference::AttentionRows definition;
  reference::AttentionRows plain;

  explicit Data(bool causal) : problem(origin(causal)) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    Tensor* const on_host[] = {&here.q, &here.k, &here.v, &here.o};
    Tensor* const on_gpu[] = {&there.q, &there.k, &there.v, &there.o};
    for (std::size_t i = 0; i < 4; ++i) {
      host[i].resize(static_cast<std::size_t>(heads * length * width));
      std::generate(host[i].begin(), host[i].end(), [&] { return formats::float_to_fp16(normal(random)); });
      device.emplace_back(0, host[i].size() * 2);
      runtime::copy(device[i].data(), host[i].data(), host[i].size() * 2, 0);
      *on_host[i] = Tensor::contiguous(host[i].data(), Format::fp16, {1, heads, length, width});
      *on_gpu[i] = Tensor::contiguous(device[i].data(), Format::fp16, {1, heads, length, width}, device[i].device());
    }
    const auto samples = reference::sample_queries(problem, here, 1e12, 1);
    definition = reference::attention_rows(problem, here, samples);
    plain = reference::attention_rows_plain_low_precision(problem, here, samples);
  }

  /// Error over what is allowed, of the worst element that the GPU wrote.
  double worst() {
    runtime::copy(host[3].data(), device[3].data(), host[3].size() * 2, 0);
    return reference::judge_rows(problem, here, definition, plain).judgement.worst_excess;
  }
};

/// One variant in one kind of launch.
struct Contender {
  Attention attention;
  runtime::Graph graph;
  std::vector<double> us{};
};

double sample_us(const Contender& contender, const runtime::OwnedStream& stream, const runtime::Event& begin,
                 const runtime::Event& end) {
  begin.record(stream.get());
  contender.graph.launch(stream.get());
  end.record(stream.get());
  return end.elapsed_us_since(begin) / calls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(bool causal, int rounds) {
  Data data(causal);
  const runtime::OwnedStream stream(0);
  const runtime::Event begin(0);
  const runtime::Event end(0);
  const std::vector<Variant> list = variants(causal);
  std::vector<Contender> contenders;
  std::vector<double> worst;
  for (const Variant& variant : list) {
    for (const bool dependent : {false, true}) {
      const Attention attention = plan(Device::cuda(0), data.problem,
                                       {.strategy = "split", .knobs = variant.knobs, .dependent_launch = dependent});
      runtime::Graph graph = runtime::Graph::capture(0, [&](Stream into) {
        for (int call = 0; call < calls; ++call) {
          attention.run(into, data.there);
        }
      });
      contenders.push_back({attention, std::move(graph)});
      runtime::fill_async(data.device[3].data(), 0xFF, data.device[3].bytes(), stream.get(), 0);
      (void)sample_us(contenders.back(), stream, begin, end);
      worst.push_back(data.worst());
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      contender.us.push_back(sample_us(contender, stream, begin, end));
    }
  }
  fmt::print("1x8x512x64 fp16{}, us a call: median (least) of {} graphs of {} calls; error over what is allowed\n",
             causal ? " causal" : "", rounds, calls);
  fmt::print("{:<30} {:>16} {:>16} {:>8}\n", "variant", "graph", "dependent", "error");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto times = [&](const std::vector<double>& us) {
      return fmt::format("{:.3f} ({:.3f})", median(us), *std::min_element(us.begin(), us.end()));
    };
    const double error = std::max(worst[2 * i], worst[2 * i + 1]);
    fmt::print("{:<30} {:>16} {:>16} {:>8.2f}{}\n", list[i].name, times(contenders[2 * i].us),
               times(contenders[2 * i + 1].us), error, error <= 1 ? "" : "  WRONG");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  bool causal = false;
  int rounds = 31;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--warm") {
      warm();
      return 0;
    }
    causal = causal || argument == "--causal";
    rounds = argument == "--rounds" && i + 1 < argc ? std::stoi(argv[i + 1]) : rounds;
  }
  measure(causal, rounds);
} catch (const thresher::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
