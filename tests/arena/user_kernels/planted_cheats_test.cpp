// Cheats for the CPU fail at a gate with a sentence that says why; honest kernels of unusual kinds do not fail.
#include "arena/user_kernels/kernel_files.hpp"

namespace thresher::arena {
namespace {

// Two threads of a baseline wait for each other where tests share the processors.
constexpr const char* one_thread = "strategy = \"two_pass\"\nknobs = { threads = 1 }";

/// `times`: "timed = false", or how they are taken.
std::string suite(const std::string& times) {
  return "title = \"Small\"\noperation = \"dual_gemm\"\n" + times +
         "\ndistributions = [\"contest\", \"full_range\", \"normal\"]\n"
         "[[problem]]\nm = 7\nn = 72\nk = 64\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
}
// Cold calls rotate over many buffers, warm ones are fewer and sooner taken.
constexpr const char* untimed = "timed = false";
constexpr const char* cold = "cache = \"cold\"";
constexpr const char* warm = "cache = \"warm\"";

/// What shows the cheats of a class.
const char* times_for(const std::string& what_it_counts_on) {
  return what_it_counts_on == "timed_outputs" || what_it_counts_on == "told_apart"         ? cold
         : what_it_counts_on == "verdict_rules" || what_it_counts_on == "known_beforehand" ? warm
                                                                                           : untimed;
}

using PlantedCheats = CheatsOfAClass;

TEST_P(PlantedCheats, FailInWordsThatSayWhy) {
  const std::vector<KernelFile> planted = kernels(std::string("cheats/") + GetParam(), ".cpp", "", one_thread);
  const TournamentResult result = hold(pitches_of(planted), suite(times_for(GetParam())));
  for (const KernelFile& cheat : planted) {
    expect_caught(cheat, entry(result, cheat.name));
  }
  print(planted, result);
}

INSTANTIATE_TEST_SUITE_P(Class, PlantedCheats, ::testing::ValuesIn(classes_of_cheats), name_of_class);

using UnusualKernels = KernelFiles;

TEST_F(UnusualKernels, AreNotAccused) {
  const std::vector<KernelFile> honest = kernels("unusual", ".cpp", "", one_thread);
  const TournamentResult result = hold(pitches_of(honest), suite(warm));
  for (const KernelFile& kernel : honest) {
    expect_not_accused(kernel, entry(result, kernel.name));
  }
  print(honest, result);
}

}  // namespace
}  // namespace thresher::arena
