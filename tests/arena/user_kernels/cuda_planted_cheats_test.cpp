// Cheats for a GPU fail at a gate with a sentence that says why.
#include "arena/user_kernels/planted_cheats.hpp"
#include "support/gpu.hpp"

namespace thresher::arena {
namespace {

using PlantedCudaCheats = PlantedCheats;

TEST_P(PlantedCudaCheats, FailInWordsThatSayWhy) {
  SKIP_WITHOUT_GPU();
  constexpr const char* suite =
      "title = \"One\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\", \"full_range\", \"normal\"]\n"
      "[[problem]]\nm = 64\nn = 512\nk = 1024\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
  const std::vector<Cheat> planted =
      cheats(".cu", "grid = [\"div_up(n, 32)\", \"div_up(m, 8)\"]\nblock = [32, 8]\n", "strategy = \"two_pass\"");
  expect_caught(planted, hold(pitches_of(planted), suite, "cuda:0"));
}

INSTANTIATE_TEST_SUITE_P(Class, PlantedCudaCheats, ::testing::ValuesIn(classes_of_cheats), name_of_class);

}  // namespace
}  // namespace thresher::arena
