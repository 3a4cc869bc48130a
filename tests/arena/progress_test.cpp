#include "arena/progress.hpp"

#include <gtest/gtest.h>

#include <cstdio>

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
  Progress progress(nullptr, false, [&] { return now_s; });
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

TEST(Progress, PipedItWritesPlainLinesAndNotManyOfThem) {
  double now_s = 0;
  Output output;
  Progress progress(output.file(), false, [&] { return now_s; });
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
  Progress progress(output.file(), true, [&] { return now_s; });
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

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(59), "59 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
}

}  // namespace
}  // namespace thresher::arena
