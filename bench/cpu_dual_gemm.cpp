// Times the CPU's two dual-GEMM strategies on the origin's four problems, NVFP4 in and fp16 out. Data have the
// contest's distribution: magnitudes up to 1.5 with random sign, scales uniform in [0, 1).
//
// Both run in every iteration. Counters are the median time of each in microseconds, their ratio (above 1: interleaved
// is faster) and the workspace of each. A process of its own for each measures how far one run raises the peak of
// resident memory above the operands.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu/dual_gemm.hpp"
#include "formats/numbers.hpp"

namespace {

using thresher::DualGemmProblem;
using thresher::Format;
using thresher::Tensor;
using Clock = std::chrono::steady_clock;

constexpr std::array strategies{"interleaved", "two_pass"};

constexpr std::array origin{
    DualGemmProblem{.m = 256, .n = 4096, .k = 7168, .a = Format::nvfp4, .b = Format::nvfp4},
    DualGemmProblem{.m = 512, .n = 4096, .k = 7168, .a = Format::nvfp4, .b = Format::nvfp4},
    DualGemmProblem{.m = 256, .n = 3072, .k = 4096, .a = Format::nvfp4, .b = Format::nvfp4},
    DualGemmProblem{.m = 512, .n = 3072, .k = 7168, .a = Format::nvfp4, .b = Format::nvfp4},
};

struct Operand {
  std::int64_t rows;
  std::int64_t k;
  std::vector<std::uint8_t> values;
  std::vector<std::uint8_t> scales;

  Operand(std::int64_t row_count, std::int64_t depth, std::mt19937& random) : rows(row_count), k(depth) {
    values.resize(static_cast<std::size_t>(rows * k / 2));
    for (std::uint8_t& byte : values) {
      byte = static_cast<std::uint8_t>(random() & 0xBB);  // e2m1 codes 0 to 3 with either sign
    }
    std::uniform_real_distribution<float> below_one(0.0F, 1.0F);
    scales.resize(thresher::scale_bytes(rows, k, thresher::ScaleLayout::row_major));
    for (std::uint8_t& scale : scales) {
      scale = thresher::formats::float_to_e4m3(below_one(random));
    }
  }

  [[nodiscard]] Tensor view() { return Tensor::nvfp4(values.data(), scales.data(), rows, k); }
};

struct Operands {
  std::mt19937 random{1};
  Operand a;
  Operand b1_gate;
  Operand b2_up;
  std::vector<std::uint16_t> c;

  explicit Operands(const DualGemmProblem& problem)
      : a(problem.m, problem.k, random),
        b1_gate(problem.n, problem.k, random),
        b2_up(problem.n, problem.k, random),
        c(static_cast<std::size_t>(problem.m * problem.n)) {}
};

/// One strategy, planned, with its workspace.
class Contestant {
 public:
  Contestant(const char* strategy, const DualGemmProblem& problem, Operands& operands)
      : kernel_(thresher::cpu::plan_dual_gemm(strategy, problem)),
        workspace_(std::aligned_alloc(64, std::max<std::size_t>(64, kernel_->workspace_bytes()))),
        a_(operands.a.view()),
        b1_gate_(operands.b1_gate.view()),
        b2_up_(operands.b2_up.view()),
        c_(Tensor::contiguous(operands.c.data(), Format::fp16, {problem.m, problem.n})) {}

  void run() const { kernel_->run(a_, b1_gate_, b2_up_, c_, workspace_.get()); }
  void timed_run() {
    const Clock::time_point start = Clock::now();
    run();
    microseconds_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  [[nodiscard]] double median_us() {
    const auto middle = microseconds_.begin() + static_cast<std::ptrdiff_t>(microseconds_.size() / 2);
    std::nth_element(microseconds_.begin(), middle, microseconds_.end());
    return *middle;
  }
  [[nodiscard]] double workspace_mib() const { return static_cast<double>(kernel_->workspace_bytes()) / 0x1p20; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::unique_ptr<const thresher::cpu::DualGemmKernel> kernel_;
  std::unique_ptr<void, Free> workspace_;
  Tensor a_;
  Tensor b1_gate_;
  Tensor b2_up_;
  Tensor c_;
  std::vector<double> microseconds_;
};

double peak_resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// Runs in a child, so that nothing else counts; -1 if that fails. Call it before this process starts OpenMP threads.
double peak_growth_mib(const char* strategy, const DualGemmProblem& problem) {
  double growth = -1.0;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    return growth;
  }
  const pid_t child = fork();
  if (child == 0) {
    Operands operands(problem);
    const double before = peak_resident_mib();
    Contestant(strategy, problem, operands).run();
    growth = peak_resident_mib() - before;
    const bool written = write(ends[1], &growth, sizeof(growth)) == sizeof(growth);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0 || read(ends[0], &growth, sizeof(growth)) != sizeof(growth)) {
    growth = -1.0;
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return growth;
}

void compare(benchmark::State& state, const DualGemmProblem& problem, std::array<double, 2> peak_mib) {
  Operands operands(problem);
  std::array contestants{Contestant(strategies[0], problem, operands), Contestant(strategies[1], problem, operands)};
  for (const Contestant& contestant : contestants) {
    contestant.run();
  }
  for ([[maybe_unused]] auto _ : state) {
    for (Contestant& contestant : contestants) {
      contestant.timed_run();
    }
  }
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const std::string name = strategies[i];
    state.counters[name + "_us"] = contestants[i].median_us();
    state.counters[name + "_workspace_MiB"] = contestants[i].workspace_mib();
    state.counters[name + "_peak_MiB"] = peak_mib[i];
  }
  state.counters["ratio"] = contestants[1].median_us() / contestants[0].median_us();
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const DualGemmProblem& problem : origin) {
    const std::array peak_mib{peak_growth_mib(strategies[0], problem), peak_growth_mib(strategies[1], problem)};
    const std::string name =
        std::to_string(problem.m) + "x" + std::to_string(problem.n) + "x" + std::to_string(problem.k);
    benchmark::RegisterBenchmark(name.c_str(), compare, problem, peak_mib)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(30)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
}
