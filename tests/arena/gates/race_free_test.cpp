// The gate race-free: kernels that race fail it with the finding's words and seed, kernels that do not pass, and what
// cannot be emulated is not judged.
#include "arena/gates/race_free.hpp"
#include "arena/attention/task.hpp"
#include "arena/gemm/task.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "arena/contestants/registry.hpp"
#include "arena/emulation/host_kernel.hpp"
#include "arena/planted.hpp"
#include "machine/machine.hpp"
#include "runtime/host_compiler.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// What a planted kernel does between writing a word and overwriting its neighbour's.
enum class Between { barrier, nothing, a_word_of_the_thread_order, barrier_and_a_wrong_word };

class PlantedRun final : public EmulatedRun {
 public:
  PlantedRun(Between between, int& runs) : between_(between), runs_(runs) {
    memory_.add("out", out_.data(), out_.size(), emulator::Use::output);
  }
  emulator::Report run(const emulator::Options& options) override {
    ++runs_;
    emulator::LaunchShape shape;
    shape.block = 64;
    shape.dynamic_shared_bytes = 256;
    order_ = 0;
    return emulator::launch(shape, options, memory_, [this] { kernel(); });
  }
  std::span<const std::uint8_t> output() const override { return out_; }
  std::string wrong() const override {
    return between_ == Between::barrier_and_a_wrong_word ? "the word of thread 7 is 8" : "";
  }

 private:
  void kernel() {
    using namespace machine;
    const u32 thread = launch::thread_index();
    const Shared<u32> words = launch::shared_memory().as<u32>();
    words.store(thread, thread);
    if (between_ != Between::nothing) {
      block::sync();
    }
    words.store(thread ^ 1U, between_ == Between::a_word_of_the_thread_order ? order_++ : thread);
    block::sync();
    const Global<u32> out{reinterpret_cast<std::uintptr_t>(out_.data())};
    out.store(thread, words.load(thread));
  }

  Between between_;
  int& runs_;
  std::uint32_t order_ = 0;
  std::vector<std::uint8_t> out_ = std::vector<std::uint8_t>(256);
  emulator::GlobalMemory memory_;
};

class PlantedKernel final : public EmulatedKernel {
 public:
  PlantedKernel(Between between, int& runs) : between_(between), runs_(runs) {}
  std::string title() const override { return "planted"; }
  std::string key() const override { return "planted"; }
  std::string arguments(const Problem&) const override { return "planted --edges"; }
  std::vector<Problem> edges() const override { return {arena::problem_of(DualGemmProblem{})}; }
  void check(const Problem&) const override {}
  std::unique_ptr<EmulatedRun> on(const Problem&) const override {
    return std::make_unique<PlantedRun>(between_, runs_);
  }

 private:
  Between between_;
  int& runs_;
};

/// Without a compiler.
class UnavailableKernel final : public EmulatedKernel {
 public:
  std::string title() const override { return "unavailable"; }
  std::string key() const override { return "unavailable"; }
  std::string arguments(const Problem&) const override { return ""; }
  std::vector<Problem> edges() const override { return {arena::problem_of(DualGemmProblem{})}; }
  void check(const Problem&) const override {}
  std::unique_ptr<EmulatedRun> on(const Problem&) const override {
    throw Error(ErrorCode::unsupported, "there is no compiler");
  }
};

class EmulatedContestant final : public Contestant {
 public:
  explicit EmulatedContestant(std::function<Emulation(const Problem&)> emulation)
      : Contestant({"dual_gemm", "planted"}), emulation_(std::move(emulation)) {}
  Answer feasible(const Problem&, Memory&) const override { return {}; }
  Answer compile(const Problem&) const override { return {}; }
  std::unique_ptr<Runner> prepare(const Problem&, Memory&, const std::vector<DeviceSet>&) const override {
    return nullptr;
  }
  Emulation emulation(const Problem& problem) const override { return emulation_(problem); }

 private:
  std::function<Emulation(const Problem&)> emulation_;
};

class RaceFreeGateTest : public ::testing::Test {
 protected:
  RaceFreeGateTest() { suite_.problems = {arena::problem_of(DualGemmProblem{})}; }

  GateResult judge(const Contestant& contestant) {
    Progress progress = Progress::silent();
    Match match{suite_, contestant, contestant, nullptr, rig_, 7, {}, progress};
    return gate_->judge(match);
  }
  GateResult judge(Between between) {
    const auto kernel = std::make_shared<const PlantedKernel>(between, runs_);
    return judge(EmulatedContestant([&](const Problem&) { return Emulation{kernel, ""}; }));
  }
  /// The strategy's kernels as an H200 would launch them for the suite.
  GateResult judge(const std::string& strategy, const std::string& knobs = "") {
    return judge(EmulatedContestant([&](const Problem& problem) {
      return dual_gemm_operation().emulated()->planned(problem, {strategy, knobs}, device_spec("H200"));
    }));
  }

  FakeRig rig_;
  Suite suite_;
  std::unique_ptr<Gate> gate_ = make_race_free_gate();
  int runs_ = 0;
};

TEST_F(RaceFreeGateTest, KernelWithABarrierPasses) {
  const GateResult result = judge(Between::barrier);
  EXPECT_EQ(result.outcome, Outcome::passed) << result.sentence;
  EXPECT_EQ(std::get<RaceFreeEvidence>(result.evidence).seeds.size(), static_cast<std::size_t>(runs_));
}

TEST_F(RaceFreeGateTest, KernelWithoutItFailsWithTheFindingAndItsSeed) {
  const GateResult result = judge(Between::nothing);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_NE(result.sentence.find("race: shared bytes"), std::string::npos) << result.sentence;
  const ScheduleFinding found = std::get<RaceFreeEvidence>(result.evidence).kernels.at(0).finding.value();
  const std::string seed = std::to_string(found.seed);
  EXPECT_NE(result.sentence.find("seed " + seed), std::string::npos) << result.sentence;
  EXPECT_NE(found.text.find("race_free_test.cpp"), std::string::npos);
  EXPECT_EQ(found.replay, "thresher emulate planted --edges --schedules 1 --seed " + seed);
}

TEST_F(RaceFreeGateTest, ResultThatDependsOnTheScheduleFails) {
  const GateResult result = judge(Between::a_word_of_the_thread_order);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_NE(result.sentence.find("the result depends on the schedule"), std::string::npos) << result.sentence;
}

TEST_F(RaceFreeGateTest, ResultThatTheDefinitionDoesNotSayFails) {
  const GateResult result = judge(Between::barrier_and_a_wrong_word);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_NE(result.sentence.find("the result is wrong: the word of thread 7 is 8"), std::string::npos)
      << result.sentence;
}

TEST_F(RaceFreeGateTest, TheSameKernelIsRunOnce) {
  static_cast<void>(judge(Between::barrier));
  const int once = runs_;
  EXPECT_EQ(judge(Between::barrier).outcome, Outcome::passed);
  EXPECT_EQ(runs_, once);
}

TEST_F(RaceFreeGateTest, ForeignKernelsAndCpuProgramsAreNotJudged) {
  const GateResult foreign = judge(PlantedContestant("foreign", honest_kernel));
  EXPECT_EQ(foreign.outcome, Outcome::not_judged);
  EXPECT_NE(foreign.sentence.find("foreign kernel"), std::string::npos);
  const GateResult cpu = judge(*library_registry(Device::cpu())->create({"dual_gemm", "interleaved"}));
  EXPECT_EQ(cpu.outcome, Outcome::not_judged);
  EXPECT_NE(cpu.sentence.find("program of the CPU"), std::string::npos);
  const GateResult library = judge("two_pass");
  EXPECT_EQ(library.outcome, Outcome::not_judged);
  EXPECT_NE(library.sentence.find("cuBLASLt"), std::string::npos);
}

TEST_F(RaceFreeGateTest, KernelWithoutCodeIsNotJudged) {
  const auto kernel = std::make_shared<const UnavailableKernel>();
  const GateResult result = judge(EmulatedContestant([&](const Problem&) { return Emulation{kernel, ""}; }));
  EXPECT_EQ(result.outcome, Outcome::not_judged);
  EXPECT_EQ(result.sentence, "there is no compiler");
}

TEST_F(RaceFreeGateTest, PlannedKernelsOfTheOriginsProblemsPass) {
  suite_.problems.clear();
  for (const std::int64_t n : {4096, 3072}) {
    suite_.problems.push_back(problem_of(
        DualGemmProblem{.m = 256, .n = n, .k = 4096, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16}));
  }
  const GateResult fused = judge("interleaved");
  EXPECT_EQ(fused.outcome, Outcome::passed) << fused.sentence;
  EXPECT_EQ(std::get<RaceFreeEvidence>(fused.evidence).kernels.size(), 2U);
  for (Problem& problem : suite_.problems) {
    GroupedProblem& product = problem.as<ProductTask>().problem;
    product.a = product.b = Format::nvfp4;
    product.out = Format::fp16;
  }
  const GateResult packed = judge("packed");
  EXPECT_EQ(packed.outcome, Outcome::passed) << packed.sentence;
}

TEST(RaceFree, KernelsAreLaunchedAsDependentsAndHeldAgainstTheDefinition) {
  for (const auto& [operation, strategy] :
       {std::pair{&dual_gemm_operation(), "sequential"}, std::pair{&attention_operation(), "pipelined"}}) {
    const auto kernel = operation->emulated()->samples(strategy, nullptr).front();
    const Problem problem = kernel->edges().front();
    EXPECT_NE(kernel->arguments(problem).find("dependent_launch=true"), std::string::npos);
    const std::unique_ptr<EmulatedRun> run = kernel->on(problem);
    ASSERT_TRUE(run->run({}).clean());
    EXPECT_EQ(run->wrong(), "");
    constexpr std::uint8_t of_the_exponent = 0x40;
    const_cast<std::uint8_t*>(run->output().data())[1] ^= of_the_exponent;
    EXPECT_NE(run->wrong(), "");
  }
}

/// Kernels that the build did not compile in; compiled code is kept in a folder of the test's own.
class CompiledOnRequest : public RaceFreeGateTest {
 protected:
  CompiledOnRequest() { setenv("THRESHER_CACHE", cache_.path().c_str(), 1); }
  void SetUp() override {
    if (const runtime::HostCompiler compiler = runtime::find_host_compiler(); !compiler.problem.empty()) {
      GTEST_SKIP() << compiler.problem;
    }
    suite_.problems[0] = problem_of(
        DualGemmProblem{.m = 256, .n = 4096, .k = 4096, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
  }
  /// What the kernel `racy` or `ordered` of this text does on one schedule.
  static emulator::Report run(const std::string& kernel) {
    const strategies::HostKernel code =
        host_kernel({.title = kernel, .text = text, .kernels = {kernel}, .options = {}});
    std::vector<std::uint32_t> words(64);
    emulator::GlobalMemory memory;
    memory.add("words", words.data(), words.size() * 4, emulator::Use::input_output);
    emulator::LaunchShape shape;
    shape.block = 64;
    shape.dynamic_shared_bytes = 512;
    const std::uint64_t parameter = reinterpret_cast<std::uintptr_t>(words.data());
    return emulator::launch(shape, {}, memory, [&] { code(&parameter); });
  }

  ScratchFolder cache_;

 private:
  // cp.async stands for the words that no compiled-in kernel uses.
  static constexpr const char* text = R"(
#include "machine/machine.hpp"
using namespace thresher::machine;
template <bool ordered>
void copy(Global<u8> words) {
  const u32 thread = launch::thread_index();
  const Shared<u8> slot = launch::shared_memory().offset_bytes(thread * 4);
  async_copy::copy4(slot, words.offset(thread * 4));
  async_copy::commit();
  async_copy::wait<0>();
  if (ordered) {
    block::sync();
  }
  const u32 neighbour = launch::shared_memory().as<u32>().load(thread ^ 1U);
  words.as<u32>().store(thread, neighbour);
}
void racy(Global<u8> words) { copy<false>(words); }
void ordered(Global<u8> words) { copy<true>(words); }
)";
};

TEST_F(CompiledOnRequest, KnobsThatAreNotCompiledInAreJudged) {
  const GateResult result =
      judge("sequential", "block_outputs=48 warpgroup_tiles=1 math_warpgroups=2 split_k=1 stages=3 epilogue=tma");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.sentence;
}

TEST_F(CompiledOnRequest, AttentionsKernelsAreJudged) {
  suite_.problems = {problem_of(
      AttentionTask{{.heads = 8, .kv_heads = 2, .queries = 2048, .keys = 2048, .head_dim = 64, .causal = true}})};
  for (const char* strategy : {"simple", "pipelined"}) {
    const GateResult result = judge(EmulatedContestant([&](const Problem& one) {
      return attention_operation().emulated()->planned(one, {strategy, ""}, device_spec("H200"));
    }));
    EXPECT_EQ(result.outcome, Outcome::passed) << strategy << ": " << result.sentence;
  }
}

TEST(RaceFree, AttentionOfAFormatThatItDoesNotTakeIsRefused) {
  for (const char* knobs : {"", "keys=64"}) {
    const Problem nvfp4 = problem_of(AttentionTask{{.queries = 64, .keys = 64, .format = Format::nvfp4}});
    try {
      (void)attention_operation().emulated()->planned(nvfp4, {"pipelined", knobs}, device_spec("H200"));
      ADD_FAILURE() << "accepted with knobs \"" << knobs << "\"";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      EXPECT_NE(std::string(error.what()).find("nvfp4"), std::string::npos) << error.what();
    }
  }
}

TEST_F(CompiledOnRequest, WithoutACompilerTheyAreNot) {
  const char* const before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  setenv("CXX", "/no/such/compiler", 1);
  const GateResult result =
      judge("sequential", "block_outputs=48 warpgroup_tiles=1 math_warpgroups=2 split_k=1 stages=2 epilogue=tma");
  before == nullptr ? unsetenv("CXX") : setenv("CXX", kept.c_str(), 1);
  EXPECT_EQ(result.outcome, Outcome::not_judged);
  EXPECT_NE(result.sentence.find("/no/such/compiler"), std::string::npos) << result.sentence;
}

TEST_F(CompiledOnRequest, FindingsNameTheirSourceLines) {
  const emulator::Report racy = run("racy");
  ASSERT_FALSE(racy.clean());
  EXPECT_NE(to_string(racy.findings.front()).find("src/program.cpp:14"), std::string::npos)
      << to_string(racy.findings.front());
  const emulator::Report ordered = run("ordered");
  EXPECT_TRUE(ordered.clean()) << to_string(ordered.findings.front());
}

}  // namespace
}  // namespace thresher::arena
