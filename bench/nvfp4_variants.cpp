// Checks and times many configurations of the packed NVFP4 dual GEMM side by side on one GPU.
//
// usage: bench_nvfp4_variants --warm                       compiles every kernel into the cache; needs no GPU
//        bench_nvfp4_variants [--seconds S] [MxNxK ...]    a table a problem, row by row; all problems when none is
//        named
//
// Graphs of 20 calls rotate over input sets of more than three times the L2 cache. A variant takes turns with the first
// one of its numerics that reads the same tokens; "ratio" is that one's time in the same turns over the variant's,
// above 1 when the variant is faster. "burst": the GPU rests before each sample, "hot": none. A problem's variants that
// are not begun after S seconds (20) are named and left out.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "nvfp4_variants_list.hpp"
#include "nvfp4_variants_problem.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/stream.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "thresher/error.hpp"

namespace {

using namespace thresher;
using namespace thresher::bench;
using Clock = std::chrono::steady_clock;

constexpr int calls = 20;
constexpr int burst_rounds = 9;
constexpr int hot_rounds = 7;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Ends the process with a word on stdout when one step does not come to its end: a kernel that hangs cannot be stopped
/// in any other way, and would hold the GPU.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void begin(std::string step) {
    const std::lock_guard lock(mutex_);
    step_ = std::move(step);
    ++steps_;
    changed_.notify_one();
  }

 private:
  static constexpr std::chrono::seconds limit{10};
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      const int before = steps_;
      if (!changed_.wait_for(lock, limit, [&] { return done_ || steps_ != before; })) {
        std::printf("  %s: HANGS, gave up\n", step_.c_str());
        std::fflush(stdout);
        std::_Exit(3);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string step_ = "the beginning";
  int steps_ = 0;
  bool done_ = false;
  std::thread thread_;
};

struct Contestant {
  Variant variant;
  Loaded loaded;
  double error;
  runtime::Graph graph;
};

/// Results of ablations are nobody's.
bool is_whole(const Variant& variant) { return variant.config.ablation == pipeline::Ablation::none; }

Contestant make(const Problem& problem, const Variant& variant) {
  const Loaded loaded = load(variant);
  const double error = is_whole(variant) ? problem.error(variant, loaded) : 0;
  return {variant, loaded, error, runtime::Graph::capture(0, [&](Stream stream) {
            for (std::size_t i = 0; i < calls; ++i) {
              problem.call(variant, loaded, i, stream);
            }
          })};
}

struct Times {
  double burst_us = 0;
  double hot_us = 0;
  double ratio = 1;
};

Times time(const Contestant& one, const Contestant& base) {
  const runtime::OwnedStream stream(0);
  const runtime::Event start(0);
  const runtime::Event end(0);
  const auto sample = [&](const Contestant& which) {
    start.record(stream.get());
    which.graph.launch(stream.get());
    end.record(stream.get());
    return end.elapsed_us_since(start) / calls;
  };
  std::vector<double> burst;
  std::vector<double> hot;
  std::vector<double> ratios;
  sample(base);
  sample(one);
  for (int round = 0; round < burst_rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const double of_base = sample(base);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    burst.push_back(sample(one));
    ratios.push_back(of_base / burst.back());
  }
  for (int round = 0; round < hot_rounds; ++round) {
    one.graph.launch(stream.get());
    hot.push_back(sample(one));
  }
  return {median(burst), median(hot), median(ratios)};
}

void print(const Contestant& one, const Times& times) {
  const auto& config = one.variant.config;
  const int threads = device_code::launch_threads(config);
  const int resident = one.loaded.product.blocks_per_multiprocessor(
      threads, static_cast<std::size_t>(device_code::shared_bytes(config)));
  const double limit = config.numerics == device_code::Numerics::fast ? 1.5e-2 : 1e-3;
  const std::string verdict = !is_whole(one.variant) ? ""
                              : one.error <= limit   ? fmt::format("error {:.1e}", one.error)
                                                     : fmt::format("error {:.1e} WRONG", one.error);
  std::printf("  %-64s %7.2f %7.2f us  ratio %.3f  %3d registers x %d, %d resident  %s%s\n", words(one.variant).c_str(),
              times.burst_us, times.hot_us, times.ratio, one.loaded.product.registers(), threads, resident,
              verdict.c_str(), one.loaded.was_compiled ? " (compiled now)" : "");
}

void run(const device_code::Extents& e, double seconds) {
  const Clock::time_point start = Clock::now();
  Watchdog watchdog;
  watchdog.begin("the operands");
  const Problem problem(e);
  std::printf("## %ldx%ldx%ld: burst, hot (%zu input sets, ready after %.1f s)\n", static_cast<long>(e.m),
              static_cast<long>(e.n), static_cast<long>(e.k), problem.sets(), seconds_since(start));
  std::map<std::pair<device_code::Numerics, Tokens>, std::unique_ptr<Contestant>> bases;
  for (const Variant& v : variants(e)) {
    if (seconds_since(start) > seconds) {
      std::printf("  %s: left out, no time\n", words(v).c_str());
      continue;
    }
    watchdog.begin(words(v));
    try {
      auto one = std::make_unique<Contestant>(make(problem, v));
      std::unique_ptr<Contestant>& base = bases[{v.config.numerics, v.tokens}];
      print(*one, time(*one, base == nullptr ? *one : *base));
      if (base == nullptr) {
        base = std::move(one);
      }
    } catch (const Error& refusal) {
      std::printf("  %s: %s\n", words(v).c_str(), refusal.what());
    }
  }
  std::printf("  (%.1f s)\n", seconds_since(start));
}

const std::vector<device_code::Extents> problems{{256, 4096, 7168}, {1, 14336, 4096},  {64, 14336, 4096},
                                                 {512, 4096, 7168}, {256, 3072, 4096}, {512, 3072, 7168},
                                                 {16, 14336, 4096}, {128, 4096, 7168}, {2048, 14336, 4096}};

void warm() {
  ops::warm_program(device_code::preparation_program(), "sm_90a");
  int compiled = 0;
  int found = 0;
  for (const device_code::Extents& e : problems) {
    for (const Variant& v : variants(e)) {
      try {
        const bool is_new = ops::warm_program(device_code::program(v.config), "sm_90a") == ops::CodeOrigin::compiled;
        (is_new ? compiled : found) += 1;
      } catch (const Error& failure) {
        std::printf("%s: %s\n", words(v).c_str(), failure.what());
      }
    }
  }
  std::printf("%d compiled, %d found\n", compiled, found);
}

}  // namespace

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a row is seen when it is there, in a pipe too
  if (argc > 1 && std::strcmp(argv[1], "--warm") == 0) {
    warm();
    return 0;
  }
  double seconds = 20;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::stod(argv[++i]);
    } else {
      wanted.emplace_back(argv[i]);
    }
  }
  for (const device_code::Extents& e : problems) {
    const std::string text = fmt::format("{}x{}x{}", e.m, e.n, e.k);
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), text) != wanted.end()) {
      run(e, seconds);
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
