#include "arena/progress.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/printable.hpp"

namespace thresher::arena {
namespace {

class Output {
 public:
  ~Output() { std::fclose(file_); }
  std::FILE* file() { return file_; }
  std::string text() {
    std::rewind(file_);
    std::string all(4096, '\0');
    all.resize(std::fread(all.data(), 1, all.size(), file_));
    return all;
  }

 private:
  std::FILE* file_ = std::tmpfile();
};

TEST(Progress, TimeLeftComesFromGuessesAndThenFromWhatWasSeen) {
  double now_s = 0;
  Progress progress(nullptr, nullptr, [&] { return now_s; });
  progress.expect("correct", 4, 1);
  progress.expect("timed", 2, 10);
  EXPECT_DOUBLE_EQ(progress.seconds_left(), 24);
  progress.begin("correct", "a");
  now_s = 0.5;
  EXPECT_DOUBLE_EQ(progress.seconds_left(), 23.5);
  now_s = 3;
  progress.end();
  EXPECT_DOUBLE_EQ(progress.seconds_left(), 3 * 3 + 20);
  EXPECT_DOUBLE_EQ(progress.share_done(), 3.0 / 32);
  progress.leave("correct", 0);
  EXPECT_DOUBLE_EQ(progress.seconds_left(), 20);
}

/// A log on a full disk is no reason to end a tournament.
TEST(Progress, GoesOnWhereNothingCanBeWritten) {
  for (const bool is_terminal : {false, true}) {
    std::FILE* const full = std::fopen("/dev/full", "w");
    ASSERT_NE(full, nullptr);
    Progress progress(full, is_terminal ? [] { return std::size_t{80}; } : std::function<std::size_t()>(),
                      [] { return 0.0; });
    progress.expect("correct", 1, 1);
    progress.begin("correct", "a");
    progress.end();
    progress.say("a line");
    std::fclose(full);
  }
}

TEST(Progress, PipedItWritesPlainLinesAndNotManyOfThem) {
  double now_s = 0;
  Output output;
  Progress progress(output.file(), nullptr, [&] { return now_s; });
  progress.expect("correct", 100, 0.5);
  for (int i = 0; i < 100; ++i) {
    progress.begin("correct", "piece " + std::to_string(i));
    now_s += 0.5;
    progress.end();
  }
  progress.say("done");
  const std::string text = output.text();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.substr(0, text.find('\n')), "  0 %  50 s left  correct piece 0");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 12);
  EXPECT_NE(text.find("done\n"), std::string::npos);
}

TEST(Progress, OnATerminalABarIsDrawnOverItself) {
  double now_s = 0;
  Output output;
  Progress progress(output.file(), [] { return 80; }, [&] { return now_s; });
  progress.expect("timed", 2, 60);
  progress.begin("timed", "first");
  now_s = 60;
  progress.end();
  progress.begin("timed", "second");
  progress.say("said");
  const std::string text = output.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find("[============            ]  50 %  1 min 0 s left  timed second"), std::string::npos) << text;
}

TEST(Progress, TheBarIsNarrowerThanTheTerminalWhateverItsWidthBecomes) {
  for (const std::size_t columns : {1, 2, 20, 61, 80, 300}) {
    double now_s = 0;
    Output output;
    std::size_t asked = 0;
    Progress progress(output.file(), [&] { return columns + asked++; }, [&] { return now_s; });
    for (const std::string& what : {std::string(200, 'x'), std::string("short"), std::string("漢字漢字漢字漢字漢字")}) {
      progress.expect("timed", 1, 60);
      progress.begin("timed", what);
      progress.end();
      now_s += 1;
    }
    const std::string text = output.text();
    std::size_t drawn = 0;
    for (std::size_t start = text.find('\r'); start != std::string::npos; ++drawn) {
      const std::size_t end = text.find('\r', start + 1);
      const std::string line = text.substr(start + 4, end - start - 4);  // behind what wipes
      EXPECT_EQ(first_columns(line, columns + drawn - 1), line) << "on " << columns + drawn << " columns";
      start = end;
    }
    EXPECT_EQ(drawn, 3U);
  }
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(59), "59 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
}

}  // namespace
}  // namespace thresher::arena
