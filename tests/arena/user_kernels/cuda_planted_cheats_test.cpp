// The same for a GPU.
#include "arena/user_kernels/kernel_files.hpp"
#include "support/gpu.hpp"

namespace thresher::arena {
namespace {

constexpr const char* suite =
    "title = \"One\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\", \"full_range\", \"normal\"]\n"
    "[[problem]]\nm = 64\nn = 512\nk = 1024\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
constexpr const char* launch = "grid = [\"div_up(n, 32)\", \"div_up(m, 8)\"]\nblock = [32, 8]\n";
constexpr const char* two_pass = "strategy = \"two_pass\"";

using PlantedCudaCheats = CheatsOfAClass;

TEST_P(PlantedCudaCheats, FailInWordsThatSayWhy) {
  SKIP_WITHOUT_GPU();
  const std::vector<KernelFile> planted = kernels(std::string("cheats/") + GetParam(), ".cu", launch, two_pass);
  const TournamentResult result = hold(pitches_of(planted), suite, "cuda:0");
  for (const KernelFile& cheat : planted) {
    expect_caught(cheat, entry(result, cheat.name));
  }
  print(planted, result);
}

INSTANTIATE_TEST_SUITE_P(Class, PlantedCudaCheats, ::testing::ValuesIn(classes_of_cheats), name_of_class);

using UnusualCudaKernels = KernelFiles;

TEST_F(UnusualCudaKernels, AreNotAccused) {
  SKIP_WITHOUT_GPU();
  const std::vector<KernelFile> honest = kernels("unusual", ".cu", launch, two_pass);
  const TournamentResult result = hold(pitches_of(honest), suite, "cuda:0");
  for (const KernelFile& kernel : honest) {
    expect_not_accused(kernel, entry(result, kernel.name));
  }
  print(honest, result);
}

}  // namespace
}  // namespace thresher::arena
