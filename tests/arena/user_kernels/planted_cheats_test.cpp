// Cheats for the CPU fail at a gate with a sentence that says why. Times decide about none of them but those that are
// many times slower.
#include "arena/user_kernels/planted_cheats.hpp"

namespace thresher::arena {
namespace {

// Two threads of a baseline wait for each other where tests share the processors.
constexpr const char* one_thread = "strategy = \"two_pass\"\nknobs = { threads = 1 }";

TEST_P(PlantedCheats, FailInWordsThatSayWhy) {
  const std::vector<Cheat> planted = cheats(".cpp", "", one_thread);
  const bool is_timed = std::any_of(planted.begin(), planted.end(), [](const Cheat& cheat) {
    return cheat.gates.find("timed") != std::string::npos || cheat.gates == "rejected";
  });
  const std::string suite = std::string("title = \"Small\"\noperation = \"dual_gemm\"\n") +
                            "distributions = [\"contest\", \"full_range\", \"normal\"]\ntimed = " +
                            (is_timed ? "true" : "false") +
                            "\n[[problem]]\nm = 7\nn = 72\nk = 64\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
  expect_caught(planted, hold(pitches_of(planted), suite));
}

INSTANTIATE_TEST_SUITE_P(Class, PlantedCheats, ::testing::ValuesIn(classes_of_cheats), name_of_class);

}  // namespace
}  // namespace thresher::arena
