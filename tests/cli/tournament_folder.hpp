#pragma once
/// A folder with a small suite and a pitch, and the command in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"

namespace thresher::testing {

inline constexpr const char* tiny_suite = R"(title = "Tiny"
operation = "dual_gemm"
distributions = ["contest"]
[[problem]]
m = 8
n = 64
k = 64
a = "nvfp4"
b = "nvfp4"
out = "fp16"
)";

inline constexpr const char* pitch = R"(title = "Blocks stay in cache"
[contestant]
operation = "dual_gemm"
strategy = "interleaved"
[baseline]
strategy = "two_pass"
[claim]
speedup = [1.1, 1.5]
confidence = 0.6
reason = "less traffic"
)";

/// The same without times.
inline std::string untimed_suite() {
  return std::string(tiny_suite).replace(std::string(tiny_suite).find("[[problem]]"), 0, "timed = false\n");
}

/// Whether a tournament ran to its end. Exit status 1 belongs to it: the gates `honest` and `timed` look at this
/// machine's own clock, and a machine that stalls may make them fail.
inline bool was_held(const Outcome& outcome) { return outcome.status == 0 || outcome.status == 1; }

/// Whether a gate's outcome may differ from one run to the next on a busy machine.
inline bool depends_on_the_clock(const nlohmann::json& gate) {
  return gate["gate"] == "honest" || gate["gate"] == "timed" || gate["gate"] == "verdict";
}

inline bool was_timed(const nlohmann::json& entry) {
  return std::any_of(entry["gates"].begin(), entry["gates"].end(),
                     [](const nlohmann::json& gate) { return gate["gate"] == "timed" && gate["outcome"] == "passed"; });
}

class TournamentFolder : public ::testing::Test {
 protected:
  TournamentFolder() {
    ::setenv("OMP_WAIT_POLICY", "passive", 1);  // several tests share the processors
    write("tiny.toml", tiny_suite);
    write("untimed.toml", untimed_suite());
    write("pitch.toml", pitch);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder() / name) << text; }
  const std::filesystem::path& folder() const { return scratch_.path(); }
  Outcome run(const std::string& arguments) const { return run_thresher(folder(), arguments); }
  nlohmann::json exported(const std::string& ledger = "ledger.sqlite") const {
    return nlohmann::json::parse(run("ledger export --ledger " + ledger).out);
  }

 private:
  ScratchFolder scratch_;
};

}  // namespace thresher::testing
