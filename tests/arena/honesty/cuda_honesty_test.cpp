// The gate `honest` on a GPU: cheats around two_pass are caught by name, and the library's strategies are not accused.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "arena/contestants/registry.hpp"
#include "arena/gates/honest.hpp"
#include "arena/gemm/task.hpp"
#include "arena/rig/cuda_rig.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "support/gpu.hpp"

namespace thresher::arena {
namespace {

/// What a cheat may get hold of in one call.
struct Stage {
  Runner& real;
  const std::vector<DeviceSet>& sets;
  const std::vector<runtime::DeviceBuffer>& kept;  ///< as much as c, for each set
  Stream stream;
  Stream elsewhere;
  std::size_t set;
  bool is_first;  ///< on this set
  int number;     ///< calls of this runner before this one

  void compute() const { real.run(stream, set); }
  [[nodiscard]] const Tensor& a() const { return sets[set].tensor("a"); }
  [[nodiscard]] const Tensor& c() const { return sets[set].tensor("c"); }
  [[nodiscard]] std::size_t c_bytes() const { return kept[set].bytes(); }
};

using Act = std::function<void(const Stage&)>;

class CheatRunner final : public Runner {
 public:
  CheatRunner(std::unique_ptr<Runner> real, const std::vector<DeviceSet>& sets, Act act)
      : real_(std::move(real)), sets_(sets), act_(std::move(act)), elsewhere_(0), seen_(sets.size(), false) {
    for (const DeviceSet& set : sets) {
      const Tensor& c = set.tensor("c");
      kept_.emplace_back(0, static_cast<std::size_t>(c.elements() * bits(c.format) / 8));
    }
  }
  void run(Stream stream, std::size_t set) override {
    act_({*real_, sets_, kept_, stream, elsewhere_.get(), set, !seen_[set], calls_++});
    seen_[set] = true;
  }

 private:
  std::unique_ptr<Runner> real_;
  const std::vector<DeviceSet>& sets_;
  Act act_;
  runtime::OwnedStream elsewhere_;
  std::vector<runtime::DeviceBuffer> kept_;
  std::vector<bool> seen_;
  int calls_ = 0;
};

class CheatContestant final : public Contestant {
 public:
  CheatContestant(std::unique_ptr<Contestant> real, Act act)
      : Contestant(real->spec()), real_(std::move(real)), act_(std::move(act)) {}
  Answer feasible(const Problem& problem, Memory& memory) const override { return real_->feasible(problem, memory); }
  Answer compile(const Problem& problem) const override { return real_->compile(problem); }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                  const std::vector<DeviceSet>& sets) const override {
    return std::make_unique<CheatRunner>(real_->prepare(problem, memory, sets), sets, act_);
  }

 private:
  std::unique_ptr<Contestant> real_;
  Act act_;
};

Suite suite_of(Format format) {
  Suite suite;
  suite.name = "planted";
  suite.distributions = {Distribution::contest};
  suite.problems = {problem_of(DualGemmProblem{256, 1024, 1024, format, format, Format::fp16, {}})};
  return suite;
}

GateResult judged(const Contestant& contestant, Rig& rig, Format format) {
  Progress progress = Progress::silent();
  const Suite suite = suite_of(format);
  Match match{suite, contestant, contestant, nullptr, rig, 42, {}, progress};
  return make_honest_gate()->judge(match);
}

struct Cheat {
  std::vector<std::string> accusations;  ///< any of them: which experiment comes first is a matter of chance
  Act act;
};

std::vector<Cheat> cheats() {
  return {
      {{"works on another stream"}, [](const Stage& stage) { stage.real.run(stage.elsewhere, stage.set); }},
      {{"one launch serves many calls"},
       [](const Stage& stage) {
         for (std::size_t each = 0; each < stage.sets.size(); ++each) {
           stage.real.run(stage.stream, each);
         }
       }},
      {{"answers from a cache keyed by pointer"},
       [](const Stage& stage) {
         if (stage.is_first) {
           stage.compute();
           runtime::copy_async(stage.kept[stage.set].data(), stage.c().data, stage.c_bytes(), stage.stream, 0);
         } else {
           runtime::copy_async(stage.c().data, stage.kept[stage.set].data(), stage.c_bytes(), stage.stream, 0);
         }
       }},
      {{"leaves the outputs of last time"},
       [](const Stage& stage) {
         if (stage.is_first) {
           stage.compute();
         }
       }},
      {{"changes its inputs"},
       [](const Stage& stage) {
         stage.compute();
         runtime::fill_async(stage.a().data, 0x11, 2, stage.stream, 0);
       }},
      {{"writes outside its outputs"},
       [](const Stage& stage) {
         stage.compute();
         runtime::fill_async(static_cast<std::byte*>(stage.c().data) + stage.c_bytes(), 0x11, 2, stage.stream, 0);
       }},
      {{"returns its input"},
       [](const Stage& stage) {
         const auto a_bytes = static_cast<std::size_t>(stage.a().elements() * bits(stage.a().format) / 8);
         runtime::copy_async(stage.c().data, stage.a().data, std::min(a_bytes, stage.c_bytes()), stage.stream, 0);
       }},
      {{"NaN instead of an answer"},
       [](const Stage& stage) { runtime::fill_async(stage.c().data, 0xFF, stage.c_bytes(), stage.stream, 0); }},
      {{"right at first and wrong later", "one tile wrong"},
       [](const Stage& stage) {
         stage.compute();
         if (stage.number > 20) {
           runtime::fill_async(stage.c().data, 0x2E, 64, stage.stream, 0);
         }
       }},
  };
}

class CudaCheat : public ::testing::TestWithParam<std::size_t> {};

TEST_P(CudaCheat, IsCaughtByName) {
  SKIP_WITHOUT_GPU();
  const Cheat cheat = cheats()[GetParam()];
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const CheatContestant contestant(library_registry(rig->device())->create({"dual_gemm", "two_pass"}), cheat.act);
  const GateResult result = judged(contestant, *rig, Format::bf16);
  EXPECT_EQ(result.outcome, Outcome::failed) << cheat.accusations.front();
  EXPECT_TRUE(std::any_of(cheat.accusations.begin(), cheat.accusations.end(),
                          [&](const std::string& accusation) { return result.sentence.starts_with(accusation); }))
      << cheat.accusations.front() << ": " << result.sentence;
}

INSTANTIATE_TEST_SUITE_P(Cheats, CudaCheat, ::testing::Range<std::size_t>(0, cheats().size()));

TEST(CudaHonesty, TheLibrarysStrategiesAreNotAccused) {
  SKIP_WITHOUT_GPU();
  const std::unique_ptr<Rig> rig = cuda_rig(0);
  const std::unique_ptr<Registry> registry = library_registry(rig->device());
  for (const std::string& strategy : registry->strategies("dual_gemm")) {
    for (const Format format : {Format::nvfp4, Format::bf16}) {
      const auto contestant = registry->create({"dual_gemm", strategy});
      const GateResult result = judged(*contestant, *rig, format);
      // A strategy that does not take the format is not asked.
      EXPECT_NE(result.outcome, Outcome::failed) << strategy << ", " << name(format) << ": " << result.sentence;
      RecordProperty(strategy + "_" + std::string(name(format)), result.sentence);
    }
  }
}

}  // namespace
}  // namespace thresher::arena
