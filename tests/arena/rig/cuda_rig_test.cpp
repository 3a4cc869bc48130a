// The arena on a GPU: its memory, its clock, and two_pass before the gate `correct`.
#include "arena/rig/cuda_rig.hpp"
#include "arena/gemm/task.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "arena/contestants/registry.hpp"
#include "arena/gates/correctness.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "support/gpu.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

TEST(CudaMemory, GuardZonesShowAWrite) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  GuardedBuffer buffer(rig->memory(), 1000);
  buffer.fill(0x11);
  EXPECT_FALSE(buffer.damage().has_value());
  rig->memory().fill(static_cast<std::byte*>(buffer.data()) + 1002, 0x22, 3);
  const std::optional<GuardDamage> damage = buffer.damage();
  ASSERT_TRUE(damage.has_value());
  EXPECT_TRUE(damage->after);
  EXPECT_EQ(damage->distance, 3U);
  EXPECT_EQ(damage->bytes, 3U);
}

TEST(CudaRig, ACacheThatWasSetAsideIsPutRight) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const std::size_t before = runtime::persisting_cache_bytes(0);
  EXPECT_EQ(rig->restore(), "");
  runtime::set_persisting_cache_bytes(0, std::size_t{4} << 20);
  ASSERT_NE(runtime::persisting_cache_bytes(0), before) << "the GPU has no such part, or had it already";
  EXPECT_EQ(rig->restore(), "it left a part of the GPU's cache set aside for lines that persist");
  EXPECT_EQ(runtime::persisting_cache_bytes(0), before);
  EXPECT_EQ(rig->restore(), "");
}

TEST(CudaMemory, SaysWhatIsFree) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const std::size_t before = rig->memory().available_bytes();
  EXPECT_GT(before, 0U);
  const GuardedBuffer large(rig->memory(), std::size_t{256} << 20);
  EXPECT_LT(rig->memory().available_bytes(), before);
}

/// Fills `bytes` of GPU memory a call, on the clock's stream or on one of its own.
class FillRunner final : public Runner {
 public:
  FillRunner(std::size_t bytes, bool on_own_stream) : buffer_(0, bytes), own_(0), on_own_stream_(on_own_stream) {}
  void run(Stream stream, std::size_t) override {
    runtime::fill_async(buffer_.data(), 1, buffer_.bytes(), on_own_stream_ ? own_.get() : stream, 0);
    ++calls_;
  }
  [[nodiscard]] int calls() const { return calls_; }

 private:
  runtime::DeviceBuffer buffer_;
  runtime::OwnedStream own_;
  bool on_own_stream_;
  int calls_ = 0;
};

TEST(CudaClock, MeasuresABatchTwiceFromOneCapture) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  FillRunner runner(std::size_t{16} << 20, false);
  const Batch batch{.calls = 10, .first_set = 0, .num_sets = 1};
  const Reading first = rig->clock().measure(runner, batch);
  const int calls_captured = runner.calls();
  const Reading second = rig->clock().measure(runner, batch);
  EXPECT_EQ(runner.calls(), calls_captured);
  for (const Reading& reading : {first, second}) {
    EXPECT_GT(reading.us_per_call, 0);
    EXPECT_GE(reading.watch_us_per_call, reading.us_per_call);
  }
  EXPECT_TRUE(rig->clock().telemetry().clock_mhz.has_value());
}

TEST(CudaClock, WorkOnAnotherStreamCannotBeCaptured) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  FillRunner runner(std::size_t{1} << 20, true);
  EXPECT_THROW(static_cast<void>(rig->clock().measure(runner, {.calls = 1, .first_set = 0, .num_sets = 1})), Error);
}

TEST(CudaRig, DescribesTheMachine) {
  SKIP_WITHOUT_GPU();
  const Machine machine = cuda_rig(0)->machine();
  EXPECT_EQ(machine.device, "cuda:0");
  EXPECT_GT(machine.gpu.value().multiprocessors, 0);
  EXPECT_FALSE(machine.gpu.value().driver.empty());
}

TEST(CudaRig, MeasuresItsCeilings) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const Ceilings& ceilings = rig->ceilings();
  EXPECT_GT(ceilings.sustained_operations_per_s, 1e12);
  EXPECT_GT(ceilings.bytes_per_s, 1e11);
  if (ceilings.peak_operations_per_s > 0) {
    EXPECT_GT(ceilings.peak_operations_per_s, ceilings.sustained_operations_per_s);
  }
}

TEST(CudaTwoPass, PassesTheGateCorrect) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const auto contestant = library_registry(rig->device())->create({"dual_gemm", "two_pass"});
  for (const Format format : {Format::nvfp4, Format::fp16, Format::bf16}) {
    for (const Distribution distribution : all_distributions) {
      const Problem problem = arena::problem_of(DualGemmProblem{129, 200, 208, format, format, Format::fp16, {}});
      if (!problem.operation().offers(problem, distribution)) {
        continue;
      }
      const TrialResult result = run_trial(make_trial(problem, distribution, {DeviceKind::cuda}, 5), *contestant, *rig);
      EXPECT_TRUE(result.finding.correct) << result.problem << " " << result.distribution << ": "
                                          << result.finding.fault << ", " << result.finding.sentence;
    }
  }
}

TEST(CudaFastNumerics, PassTheGateCorrectByTheirOwnDefinitionAlone) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const auto contestant = library_registry(rig->device())->create({"dual_gemm", "packed", {{"numerics", "fast"}}});
  Problem problem = arena::problem_of(DualGemmProblem{129, 200, 208, Format::nvfp4, Format::nvfp4, Format::fp16, {}});
  if (!contestant->unsupported_reason(problem).empty()) {
    GTEST_SKIP() << contestant->unsupported_reason(problem);
  }
  for (const Format tokens : {Format::nvfp4, Format::fp16, Format::bf16}) {
    for (const Distribution distribution : all_distributions) {
      problem.as<ProductTask>().problem.a = tokens;
      const Maker maker{DeviceKind::cuda, contestant->numerics()};
      const TrialResult result = run_trial(make_trial(problem, distribution, maker, 5), *contestant, *rig);
      EXPECT_TRUE(result.finding.correct) << result.problem << " " << result.distribution << ": "
                                          << result.finding.fault << ", " << result.finding.sentence;
    }
  }
  const Trial exact = make_trial(problem, Distribution::normal, {DeviceKind::cuda, Numerics::exact}, 5);
  EXPECT_FALSE(run_trial(exact, *contestant, *rig).finding.correct);
}

}  // namespace
}  // namespace thresher::arena
