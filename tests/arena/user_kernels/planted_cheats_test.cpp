// Cheats for the CPU fail at a gate with a sentence that says why; honest kernels of unusual kinds do not fail.
#include "arena/user_kernels/kernel_files.hpp"

namespace thresher::arena {
namespace {

// Two threads of a baseline wait for each other where tests share the processors.
constexpr const char* one_thread = "strategy = \"two_pass\"\nknobs = { threads = 1 }";

std::string suite(bool is_timed) {
  return std::string("title = \"Small\"\noperation = \"dual_gemm\"\ntimed = ") + (is_timed ? "true" : "false") +
         "\ndistributions = [\"contest\", \"full_range\", \"normal\"]\n"
         "[[problem]]\nm = 7\nn = 72\nk = 64\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
}

using PlantedCheats = CheatsOfAClass;

TEST_P(PlantedCheats, FailInWordsThatSayWhy) {
  const std::vector<KernelFile> planted = kernels(std::string("cheats/") + GetParam(), ".cpp", "", one_thread);
  const bool is_timed = std::any_of(planted.begin(), planted.end(), [](const KernelFile& cheat) {
    const std::string first = cheat.source.substr(0, cheat.source.find(": "));
    return first.find("timed") != std::string::npos || first.find("rejected") != std::string::npos;
  });
  const TournamentResult result = hold(pitches_of(planted), suite(is_timed));
  for (const KernelFile& cheat : planted) {
    expect_caught(cheat, entry(result, cheat.name));
  }
  print(planted, result);
}

INSTANTIATE_TEST_SUITE_P(Class, PlantedCheats, ::testing::ValuesIn(classes_of_cheats), name_of_class);

using UnusualKernels = KernelFiles;

TEST_F(UnusualKernels, AreNotAccused) {
  const std::vector<KernelFile> honest = kernels("unusual", ".cpp", "", one_thread);
  const TournamentResult result = hold(pitches_of(honest), suite(true));
  for (const KernelFile& kernel : honest) {
    expect_not_accused(kernel, entry(result, kernel.name));
  }
  print(honest, result);
}

}  // namespace
}  // namespace thresher::arena
