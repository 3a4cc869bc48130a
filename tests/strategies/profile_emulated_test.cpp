// Profiled kernels on the emulator: what the roles leave is a timeline, and kernels that leave a part out are as clean
// as the whole ones.
#include <gtest/gtest.h>

#include "emulated_case.hpp"
#include "pipeline/timeline.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"

namespace thresher::strategies::gemm::fused {
namespace {

constexpr std::int64_t rows = 128;
constexpr std::int64_t outputs = 64;
constexpr std::int64_t inner = 512;
constexpr std::int64_t blocks = 2;

std::string title(const Config& config) { return knob_table().knobs(config).text(); }

struct Ran {
  emulator::Report report;
  std::vector<std::uint64_t> words;
  bool wrote_outputs = false;
};

Ran run(const Config& config, std::uint64_t seed) {
  const DualGemmProblem problem{
      .m = rows, .n = outputs, .k = inner, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  test::DualGemmCase host = test::DualGemmCase::random(problem, {}, 1);
  Ran ran;
  ran.words.resize(static_cast<std::size_t>(blocks * pipeline::profile_words_of_block(shape_of(config))));
  const Tensor words =
      Tensor::contiguous(ran.words.data(), Format::int32, {2 * static_cast<std::int64_t>(ran.words.size())});
  const auto* const c = static_cast<const std::uint16_t*>(host.c.view().data);
  const std::vector<std::uint16_t> before(c, c + rows * outputs);
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  ran.report = test::emulated_call(planned_call(problem, config), host, words).run(options);
  ran.wrote_outputs = !std::equal(before.begin(), before.end(), c);
  return ran;
}

class Profile : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const Config& config() { return profiled_configs()[GetParam()]; }
};

TEST_P(Profile, RunsCleanly) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Ran ran = run(config(), seed);
    for (const emulator::Finding& finding : ran.report.findings) {
      ADD_FAILURE() << title(config()) << ", ablation " << static_cast<int>(config().ablation) << ": "
                    << to_string(finding);
    }
    EXPECT_EQ(ran.wrote_outputs, config().ablation != pipeline::Ablation::no_epilogue);
  }
}

TEST_P(Profile, MomentsFollowOneAnother) {
  using pipeline::Moment;
  const Ran ran = run(config(), 3);
  const bool multiplies = config().ablation != pipeline::Ablation::loads_only;
  for (std::size_t block = 0; block < blocks; ++block) {
    for (int role = 0; role <= config().math_warpgroups; ++role) {
      const std::uint64_t* const at =
          ran.words.data() + block * static_cast<std::size_t>(pipeline::profile_words_of_block(shape_of(config()))) +
          static_cast<std::size_t>(role * pipeline::profile_words);
      const bool is_loader = role == config().math_warpgroups;
      std::vector<Moment> expected{Moment::started, Moment::ready};
      if (is_loader || multiplies) {
        expected.push_back(Moment::first_slot);
      }
      if (!is_loader) {
        expected.push_back(Moment::drained);
        expected.push_back(Moment::merged);
      }
      expected.push_back(Moment::finished);
      for (std::size_t i = 1; i < expected.size(); ++i) {
        EXPECT_GE(at[static_cast<int>(expected[i])], at[static_cast<int>(expected[i - 1])])
            << "block " << block << ", role " << role << ", moment " << i;
      }
      EXPECT_GT(at[pipeline::moments + 1], at[pipeline::moments]) << "nanoseconds";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllAblations, Profile, ::testing::Range(std::size_t{0}, profiled_configs().size()));

}  // namespace
}  // namespace thresher::strategies::gemm::fused
