// Defects of two blocks that multiply as a pair.
#include <gtest/gtest.h>

#include "emulator/kernels/tensor_pair.hpp"
#include "emulator/nvfp4_operand.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator {
namespace {

using planted::PairDefect;
using planted::PairParams;
using test::Nvfp4Operand;

constexpr std::uint32_t rows = 256;
constexpr std::uint32_t columns = planted::pair_columns;
constexpr std::uint32_t steps = 3;
constexpr std::uint32_t tiles = 2;
constexpr std::uint32_t k = 256 * steps;

class TensorPair : public ::testing::Test {
 protected:
  test::Subject subject(PairDefect defect, std::uint32_t tile_count = tiles) {
    constexpr auto bytes = machine::ElementType::uint8;
    params_.a = test::map_2d(a_.codes.data(), bytes, rows, k / 2, 128, 128, machine::Swizzle::b128);
    params_.b = test::map_2d(b_.codes.data(), bytes, columns, k / 2, columns / 2, 128, machine::Swizzle::b128);
    params_.a_scales = scales(a_);
    params_.b_scales = scales(b_);
    params_.c = {test::address_of(c_)};
    params_.steps = steps;
    params_.tiles = tile_count;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.grid.x = 2;
    subject.shape.cluster.x = 2;
    subject.shape.block = 192;
    subject.shape.dynamic_shared_bytes = planted::pair_shared_bytes;
    test::add(subject.memory, "a", a_.codes, Use::input);
    test::add(subject.memory, "b", b_.codes, Use::input);
    test::add(subject.memory, "a scales", a_.scales, Use::input);
    test::add(subject.memory, "b scales", b_.scales, Use::input);
    test::add(subject.memory, "c", c_, Use::output);
    subject.kernel = [this] { planted::tensor_pair(params_); };
    subject.correct = [this] { return c_ == expected_; };
    return subject;
  }

  void finds(PairDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  static machine::TensorMap scales(const Nvfp4Operand& of) {
    return test::map_2d(of.scales.data(), machine::ElementType::uint8, of.scales.size() / 256, 256, 8, 256,
                        machine::Swizzle::none);
  }

  Nvfp4Operand a_{rows, k, 1};
  Nvfp4Operand b_{columns, k, 2};
  std::vector<float> c_ = std::vector<float>(std::size_t{tiles} * rows * columns);
  std::vector<float> expected_ = test::product(a_, rows, b_, columns, k, tiles);
  PairParams params_{};
};

TEST_F(TensorPair, CorrectOneIsCleanAndComputesTheProduct) { test::expect_clean(subject(PairDefect::none), 32); }
// measurements/emulator_tensor_1000_schedules_*.txt has the command.
TEST_F(TensorPair, DISABLED_CleanOn1000Schedules) { test::expect_clean(subject(PairDefect::none), 1000); }

TEST_F(TensorPair, ScalesOfBInOneBlockAlone) {
  finds(PairDefect::scales_of_b_in_one_block, FindingKind::uninitialised, {"tcgen05 of thread 160", "rank 1"});
}
TEST_F(TensorPair, CommitToTheOwnBlockAlone) {
  finds(PairDefect::commit_to_own_block, FindingKind::deadlock, {"empty[0]", "rank 1"});
}
TEST_F(TensorPair, FullBarrierThatCountsOneLoader) {
  finds(PairDefect::full_expects_one_arrival, FindingKind::arrival_count, {"full["});
}
TEST_F(TensorPair, OddBlockLoadsOnItsOwnBarrier) {
  finds(PairDefect::odd_loads_on_own_barrier, FindingKind::deadlock, {"full[0]", "arrived 1 of 2"});
}
TEST_F(TensorPair, OddBlockReturnsEarly) {
  test::expect_found(subject(PairDefect::odd_returns_early, 1), FindingKind::left_cluster_early,
                     {"rank 1", "ended while another block", "tcgen05"});
}
TEST_F(TensorPair, BothBlocksIssue) { finds(PairDefect::both_issue, FindingKind::tensor_in_flight, {"tcgen05::"}); }
TEST_F(TensorPair, AllocationBeforeTheClusterHasMet) {
  finds(PairDefect::allocates_before_meeting, FindingKind::left_cluster_early,
        {"tensor_memory::allocate", "may not have started"});
}
TEST_F(TensorPair, PlacesLeftInOtherWords) {
  finds(PairDefect::leaves_places_apart, FindingKind::tensor_allocation, {"differs from what the other block"});
}
TEST_F(TensorPair, GivenBackBeforeTheClusterHasMet) {
  finds(PairDefect::frees_before_meeting, FindingKind::left_cluster_early, {"rank"});
}
TEST_F(TensorPair, OneBlockAloneGivesBack) {
  finds(PairDefect::one_block_frees, FindingKind::tensor_allocation, {"never given back", "rank 1"});
}
TEST_F(TensorPair, SumsGivenBackByOneBlockForBoth) {
  finds(PairDefect::sums_given_back_by_one_block, FindingKind::tensor_in_flight, {"tcgen05::multiply", "rank 1"});
}

}  // namespace
}  // namespace thresher::emulator
