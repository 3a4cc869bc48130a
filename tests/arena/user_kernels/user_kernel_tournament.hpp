#pragma once
/// A tournament with a kernel from outside, in a folder of its own.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "arena/tournament.hpp"
#include "runtime/process.hpp"

namespace thresher::arena {

inline const std::filesystem::path example_folder =
    std::filesystem::path(THRESHER_SOURCE_DIR) / "examples/bring-your-own";

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

class OwnTournament : public ::testing::Test {
 protected:
  /// A kernel whose pitch says so much and no more of itself.
  Pitch pitch_of(const std::string& name, const std::string& file, const std::string& source,
                 const std::string& kernel_table, const std::string& baseline_table = "strategy = \"two_pass\"") {
    std::ofstream(folder_.path() / file) << source;
    return parse_pitch("title = \"Mine\"\n[contestant]\noperation = \"dual_gemm\"\nstrategy = \"" + name +
                           "\"\n[kernel]\nsource = \"" + file + "\"\nentry = \"mine\"\n" + kernel_table +
                           "\n[baseline]\n" + baseline_table +
                           "\n[claim]\nspeedup = 1\nconfidence = 0\nreason = \"none\"\n",
                       (folder_.path() / "pitch.toml").string());
  }

  /// A C++ kernel whose body is `body`; it has `call`, `row` and `column` loops to itself.
  Pitch host_pitch(const std::string& name, const std::string& body, const std::string& kernel_table = "") {
    return pitch_of(name, name + ".cpp",
                    "#include \"thresher/own_kernel.h\"\n#include <cstdlib>\nextern \"C\" void mine(const "
                    "thresher_own_dual_gemm* call) {\n" +
                        body + "\n}\n",
                    kernel_table);
  }

  TournamentResult hold(const std::vector<Pitch>& pitches, const std::string& suite,
                        const std::string& device = "cpu") {
    TournamentOptions options;
    options.suites = {parse_suite(suite, "small", "small.toml")};
    options.pitches = pitches;
    options.seed = 3;
    options.seconds = 0.1;
    options.server = {THRESHER_BINARY, "serve-calls"};
    const std::unique_ptr<Rig> rig = make_rig(device);
    Ledger ledger(folder_.path() / "ledger.sqlite", Ledger::Access::write);
    Progress progress = Progress::silent();
    return hold_tournament(options, *rig, *library_registry(rig->device()), ledger, progress);
  }

  static const Entry& entry(const TournamentResult& result, const std::string& strategy) {
    for (const Entry& candidate : result.run.entries) {
      if (candidate.contestant == "dual_gemm/" + strategy) {
        return candidate;
      }
    }
    throw std::runtime_error("no entry of " + strategy);
  }

  static const GateResult& gate(const Entry& entry, GateKind kind) {
    const GateResult* const found = find_gate(entry.gates, kind);
    if (found == nullptr) {
      throw std::runtime_error("no gate " + std::string(name(kind)));
    }
    return *found;
  }

  static constexpr const char* tiny_suite =
      "title = \"Small\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\", \"integers\"]\ntimed = false\n"
      "[[problem]]\nm = 33\nn = 72\nk = 64\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";

  runtime::TemporaryFolder folder_;
};

}  // namespace thresher::arena
