#include "arena/profile/profile.hpp"
#include "arena/gemm/task.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "arena/expect_error.hpp"
#include "arena/gemm/kernel_variant.hpp"
#include "arena/operations.hpp"
#include "pipeline/timeline.hpp"

namespace thresher::arena {
namespace {

using pipeline::Moment;

constexpr pipeline::Shape shape{.math_warpgroups = 1, .profiled = true};

/// Timestamps of one role: cycles of its moments (0: not marked) at 2 GHz, from cycle `start` and nanosecond `ns`.
void put(std::vector<std::uint64_t>& words, int block, int role, std::uint64_t start, std::uint64_t ns,
         std::vector<std::uint64_t> cycles) {
  auto* const at = words.data() + block * pipeline::profile_words_of_block(shape) + role * pipeline::profile_words;
  for (std::size_t moment = 0; moment < cycles.size(); ++moment) {
    at[moment] = moment == 0 || cycles[moment] != 0 ? start + cycles[moment] : 0;
  }
  at[pipeline::moments] = ns;
  at[pipeline::moments + 1] = ns + cycles.back() / 2;
}

/// Two blocks; the second starts 3 µs after the first, and its multiprocessor counts cycles from elsewhere.
std::vector<std::uint64_t> two_blocks() {
  std::vector<std::uint64_t> words(2 * static_cast<std::size_t>(pipeline::profile_words_of_block(shape)));
  put(words, 0, 0, 1'000'000, 5'000, {0, 1'000, 2'000, 12'000, 12'400, 16'000});
  put(words, 0, 1, 1'000'000, 5'000, {0, 600, 800, 0, 0, 10'000});
  put(words, 1, 0, 77'000'000, 8'000, {0, 1'000, 2'000, 14'000, 14'400, 18'000});
  put(words, 1, 1, 77'000'000, 8'000, {0, 600, 800, 0, 0, 12'000});
  return words;
}

TEST(Timeline, IsOfTheMedianBlockInMicroseconds) {
  const Timeline timeline = read_timeline(two_blocks(), shape);
  EXPECT_DOUBLE_EQ(timeline.clock_ghz, 2);
  ASSERT_EQ(timeline.roles.size(), 2U);
  const RoleTimeline& math = timeline.roles[0];
  EXPECT_EQ(math.role, "math 0");
  ASSERT_EQ(math.segments.size(), 5U);
  const std::vector<double> lengths{0.5, 0.5, 5.5, 0.2, 1.8};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_NEAR(math.segments[i].end_us - math.segments[i].begin_us, lengths[i], 1e-9) << math.segments[i].name;
  }
  EXPECT_EQ(math.segments[2].name, "main loop");
  EXPECT_EQ(math.segments[4].name, "epilogue");
  const RoleTimeline& loader = timeline.roles[1];
  EXPECT_EQ(loader.role, "loader");
  ASSERT_EQ(loader.segments.size(), 2U);
  EXPECT_EQ(loader.segments[1].name, "loads");
  EXPECT_NEAR(loader.segments[1].end_us, 5.5, 1e-9);
  ASSERT_EQ(timeline.blocks.size(), 2U);
  EXPECT_DOUBLE_EQ(timeline.blocks[0].begin_us, 0);
  EXPECT_DOUBLE_EQ(timeline.blocks[0].end_us, 8);
  EXPECT_DOUBLE_EQ(timeline.blocks[1].begin_us, 3);
  EXPECT_DOUBLE_EQ(timeline.span_us, 12);
}

TEST(Timeline, AMomentThatWasNotMarkedBelongsToTheNextSegment) {
  std::vector<std::uint64_t> words = two_blocks();
  for (const int block : {0, 1}) {
    words[static_cast<std::size_t>(block * pipeline::profile_words_of_block(shape)) +
          static_cast<std::size_t>(Moment::first_slot)] = 0;
  }
  const Timeline timeline = read_timeline(words, shape);
  ASSERT_EQ(timeline.roles[0].segments.size(), 4U);
  EXPECT_EQ(timeline.roles[0].segments[1].name, "main loop");
  EXPECT_NEAR(timeline.roles[0].segments[1].begin_us, 0.5, 1e-9);
}

TEST(Timeline, ABlockThatLeftNothingIsNamed) {
  std::vector<std::uint64_t> words = two_blocks();
  words[static_cast<std::size_t>(pipeline::profile_words_of_block(shape))] = 0;
  EXPECT_EQ(error_of([&] { (void)read_timeline(words, shape); }), "block 1 left no timestamps of role 0");
  EXPECT_EQ(error_of([&] { (void)read_timeline({}, shape); }), "there are no timestamps to read");
}

TEST(Profile, NeedsAGpuAndSaysSo) {
  const Problem problem = arena::problem_of(DualGemmProblem{.m = 8, .n = 8, .k = 64});
  EXPECT_EQ(error_of([&] { (void)profile(*cpu_rig(), problem, {}); }),
            "profile needs a GPU: there is none here, and the emulator's schedules do not measure time");
}

TEST(Profile, AnOperationWithoutKernelsToLookIntoSaysSo) {
  const Operation& attention = find_operation("attention");
  const auto rig = cpu_rig();
  EXPECT_EQ(
      error_of([&] { (void)attention.prepare_variant(attention.example(), {}, rig->device(), rig->memory(), {}, {}); }),
      "attention has no kernels that can be looked into");
}

TEST(Profile, SaysWhatEachPartCouldGiveBack) {
  const Profile found{
      .contestant = "packed",
      .problem = "256x4096x7168",
      .machine = "a GPU",
      .us = 40,
      .timeline = read_timeline(two_blocks(), shape),
      .parts = {{"epilogue", "left out", 39, {0.025, 0.02, 0.03}}, {"epilogue", "done twice", 42, {0.05, 0.04, 0.06}}}};
  const std::string text = to_text(found);
  for (const char* wanted : {"packed on 256x4096x7168, a GPU: 40.0 us", "2 blocks on the GPU for 12.0 us at 2.00 GHz",
                             "main loop 5.50", "could give back at most 2.5 % [2.0, 3.0]", "costs again 5.0 %"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " in\n" << text;
  }
  const auto json = nlohmann::json::parse(to_json(found));
  EXPECT_EQ(json["timeline"]["roles"][0]["segments"].size(), 5U);
  EXPECT_EQ(json["parts"][0]["share"]["high"], 0.03);
}

}  // namespace
}  // namespace thresher::arena
