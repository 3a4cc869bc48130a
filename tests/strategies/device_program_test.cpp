#include "strategies/device_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace thresher::strategies {
namespace {

bool holds(const std::vector<EmbeddedFile>& files, std::string_view name) {
  return std::ranges::any_of(files, [&](const EmbeddedFile& file) { return file.name == name; });
}

TEST(IncludedSources, HoldWhatIsIncludedDirectlyOrNot) {
  const auto files = included_sources("#include \"pipeline/wgmma_skeleton.hpp\"\n");
  EXPECT_TRUE(holds(files, "pipeline/wgmma_skeleton.hpp"));
  EXPECT_TRUE(holds(files, "pipeline/ring.hpp"));
  EXPECT_TRUE(holds(files, "machine/ptx/barrier.hpp"));
}

/// A change of a file elsewhere would otherwise compile every program again.
TEST(IncludedSources, HoldNothingElse) {
  const auto files = included_sources("#include \"pipeline/wgmma_skeleton.hpp\"\n");
  EXPECT_TRUE(
      std::ranges::none_of(files, [](const EmbeddedFile& file) { return file.name.starts_with("strategies/"); }));
  EXPECT_TRUE(included_sources("// machine/barrier.hpp\n#include \"of_another_place.hpp\"\n").empty());
}

}  // namespace
}  // namespace thresher::strategies
