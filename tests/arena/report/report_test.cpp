#include "arena/report/report.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "arena/expect_error.hpp"
#include "arena/sample_run.hpp"
#include "arena/text_file.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

TEST(Report, IsOneFileThatAsksForNothing) {
  const std::string page = report_html(sample_run());
  for (const char* load : {" src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(page.find(load), std::string::npos) << load;
  }
  EXPECT_NE(page.find("Chart.js"), std::string::npos) << "the chart library is inside, with its licence notice";
  for (const char* place : {"/*style*/", "/*data*/", "/*profiles*/", "/*charts*/", "/*script*/"}) {
    EXPECT_EQ(page.find(place), std::string::npos) << place;
  }
}

TEST(Report, NothingInTheDataEndsItsElement) {
  RunRecord run = sample_run();
  run.entries[1].sentence = "</script><script>alert(1)</script>";
  EXPECT_EQ(report_html(run).find("alert(1)</script>"), std::string::npos);
}

TEST(Report, ShowsOnlyWhatIsAProfile) {
  const fs::path file = fs::path(::testing::TempDir()) / "profile.json";
  write_text(file, sample_profile(), "the file");
  EXPECT_NE(report_html(sample_run(), {read_profile(file)}).find("\"clock_ghz\":1.71"), std::string::npos);
  write_text(file, "{}", "the file");
  EXPECT_EQ(error_of([&] { (void)read_profile(file); }),
            "profile " + file.string() + ": not what `thresher profile --json` writes");
  EXPECT_EQ(error_of([] { (void)read_profile("/none.json"); }),
            "profile /none.json: the file cannot be read: No such file or directory");
}

TEST(Report, FoldersThatCannotBeWrittenAreNamed) {
  EXPECT_EQ(error_of([] { prepare_report_folder("/proc/nothing"); }),
            "the report folder /proc/nothing cannot be made: No such file or directory");
  const fs::path file = fs::path(::testing::TempDir()) / "a-file";
  write_text(file, "", "the file");
  EXPECT_NE(error_of([&] { prepare_report_folder(file); }).find("cannot be made"), std::string::npos);
}

}  // namespace
}  // namespace thresher::arena
