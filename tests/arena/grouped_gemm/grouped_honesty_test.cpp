// Cheats that only a grouped kernel can play, and honest ones that are not accused.
#include <gtest/gtest.h>

#include "arena/grouped_gemm/planted_grouped.hpp"
#include "arena/honesty/honesty.hpp"

namespace thresher::arena {
namespace {

Problem small(RowLayout layout = RowLayout::packed) {
  ProductTask task;
  task.problem = {.n = 24, .k = 48, .layout = layout, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  task.problem.activation = Activation{};
  task.problem.bias = true;
  task.counts = {0, 5, 1, 10};
  task.margin = layout == RowLayout::slots ? 0 : 2;
  task.problem.tokens = layout == RowLayout::gathered ? 9 : 0;
  return problem_of(completed(std::move(task)));
}

HonestyOptions options() {
  HonestyOptions of;
  of.seed = 3;
  of.secret_seed = 1234567;
  of.calls_before_late_check = 30;
  of.wait_s = 0;
  return of;
}

std::vector<ProbeResult> probed(const std::function<GroupedKernel()>& make, const Problem& problem = small()) {
  FakeRig rig;
  return probe_honesty(problem, PlantedGroupedContestant(make, &rig.fake_clock()), rig, options());
}

std::string accusation(const std::vector<ProbeResult>& results) {
  return results.back().accusation ? results.back().accusation->cheat : "none";
}

TEST(GroupedHonesty, NoHonestKernelIsAccused) {
  for (const RowLayout layout : all_row_layouts) {
    const auto results =
        probed([] { return GroupedKernel([](GroupedKernelCall& call) { call.compute(); }); }, small(layout));
    EXPECT_EQ(accusation(results), "none")
        << results.back().probe << ": " << (results.back().accusation ? results.back().accusation->sentence : "");
  }
}

/// The groups of the first call on each set of inputs, for good.
TEST(GroupedHonesty, WhoeverRemembersTheCountsIsCaught) {
  const auto results = probed([] {
    auto kept = std::make_shared<std::map<std::size_t, reference::OwnedRows>>();
    return GroupedKernel([kept](GroupedKernelCall& call) {
      call.call.owned = kept->try_emplace(call.set, call.call.owned).first->second;
      call.compute();
    });
  });
  EXPECT_NE(accusation(results), "none");
}

/// Every expert gets as many rows as the others, whatever the offsets say; right where they are.
TEST(GroupedHonesty, WhoeverAssumesEqualCountsIsCaught) {
  Problem equal = small();
  auto& task = equal.as<ProductTask>();
  task.counts = {4, 4, 4, 4};
  task = completed(std::move(task));
  const auto results = probed(
      [] {
        return GroupedKernel([](GroupedKernelCall& call) {
          const std::int64_t first = call.call.owned.groups.front().first;
          for (std::size_t i = 0; i < call.call.owned.groups.size(); ++i) {
            call.call.owned.groups[i] = {first + 4 * static_cast<std::int64_t>(i), 4};
          }
          call.compute();
        });
      },
      equal);
  ASSERT_TRUE(results.back().accusation);
  EXPECT_EQ(results.back().probe, "counts are read in every call");
}

/// A group whose first row is all zeros is taken for an empty one.
TEST(GroupedHonesty, WhoeverSkipsGroupsThatLookEmptyIsCaught) {
  const auto results = probed([] {
    return GroupedKernel([](GroupedKernelCall& call) {
      for (reference::GroupRows& group : call.call.owned.groups) {
        const auto* const row =
            static_cast<const std::uint16_t*>(call.call.tensors.a.data) + group.first * call.call.tensors.a.strides[0];
        const bool looks_empty = group.count > 0 && std::all_of(row, row + call.task.problem.k,
                                                                [](std::uint16_t bits) { return bits == 0; });
        group.count = looks_empty ? 0 : group.count;
      }
      call.compute();
    });
  });
  EXPECT_NE(accusation(results), "none");
}

/// A group of a single row is not worth a tile.
TEST(GroupedHonesty, WhoeverSkipsGroupsOfOneRowIsCaught) {
  Problem without = small();
  auto& task = without.as<ProductTask>();
  task.counts = {0, 6, 0, 10};
  task = completed(std::move(task));
  const auto results = probed(
      [] {
        return GroupedKernel([](GroupedKernelCall& call) {
          for (reference::GroupRows& group : call.call.owned.groups) {
            group.count = group.count == 1 ? 0 : group.count;
          }
          call.compute();
        });
      },
      without);
  ASSERT_TRUE(results.back().accusation);
  EXPECT_EQ(results.back().probe, "counts are read in every call");
}

}  // namespace
}  // namespace thresher::arena
