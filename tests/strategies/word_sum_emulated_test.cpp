// The sums over words as a GPU adds them up, in the emulator.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "strategies/direct_launch.hpp"
#include "strategies/word_sum/device/kernel.hpp"

namespace thresher::strategies::word_sum {
namespace {

TEST(WordSumKernel, GivesTheSumsOfAllWordsWhateverTheScheduleIs) {
  constexpr u64 count = 2 * 4 * threads + 37;  // the last round is not whole
  test::Memory words(count * sizeof(u64));
  test::Memory sums(2 * sizeof(u64));
  WordSums expected;
  for (u64 i = 0; i < count; ++i) {
    const u64 word = i * i * 0x123456789abcdefU;
    std::memcpy(words.data() + i * sizeof(u64), &word, sizeof word);
    expected.add(word, i);
  }
  emulator::GlobalMemory memory;
  memory.add("words", words.data(), words.size(), emulator::Use::input);
  memory.add("sums", sums.data(), sums.size(), emulator::Use::input_output);
  const WordSumParams params{{test::address_of(words.data())}, count, {test::address_of(sums.data())}};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::memset(sums.data(), 0, sums.size());
    const emulator::Report report = emulator::launch({.grid = {4, 1, 1}, .block = threads, .cluster = {1, 1, 1}},
                                                     test::options(seed), memory, [&] { add_words(params); });
    EXPECT_EQ(test::text_of(report.findings), "");
    std::array<u64, 2> found{};
    std::memcpy(found.data(), sums.data(), sizeof found);
    EXPECT_EQ(found, (std::array{expected.first, expected.second}));
  }
}

}  // namespace
}  // namespace thresher::strategies::word_sum
