// The report as headless Chromium sees it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "arena/report/report.hpp"
#include "arena/results/shard_json.hpp"
#include "arena/sample_run.hpp"
#include "arena/text_file.hpp"
#include "core/input_file.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

/// Looks at the finished page and tells the outermost document, which keeps it as an attribute.
constexpr const char* listener = R"(<script>
addEventListener("message", (event) => { document.documentElement.dataset.probe = event.data; });
</script>)";
constexpr const char* probe = R"(<script>
addEventListener("error", (event) => { window.errors = (window.errors || []).concat(event.message); });
addEventListener("load", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const drawn = [...document.querySelectorAll("canvas")].map((canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let inked = 0;
    for (let i = 3; i < pixels.length; i += 4) inked += pixels[i] > 0 ? 1 : 0;
    return inked / (pixels.length / 4);
  });
  const hidden = (node) => getComputedStyle(node).display === "none";
  const scrolls = (node) => node.parentElement.closest(".scroll") !== null;
  const overflowing = [...document.querySelectorAll("body *")].filter((node) => !hidden(node) && !scrolls(node) &&
    node.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map((node) => node.tagName + "." + node.className);
  const cut = [...document.querySelectorAll(".scroll")].filter((node) => node.firstChild.className === "stack" &&
    node.scrollWidth > node.clientWidth + 1).map((node) => node.innerText.slice(0, 40));
  const small = [...document.querySelectorAll("body *")].filter((node) => node.childNodes.length && node.innerText &&
    !hidden(node) && parseFloat(getComputedStyle(node).fontSize) < 12).map((node) => node.tagName);
  const colours = {};
  const painted = (contestant, colour) => {
    const node = document.body.appendChild(document.createElement("i"));
    node.style.color = colour;
    if (contestant.startsWith("dual_gemm/")) (colours[contestant] ||= []).push(getComputedStyle(node).color);
    node.remove();
  };
  for (const span of document.querySelectorAll('.legend > span:has(.swatch)'))
    painted(span.innerText, getComputedStyle(span.querySelector(".swatch")).backgroundColor);
  for (const chart of Object.values(Chart.instances))
    (chart.data.labels || []).forEach((label, i) => painted(label, chart.data.datasets[0].backgroundColor[i]));
  parent.postMessage(JSON.stringify({
    errors: window.errors || [], width: innerWidth, pageWidth: document.documentElement.scrollWidth, drawn, overflowing, cut, small,
    text: document.body.innerText, buttons: document.querySelectorAll(".tabs button").length,
    rects: document.querySelectorAll("svg rect").length,
    flatRects: [...document.querySelectorAll("svg rect")].filter((rect) => rect.getBoundingClientRect().width < .5 ||
      rect.getBoundingClientRect().height < .5).length,
    colours, injected: document.querySelectorAll("h2 b").length,
  }), "*");
});
</script>)";

class BrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "there is no chromium on this machine";
    }
  }

  /// Runs Chromium over the page; what it wrote to standard output and error.
  std::string browse(const std::string& options) const {
    const std::string command =
        "timeout 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage "
        "--hide-scrollbars --virtual-time-budget=5000 --enable-logging=stderr --log-level=0 "
        "--user-data-dir='" +
        (folder_ / "profile").string() + "' --window-size=1400,3100 " + options + " 'file://" +
        (folder_ / "probe.html").string() + "' >'" + (folder_ / "out").string() + "' 2>'" + (folder_ / "err").string() +
        "'";
    const int raw = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(raw), 0) << read_input_file(folder_ / "err").bytes.value_or("");
    return read_input_file(folder_ / "out").bytes.value_or("") + read_input_file(folder_ / "err").bytes.value_or("");
  }

  /// What the probe saw in a frame of this width: Chromium opens no window as narrow as a phone.
  nlohmann::json look(const RunRecord& run, int width) {
    std::string page = report_html(run, {sample_profile()});
    page.insert(page.find("<style>"), probe);
    write_text(folder_ / "framed.html", page, "the page");
    write_text(folder_ / "probe.html",
               listener + std::string("<iframe src='framed.html' height='3000' style='border:0' width='") +
                   std::to_string(width) + "'></iframe>",
               "the page");
    const std::string seen = browse("--dump-dom");
    EXPECT_EQ(seen.find("CONSOLE"), std::string::npos) << seen.substr(seen.find("CONSOLE"), 300);
    const std::string mark = "data-probe=\"";
    const std::size_t start = seen.find(mark);
    if (start == std::string::npos) {
      ADD_FAILURE() << "the page's script did not end";
      return {};
    }
    std::string text = seen.substr(start + mark.size(), seen.find('"', start + mark.size()) - start - mark.size());
    for (const auto& [entity, character] :
         {std::pair{"&quot;", "\""}, {"&lt;", "<"}, {"&gt;", ">"}, {"&nbsp;", " "}, {"&amp;", "&"}}) {
      for (std::size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at) {
        text.replace(at, std::string(entity).size(), character);
      }
    }
    return nlohmann::json::parse(text);
  }

  ScratchFolder folder_;
};

void expect_readable(const nlohmann::json& seen, int width) {
  EXPECT_EQ(seen["errors"], nlohmann::json::array());
  EXPECT_EQ(seen["width"], width);
  EXPECT_LE(seen["pageWidth"], width) << seen["overflowing"];
  EXPECT_EQ(seen["overflowing"], nlohmann::json::array());
  EXPECT_EQ(seen["cut"], nlohmann::json::array()) << "tables that need no scrolling";
  EXPECT_EQ(seen["small"], nlohmann::json::array()) << "text under 12 pixels";
  EXPECT_EQ(seen["drawn"].size(), 4U) << "two problems, claims and predictions against measurements";
  EXPECT_EQ(seen["rects"], 128 + 3 + 2) << "blocks, and segments of two roles";
  EXPECT_EQ(seen["flatRects"], 0) << "rectangles that nobody sees";
  for (const auto& share : seen["drawn"]) {
    EXPECT_GT(share, 0.02) << "an empty chart";
  }
  EXPECT_EQ(seen["buttons"], 2);
  EXPECT_EQ(seen["injected"], 0) << "text is text";
  const std::string text = seen["text"];
  for (const char* wanted : {"The origin's four problems",
                             "The edges of tiles <b>&amp;",
                             "accepted",
                             "rejected",
                             "failed at correct",
                             "gate and up swapped",
                             "</script>",
                             "no disassembler was found",
                             "1.5–1.8×",
                             "as claimed, within its interval",
                             "less than claimed",
                             "floor",
                             "sustained line",
                             "GCC 12.2.0",
                             "A Processor With a Rather Long Name",
                             "power cap",
                             "The cold times are not cold: rotated over 330 MiB",
                             "it needs 3.0 s",
                             "23.3 GiB",
                             "The panel, before anything ran",
                             "1.27–1.54×",
                             "0.71",
                             "Predicted against measured",
                             "median error 10.0 % of 6 times",
                             "Where the time goes",
                             "could give back at most 2.8 % [2.0 %, 3.0 %]",
                             "128 blocks for 42.0 µs at 1.71 GHz",
                             "seed 7"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  }
}

TEST_F(BrowserTest, IsReadableOnADesk) { expect_readable(look(sample_run(), 1280), 1280); }

TEST_F(BrowserTest, IsReadableOnAPhone) { expect_readable(look(sample_run(), 390), 390); }

TEST_F(BrowserTest, AContestantHasOneColourInEveryPlot) {
  RunRecord run = sample_run();
  Entry faster = sample_entry("decode", "dual_gemm/sequential", "accepted", 1.2);
  faster.ordinal = static_cast<std::int64_t>(run.entries.size());
  faster.context = run.context;
  run.entries.push_back(faster);
  run.arguments.replace(run.arguments.find("\"suites\":["), 10,
                        R"("suites":[{"name":"decode","title":"Decoding","timed":true,"text":""},)");
  const nlohmann::json seen = look(run, 1280);
  EXPECT_EQ(seen["errors"], nlohmann::json::array());
  EXPECT_EQ(seen["colours"].size(), 3U);
  std::set<std::string> all;
  for (const auto& [contestant, colours] : seen["colours"].items()) {
    EXPECT_GT(colours.size(), 3U) << contestant << ": two legends and a bar for each problem";
    EXPECT_EQ(std::set<std::string>(colours.begin(), colours.end()).size(), 1U) << contestant << ": " << colours;
    all.insert(colours.front());
  }
  EXPECT_EQ(all.size(), 3U) << "no two have the same";
}

TEST_F(BrowserTest, TheFirstGateThatStoodInTheWayIsTheOneThatFailed) {
  const nlohmann::json seen = look(sample_run(), 1280);
  EXPECT_NE(seen["text"].get<std::string>().find("correct: failed"), std::string::npos)
      << "not the gate before it that could not be judged";
}

TEST_F(BrowserTest, TheMachinesOfAMergedRunAreToldApart) {
  RunRecord run = sample_run();
  const std::string shard = add_shard(run.arguments, {{1, 3}, {}});
  const std::string other = R"({"name":"node18","cpu":"Another Processor","memory_bytes":64000000000})";
  run.arguments = add_merge(shard, {3,
                                    {{1, "cpu", R"({"name":"node17","cpu":"A Processor"})", "b", "e", "ab", {0, 1}},
                                     {3, "cpu", other, "b", "e", "cd", {2, 3}}},
                                    {2}});
  const nlohmann::json seen = look(run, 390);
  EXPECT_EQ(seen["errors"], nlohmann::json::array());
  EXPECT_EQ(seen["overflowing"], nlohmann::json::array());
  const std::string text = seen["text"];
  for (const char* wanted : {"merged from 2 shards", "dual_gemm/sequential (shard 3)", "Shard 1: node17 (A Processor)",
                             "Shard 3: node18 (Another Processor)", "59.6 GiB", "Missing: shard 2."}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  }
  run.arguments = shard;
  EXPECT_NE(look(run, 390)["text"].get<std::string>().find("Shard 1 of 3 of a tournament."), std::string::npos);
}

TEST_F(BrowserTest, AnUnfinishedRunWithoutEntriesIsAPageToo) {
  RunRecord run = sample_run();
  run.entries.clear();
  run.ended.clear();
  const nlohmann::json seen = look(run, 1280);
  EXPECT_EQ(seen["errors"], nlohmann::json::array());
  EXPECT_NE(seen["text"].get<std::string>().find("unfinished"), std::string::npos);
}

}  // namespace
}  // namespace thresher::arena
