// Times decoding over a paged KV cache on one GPU, with keys and values from DRAM. The calls of a graph cycle through
// pages that exceed the L2. Variants alternate too, so that clocks are the same for all.
//
// usage: bench_attention_decode [--warm] [--fp8] [--format bf16|fp16] [--page N] [--head-dim N] [--kv-heads N]
//                               [--queries N] [--mixed] [--dependent] [--heads-first] [--knobs "a=1 b=2"]...
//                               [BATCHxKEYSxGROUP...]
//
// Without a case: batches 1, 8, 32, 128 and 256 of 1024 to 32768 keys with groups of 1, 4 and 8 heads. --warm compiles
// the kernels into the cache and needs no GPU. --mixed: lengths from a quarter to seven quarters of the keys, with the
// same sum. --heads-first: a page is [heads, rows], else [rows, heads]. Each line has the median and the minimum of µs
// per call, and the median GB/s of keys and values.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/integers.hpp"
#include "ops/attention_call.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/attention.hpp"
#include "thresher/error.hpp"
#include "thresher/workspace.hpp"

namespace {

using namespace thresher;

constexpr std::int64_t cold_bytes = std::int64_t{240} << 20;  ///< several times the L2
constexpr std::int64_t max_bytes = std::int64_t{40} << 30;    ///< of keys and values
constexpr int rounds = 11;

struct Options {
  bool warm = false;
  bool fp8 = false;
  bool mixed = false;
  bool dependent = false;
  bool heads_first = false;
  Format format = Format::bf16;
  std::int64_t page = 16;
  std::int64_t head_dim = 128;
  std::int64_t kv_heads = 8;
  std::int64_t queries = 1;
  std::vector<Knobs> variants;
};

struct Case {
  std::int64_t batch;
  std::int64_t keys;
  std::int64_t group;
};

AttentionProblem problem_of(const Options& options, const Case& on) {
  AttentionProblem problem{.batch = on.batch,
                           .heads = options.kv_heads * on.group,
                           .kv_heads = options.kv_heads,
                           .queries = on.batch * options.queries,
                           .keys = options.mixed ? on.keys * 2 : on.keys,
                           .head_dim = options.head_dim,
                           .format = options.format};
  problem.variable_length = true;
  problem.causal = true;
  problem.page_size = options.page;
  if (options.fp8) {
    problem.kv_format = Format::fp8_e4m3;
  }
  return problem;
}

std::vector<std::int32_t> lengths_of(const Options& options, const Case& on) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < on.batch; ++i) {
    // Pairs of lengths whose sum is twice the keys, starting at a quarter.
    const std::int64_t step = on.batch > 1 ? i / 2 * on.keys * 3 / 4 / std::max<std::int64_t>(on.batch / 2, 1) : 0;
    const std::int64_t shorter = on.keys / 4 + step;
    const bool is_last_alone = on.batch % 2 == 1 && i + 1 == on.batch;
    const std::int64_t keys = !options.mixed || is_last_alone ? on.keys : i % 2 == 0 ? shorter : 2 * on.keys - shorter;
    all.push_back(static_cast<std::int32_t>(keys));
  }
  return all;
}

/// Memory with random contents: no NaN in any format.
class Pool {
 public:
  explicit Pool(std::size_t bytes) : memory_(0, bytes, "keys and values") {
    constexpr std::size_t made = std::size_t{16} << 20;
    std::vector<std::uint16_t> some(made / 2);
    std::mt19937 random(7);
    for (std::uint16_t& word : some) {
      word = static_cast<std::uint16_t>(random() & 0xBFBFU & 0xBBFFU);
    }
    for (std::size_t at = 0; at < bytes; at += made) {
      runtime::copy(static_cast<std::byte*>(memory_.data()) + at, some.data(), std::min(made, bytes - at), 0);
    }
  }
  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

 private:
  runtime::DeviceBuffer memory_;
};

template <class T>
runtime::DeviceBuffer on_gpu(const std::vector<T>& values) {
  runtime::DeviceBuffer memory(0, values.size() * sizeof(T));
  runtime::copy(memory.data(), values.data(), memory.bytes(), 0);
  return memory;
}

/// One problem with pages for several calls.
struct Data {
  AttentionProblem problem;
  std::int64_t bytes = 0;  ///< of keys and values that one call reads
  std::vector<runtime::DeviceBuffer> memory;
  std::vector<AttentionTensors> calls;

  Data(const Options& options, const Case& on, const Pool& pool) : problem(problem_of(options, on)) {
    const std::vector<std::int32_t> lengths = lengths_of(options, on);
    const Format keys = effective_kv_format(problem);
    const std::int64_t row_bytes = problem.kv_heads * problem.head_dim * bits(keys) / 8;
    std::int64_t pages_of_call = 0;
    for (const std::int32_t length : lengths) {
      pages_of_call += ceil_div(std::int64_t{length}, problem.page_size);
      bytes += 2 * row_bytes * length;
    }
    const std::int64_t page_bytes = row_bytes * problem.page_size;
    const std::int64_t copies = std::clamp<std::int64_t>(cold_bytes / (2 * page_bytes * pages_of_call), 1, 64);
    problem.pages = pages_of_call * copies;
    const DeviceId gpu{DeviceKind::cuda, 0};
    Tensor k = Tensor::contiguous(pool.data(), keys,
                                  {problem.pages, problem.page_size, problem.kv_heads, problem.head_dim}, gpu);
    if (options.heads_first) {
      k.strides[1] = problem.head_dim;
      k.strides[2] = problem.head_dim * problem.page_size;
    }
    Tensor v = k;
    v.data = static_cast<std::byte*>(pool.data()) + page_bytes * problem.pages;
    std::vector<std::int32_t> pages(static_cast<std::size_t>(problem.pages));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(3));
    std::vector<std::int32_t> cu_q(static_cast<std::size_t>(problem.batch + 1));
    for (std::size_t i = 0; i < cu_q.size(); ++i) {
      cu_q[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * options.queries);
    }
    const auto row_bytes_of_q = static_cast<std::size_t>(problem.queries * problem.heads * problem.head_dim) * 2;
    memory.push_back(on_gpu(cu_q));
    memory.push_back(on_gpu(lengths));
    memory.emplace_back(0, row_bytes_of_q);
    runtime::copy(memory[2].data(), std::vector<std::uint16_t>(row_bytes_of_q / 2, 0x3C11).data(), row_bytes_of_q, 0);
    memory.emplace_back(0, row_bytes_of_q);
    const std::initializer_list<std::int64_t> rows{problem.queries, problem.heads, problem.head_dim};
    const std::int64_t columns = ceil_div(problem.keys, problem.page_size);
    auto next = pages.begin();
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      std::vector<std::int32_t> table(static_cast<std::size_t>(problem.batch * columns), -1);
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        const std::int64_t used = ceil_div(std::int64_t{lengths[static_cast<std::size_t>(b)]}, problem.page_size);
        std::copy_n(next, used, table.begin() + b * columns);
        next += used;
      }
      memory.push_back(on_gpu(table));
      calls.push_back(
          {.q = Tensor::contiguous(memory[2].data(), problem.format, rows, gpu),
           .k = k,
           .v = v,
           .o = Tensor::contiguous(memory[3].data(), problem.format, rows, gpu),
           .cu_seqlens_q = Tensor::contiguous(memory[0].data(), Format::int32, {problem.batch + 1}, gpu),
           .block_table = Tensor::contiguous(memory.back().data(), Format::int32, {problem.batch, columns}, gpu),
           .seqused_k = Tensor::contiguous(memory[1].data(), Format::int32, {problem.batch}, gpu)});
    }
  }
};

struct Contender {
  Attention attention;
  Workspace workspace;
  runtime::Graph graph;
  int calls;
  std::vector<double> us{};
};

AttentionOptions attention_options(const Options& options, const Knobs& knobs) {
  return {.strategy = "stream_k", .knobs = knobs, .dependent_launch = options.dependent};
}

Contender contender(const Options& options, const Knobs& knobs, const Data& data) {
  const Attention attention = plan(Device::cuda(0), data.problem, attention_options(options, knobs));
  Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  const int turns = std::max(1, static_cast<int>(20 / data.calls.size()));
  runtime::Graph graph = runtime::Graph::capture(0, [&](Stream into) {
    for (int turn = 0; turn < turns; ++turn) {
      for (const AttentionTensors& call : data.calls) {
        attention.run(into, call, workspace.data());
      }
    }
  });
  return {attention, workspace, std::move(graph), turns * static_cast<int>(data.calls.size())};
}

void measure(const Options& options, const Case& on, const Pool& pool) {
  const Data data(options, on, pool);
  std::vector<Contender> contenders;
  for (const Knobs& knobs : options.variants) {
    contenders.push_back(contender(options, knobs, data));
  }
  const runtime::OwnedStream stream(0);
  const runtime::Event begin(0);
  const runtime::Event end(0);
  for (int round = -1; round < rounds; ++round) {
    for (Contender& one : contenders) {
      begin.record(stream.get());
      one.graph.launch(stream.get());
      end.record(stream.get());
      const double us = end.elapsed_us_since(begin) / one.calls;
      if (round >= 0) {
        one.us.push_back(us);
      }
    }
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::vector<double>& us = contenders[i].us;
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    fmt::print("{:>4} x {:>5} x {} {} {:<40} {:>9.2f} {:>9.2f} us {:>7.0f} GB/s\n", on.batch, on.keys, on.group,
               options.fp8 ? "fp8" : "16 ", options.variants[i].text(), median, us.front(),
               static_cast<double>(data.bytes) / median / 1e3);
  }
  std::fflush(stdout);
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::int64_t group : {8, 4, 1}) {
    for (const std::int64_t batch : {1, 8, 32, 128, 256}) {
      for (const std::int64_t keys : {1024, 4096, 8192, 32768}) {
        all.push_back({batch, keys, group});
      }
    }
  }
  return all;
}

std::int64_t bytes_of(const Options& options, const Case& on) {
  return 2 * on.batch * on.keys * options.kv_heads * options.head_dim * (options.fp8 ? 1 : 2);
}

void warm(const Options& options, const std::vector<Case>& cases) {
  for (const Case& on : cases) {
    AttentionProblem problem = problem_of(options, on);
    problem.pages = 1;
    for (const Knobs& knobs : options.variants) {
      const strategies::PlannedCall call =
          ops::attention_call(problem, attention_options(options, knobs), device_spec("H200"), DeviceKind::cuda);
      (void)ops::warm_program(std::get<strategies::KernelLaunch>(call.steps.front()).program, "sm_90a");
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  std::vector<Case> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoll(argv[++i]) : 0; };
    if (word == "--warm") {
      options.warm = true;
    } else if (word == "--fp8") {
      options.fp8 = true;
    } else if (word == "--mixed") {
      options.mixed = true;
    } else if (word == "--dependent") {
      options.dependent = true;
    } else if (word == "--heads-first") {
      options.heads_first = true;
    } else if (word == "--format") {
      options.format = i + 1 < argc && std::string(argv[++i]) == "fp16" ? Format::fp16 : Format::bf16;
    } else if (word == "--page") {
      options.page = number();
    } else if (word == "--head-dim") {
      options.head_dim = number();
    } else if (word == "--kv-heads") {
      options.kv_heads = number();
    } else if (word == "--queries") {
      options.queries = number();
    } else if (word == "--knobs" && i + 1 < argc) {
      options.variants.push_back(Knobs::parse(argv[++i]));
    } else {
      Case on{};
      if (std::sscanf(word.c_str(), "%ldx%ldx%ld", &on.batch, &on.keys, &on.group) != 3) {
        fmt::print(stderr, "{} is no case: expected BATCHxKEYSxGROUP\n", word);
        return 2;
      }
      cases.push_back(on);
    }
  }
  if (options.variants.empty()) {
    options.variants.emplace_back();
  }
  if (cases.empty()) {
    cases = all_cases();
  }
  std::erase_if(cases, [&](const Case& on) { return bytes_of(options, on) > max_bytes; });
  if (options.warm) {
    warm(options, cases);
    return 0;
  }
  std::int64_t needed = 0;
  for (const Case& on : cases) {
    needed = std::max(needed, bytes_of(options, on));
  }
  const Pool pool(static_cast<std::size_t>(std::max(needed, cold_bytes) + (std::int64_t{1} << 28)));
  for (const Case& on : cases) {
    measure(options, on, pool);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
