// Times chunked prefill over a paged KV cache on one GPU, alone and beside decoding. The strategies alternate, so that
// clocks are the same for all. Keys and values stay in the L2 cache as far as they fit.
//
// usage: bench_attention_chunks [--page N] [--head-dim N] [--keys bf16|fp8] [--queries bf16|fp8] [--only TEXT]
//                               [--knobs "..."]...
//
// --only takes the case with this title. With knobs, `pipelined` alone is timed: as it is, and with
// each. Each line has the median and the minimum of µs per call, and TFLOP/s of the unmasked products.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/integers.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/attention.hpp"
#include "thresher/error.hpp"
#include "thresher/workspace.hpp"

namespace {

using namespace thresher;

constexpr int rounds = 15;
constexpr int calls = 10;
constexpr std::int64_t heads = 32;
constexpr std::int64_t kv_heads = 8;

struct Case {
  std::string title;
  std::vector<std::int32_t> queries;
  std::vector<std::int32_t> keys;
};

/// `count` sequences of `queries` queries over `keys` keys, and one prefill chunk where `chunk` has queries.
Case with_chunk(std::size_t count, std::int32_t queries, std::int32_t keys, std::int32_t chunk, std::int32_t context) {
  Case made{"", std::vector(count, queries), std::vector(count, keys)};
  if (count > 0) {
    made.title = fmt::format("{} x {} queries over {}", count, queries, keys);
  }
  if (chunk > 0) {
    made.title += fmt::format("{}{} queries over {}", count > 0 ? ", and " : "", chunk, context);
    made.queries.push_back(chunk);
    made.keys.push_back(context);
  }
  return made;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [chunk, context] : {std::pair{512, 4096}, {2048, 8192}, {4096, 4096}}) {
    all.push_back(with_chunk(0, 0, 0, chunk, context));
  }
  all.push_back(with_chunk(31, 1, 1536, 512, 4096));
  all.push_back(with_chunk(64, 1, 4096, 2048, 8192));
  for (const std::int32_t queries : {4, 8, 16, 32, 64, 128}) {
    all.push_back(with_chunk(16, queries, 4096, 0, 0));
  }
  all.push_back(with_chunk(64, 1, 8192, 0, 0));
  all.push_back(with_chunk(63, 1, 8192, 2, 8192));
  all.push_back(with_chunk(31, 1, 32768, 2, 32768));
  return all;
}

/// The options of the command line.
struct Options {
  std::int64_t page = 16;
  std::int64_t head_dim = 128;
  Format keys = Format::bf16;
  Format queries = Format::bf16;
  std::string only;
  std::vector<std::string> knobs;  ///< of `pipelined`
};

AttentionProblem problem_of(const Case& on, const Options& options) {
  AttentionProblem problem{.batch = static_cast<std::int64_t>(on.keys.size()),
                           .heads = heads,
                           .kv_heads = kv_heads,
                           .queries = std::accumulate(on.queries.begin(), on.queries.end(), std::int64_t{0}),
                           .keys = *std::max_element(on.keys.begin(), on.keys.end()),
                           .head_dim = options.head_dim,
                           .format = Format::bf16,
                           .kv_format = options.keys,
                           .q_format = options.queries,
                           .causal = true};
  problem.variable_length = true;
  problem.page_size = options.page;
  for (const std::int32_t keys : on.keys) {
    problem.pages += ceil_div(std::int64_t{keys}, options.page);
  }
  return problem;
}

double operations(const Case& on, const AttentionProblem& problem) {
  double seen = 0;
  for (std::size_t i = 0; i < on.keys.size(); ++i) {
    const double queries = on.queries[i];
    seen += queries * on.keys[i] - queries * (queries - 1) / 2;
  }
  return 4.0 * seen * static_cast<double>(problem.heads * problem.head_dim);
}

/// Tensors of one case, with random contents without NaN.
class Data {
 public:
  Data(const Case& on, const AttentionProblem& problem) {
    const DeviceId gpu{DeviceKind::cuda, 0};
    const auto rows = [&](Format format, std::initializer_list<std::int64_t> shape) {
      const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
      std::vector<std::uint16_t> values(static_cast<std::size_t>(count * bits(format) / 16));
      for (std::uint16_t& value : values) {
        value = static_cast<std::uint16_t>(random_() & 0xBFBFU);
      }
      return Tensor::contiguous(add(values), format, shape, gpu);
    };
    const Format keys = effective_kv_format(problem);
    const auto numbers = [&](const std::vector<std::int32_t>& values, std::initializer_list<std::int64_t> shape) {
      return Tensor::contiguous(add(values), Format::int32, shape, gpu);
    };
    tensors.q = rows(effective_q_format(problem), {problem.queries, problem.heads, problem.head_dim});
    tensors.o = rows(problem.format, {problem.queries, problem.heads, problem.head_dim});
    tensors.k = rows(keys, {problem.pages, problem.page_size, problem.kv_heads, problem.head_dim});
    tensors.v = rows(keys, {problem.pages, problem.page_size, problem.kv_heads, problem.head_dim});
    std::vector<std::int32_t> offsets{0};
    std::partial_sum(on.queries.begin(), on.queries.end(), std::back_inserter(offsets));
    tensors.cu_seqlens_q = numbers(offsets, {problem.batch + 1});
    tensors.seqused_k = numbers(on.keys, {problem.batch});
    const std::int64_t columns = ceil_div(problem.keys, problem.page_size);
    tensors.block_table = numbers(table(on, problem, columns), {problem.batch, columns});
  }

  AttentionTensors tensors;

 private:
  template <class T>
  void* add(const std::vector<T>& values) {
    memory_.emplace_back(0, values.size() * sizeof(T));
    runtime::copy(memory_.back().data(), values.data(), memory_.back().bytes(), 0);
    return memory_.back().data();
  }

  std::vector<std::int32_t> table(const Case& on, const AttentionProblem& problem, std::int64_t columns) {
    std::vector<std::int32_t> pages(static_cast<std::size_t>(problem.pages));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random_);
    std::vector<std::int32_t> all(static_cast<std::size_t>(problem.batch * columns));
    auto next = pages.begin();
    for (std::size_t i = 0; i < on.keys.size(); ++i) {
      const std::int64_t used = ceil_div(std::int64_t{on.keys[i]}, problem.page_size);
      std::copy_n(next, used, all.begin() + static_cast<std::int64_t>(i) * columns);
      next += used;
    }
    return all;
  }

  std::mt19937 random_{7};
  std::vector<runtime::DeviceBuffer> memory_;
};

struct Contender {
  std::string name;
  Attention attention;
  Workspace workspace;
  runtime::Graph graph;
  std::vector<double> us{};
};

Contender contender(const std::string& strategy, const std::string& knobs, const AttentionProblem& problem,
                    const Data& data) {
  const Attention attention = plan(Device::cuda(0), problem, {.strategy = strategy, .knobs = Knobs::parse(knobs)});
  Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  runtime::Graph graph = runtime::Graph::capture(0, [&](Stream into) {
    for (int call = 0; call < calls; ++call) {
      attention.run(into, data.tensors, workspace.data());
    }
  });
  const std::string name = strategy.empty() ? fmt::format("planned ({})", attention.strategy()) : strategy;
  return {name + (knobs.empty() ? "" : " " + knobs), attention, workspace, std::move(graph)};
}

void measure(const Case& on, const Options& options) {
  const AttentionProblem problem = problem_of(on, options);
  const Data data(on, problem);
  std::vector<Contender> contenders;
  if (options.knobs.empty()) {
    for (const char* const strategy : {"", "stream_k", "pipelined", "mixed"}) {
      contenders.push_back(contender(strategy, "", problem, data));
    }
  } else {
    contenders.push_back(contender("pipelined", "", problem, data));
    for (const std::string& knobs : options.knobs) {
      contenders.push_back(contender("pipelined", knobs, problem, data));
    }
  }
  const runtime::OwnedStream stream(0);
  const runtime::Event begin(0);
  const runtime::Event end(0);
  for (int round = -1; round < rounds; ++round) {
    for (Contender& one : contenders) {
      begin.record(stream.get());
      one.graph.launch(stream.get());
      end.record(stream.get());
      const double us = end.elapsed_us_since(begin) / calls;
      if (round >= 0) {
        one.us.push_back(us);
      }
    }
  }
  fmt::print("{}\n", on.title);
  for (Contender& one : contenders) {
    std::sort(one.us.begin(), one.us.end());
    const double median = one.us[one.us.size() / 2];
    fmt::print("  {:<52} {:>9.2f} {:>9.2f} us {:>7.1f} TFLOP/s\n", one.name, median, one.us.front(),
               operations(on, problem) / median / 1e6);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if ((option == "--keys" || option == "--queries") && (value == "bf16" || value == "fp8")) {
      (option == "--keys" ? options.keys : options.queries) = value == "fp8" ? Format::fp8_e4m3 : Format::bf16;
    } else if (!value.empty() && option == "--only") {
      options.only = value;
    } else if (!value.empty() && option == "--knobs") {
      options.knobs.push_back(value);
    } else if (!value.empty() && (option == "--page" || option == "--head-dim")) {
      (option == "--page" ? options.page : options.head_dim) = std::atoll(value.c_str());
    } else {
      fmt::print(stderr,
                 "usage: bench_attention_chunks [--page N] [--head-dim N] [--keys bf16|fp8] [--queries bf16|fp8] "
                 "[--only TEXT] "
                 "[--knobs \"...\"]..., not {} {}\n",
                 option, value);
      return 2;
    }
  }
  fmt::print("{} query heads, {} of keys, head dimension {}, pages of {}, keys in {}, queries in {}\n", heads, kv_heads,
             options.head_dim, options.page, name(options.keys), name(options.queries));
  for (const Case& on : cases()) {
    if (options.only.empty() || on.title == options.only) {
      measure(on, options);
    }
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
