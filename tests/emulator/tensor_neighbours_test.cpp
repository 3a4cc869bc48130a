// Blocks that share the tensor memory of a multiprocessor.
#include <gtest/gtest.h>

#include <set>

#include "emulator/kernels/tensor_neighbours.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator {
namespace {

using planted::NeighbourDefect;
using planted::NeighboursParams;

class TensorNeighbours : public ::testing::Test {
 protected:
  test::Subject subject(NeighbourDefect defect) {
    params_ = {{test::address_of(places_)}, defect};
    test::Subject subject;
    subject.shape.grid.x = 2;
    subject.shape.cluster.x = 2;
    subject.shape.dynamic_shared_bytes = 1024;
    test::add(subject.memory, "places", places_, Use::output);
    subject.kernel = [this] { planted::tensor_neighbours(params_); };
    subject.correct = [this] {
      pairs_.insert({places_[0], places_[1]});
      return places_[0] % 256 == 0 && places_[1] % 256 == 0;
    };
    return subject;
  }
  /// Where the columns of the two blocks were, in the schedules that ran.
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs_;

 private:
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(2);
  NeighboursParams params_{};
};

TEST_F(TensorNeighbours, CorrectOneIsCleanWhereverItsColumnsAre) {
  test::expect_clean(subject(NeighbourDefect::none));
  EXPECT_TRUE(pairs_.count({0, 0}) == 1) << "alone";
  EXPECT_TRUE(pairs_.count({0, 256}) == 1 && pairs_.count({256, 0}) == 1) << "beside each other";
}
TEST_F(TensorNeighbours, BlocksThatTogetherWantMoreThanThereIs) {
  test::expect_found(subject(NeighbourDefect::takes_all_columns), FindingKind::deadlock,
                     {"wait for 512 columns of tensor memory", "holds 512", "cluster barrier"});
}
TEST_F(TensorNeighbours, AllocationNotGivenUpBeforeWaitingForTheOther) {
  test::expect_found(subject(NeighbourDefect::keeps_allocation), FindingKind::deadlock,
                     {"wait for 256 columns", "has not given up allocation"});
}
// On a multiprocessor that has no room for two of them each block has its own columns.
TEST_F(TensorNeighbours, BlocksThatDoNotFitTogetherMayTakeAll) {
  test::Subject large = subject(NeighbourDefect::takes_all_columns);
  large.shape.dynamic_shared_bytes = 120 * 1024;
  test::expect_clean(large);
}

TEST_F(TensorNeighbours, DISABLED_CleanOn1000Schedules) { test::expect_clean(subject(NeighbourDefect::none), 1000); }

}  // namespace
}  // namespace thresher::emulator
