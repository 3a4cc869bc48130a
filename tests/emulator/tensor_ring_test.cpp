// Defects of kernels that multiply into tensor memory: order, fences, lanes, columns, descriptors, allocation.
#include <gtest/gtest.h>

#include "emulator/kernels/tensor_ring.hpp"
#include "emulator/nvfp4_operand.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator::tensor_ring {
namespace {

using planted::TensorDefect;
using planted::TensorRingParams;
using test::Nvfp4Operand;

constexpr std::uint32_t rows = 128;
constexpr std::uint32_t columns = planted::tensor_columns;
constexpr std::uint32_t steps = 3;
constexpr std::uint32_t tiles = 2;
constexpr std::uint32_t k = 256 * steps;

class TensorRing : public ::testing::Test {
 protected:
  test::Subject subject(TensorDefect defect) {
    params_.a =
        test::map_2d(a_.codes.data(), machine::ElementType::uint8, rows, k / 2, rows, 128, machine::Swizzle::b128);
    params_.b = test::map_2d(b_.codes.data(), machine::ElementType::uint8, columns, k / 2, columns, 128,
                             machine::Swizzle::b128);
    params_.a_scales = {test::address_of(a_.scales)};
    params_.b_scales = {test::address_of(b_.scales)};
    params_.c = {test::address_of(c_)};
    params_.steps = steps;
    params_.tiles = tiles;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.block = 192;
    subject.shape.dynamic_shared_bytes = planted::tensor_shared_bytes;
    test::add(subject.memory, "a", a_.codes, Use::input);
    test::add(subject.memory, "b", b_.codes, Use::input);
    test::add(subject.memory, "a scales", a_.scales, Use::input);
    test::add(subject.memory, "b scales", b_.scales, Use::input);
    test::add(subject.memory, "c", c_, Use::output);
    subject.kernel = [this] { planted::tensor_ring(params_); };
    subject.correct = [this] { return c_ == expected_; };
    return subject;
  }

  void finds(TensorDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  Nvfp4Operand a_{rows, k, 1};
  Nvfp4Operand b_{columns, k, 2};
  std::vector<float> c_ = std::vector<float>(std::size_t{tiles} * rows * columns);
  std::vector<float> expected_ = test::product(a_, rows, b_, columns, k, tiles);
  TensorRingParams params_{};
};

TEST_F(TensorRing, CorrectOneIsCleanAndComputesTheProduct) { test::expect_clean(subject(TensorDefect::none)); }
// measurements/emulator_tensor_1000_schedules_*.txt has the command.
TEST_F(TensorRing, DISABLED_CleanOn1000Schedules) { test::expect_clean(subject(TensorDefect::none), 1000); }

TEST_F(TensorRing, SlotReleasedByAnOrdinaryArrival) {
  finds(TensorDefect::released_by_arrive, FindingKind::refilled_while_read,
        {"tcgen05 of thread 160", "tensor_ring.hpp"});
}
TEST_F(TensorRing, CommitBeforeTheLastProductOfASlot) {
  finds(TensorDefect::commit_before_multiply, FindingKind::refilled_while_read, {"tcgen05 of thread 160"});
}
TEST_F(TensorRing, SumsLoadedBeforeTheProductsAreDone) {
  finds(TensorDefect::no_wait_for_sums, FindingKind::tensor_in_flight,
        {"a load of tensor memory", "written by a product", "nothing that came before"});
}
TEST_F(TensorRing, LoadWithoutTheFenceBehindItsBarrier) {
  finds(TensorDefect::no_after_barrier, FindingKind::missing_tensor_fence, {"after_barrier must follow"});
}
TEST_F(TensorRing, LoadedValuesUsedAtOnce) {
  finds(TensorDefect::no_wait_for_loads, FindingKind::accumulator_in_flight, {"before tensor_memory::wait_loads"});
}
TEST_F(TensorRing, SumsGivenBackBeforeTheLoadsHaveArrived) {
  finds(TensorDefect::arrive_before_loads, FindingKind::tensor_in_flight, {"loaded by thread", "wait_loads must come"});
}
TEST_F(TensorRing, SumsGivenBackWithoutTheFenceBeforeTheBarrier) {
  finds(TensorDefect::no_before_barrier, FindingKind::missing_tensor_fence, {"before_barrier must come before"});
}
TEST_F(TensorRing, NextTileDoesNotWaitForTheLoads) {
  finds(TensorDefect::no_wait_for_empty_sums, FindingKind::tensor_in_flight, {"tcgen05::multiply", "loaded by thread"});
}
TEST_F(TensorRing, ScalesOfAStepOverThoseOfTheStepBefore) {
  finds(TensorDefect::one_set_of_scales, FindingKind::tensor_in_flight,
        {"tcgen05::copy_scales", "read as scales by a product", "not promised"});
}
// What most kernels in the wild rely on: the same ring is clean where the order is taken for granted.
TEST_F(TensorRing, ScalesOfAStepOverThoseOfTheStepBeforeWhereCopiesKeepTheirOrder) {
  test::Subject ring = subject(TensorDefect::one_set_of_scales);
  ring.options.copies_in_order = true;
  test::expect_clean(ring, 16);
}
TEST_F(TensorRing, ScalesCopiedBehindTheirProduct) {
  finds(TensorDefect::scales_after_products, FindingKind::uninitialised, {"tcgen05::multiply", "nothing was written"});
}
TEST_F(TensorRing, ScalesInColumnsOfTheSums) {
  finds(TensorDefect::scales_in_sums, FindingKind::tensor_in_flight, {"not promised"});
}
TEST_F(TensorRing, FirstProductAddsToNothing) {
  finds(TensorDefect::adds_at_first, FindingKind::uninitialised, {"tcgen05::multiply"});
}
TEST_F(TensorRing, SumsBeyondTheAllocation) {
  finds(TensorDefect::beyond_allocation, FindingKind::out_of_bounds, {"column 128", "not allocated"});
}
TEST_F(TensorRing, AnotherQuartersLanes) {
  finds(TensorDefect::other_quarter, FindingKind::wrong_lanes, {"lanes from", "its own quarter"});
}
TEST_F(TensorRing, ThreadsOfAWarpLoadOtherColumns) {
  finds(TensorDefect::other_column_in_a_lane, FindingKind::divergent, {"other arguments"});
}
TEST_F(TensorRing, AllThreadsOfTheWarpMultiply) {
  finds(TensorDefect::not_elected, FindingKind::tensor_in_flight, {"tcgen05::", "by thread 16"});
}
TEST_F(TensorRing, InstructionWithMoreColumnsThanBHasRows) {
  finds(TensorDefect::too_many_columns, FindingKind::tensor_in_flight, {"column"});
}
TEST_F(TensorRing, InstructionWithAPairsRows) {
  finds(TensorDefect::too_many_rows, FindingKind::bad_argument, {"256 rows"});
}
TEST_F(TensorRing, DescriptorWithoutItsVersion) {
  finds(TensorDefect::descriptor_of_wgmma, FindingKind::bad_argument, {"descriptor of A has bits"});
}
TEST_F(TensorRing, OperandThatStartsBetweenSwizzleAtoms) {
  finds(TensorDefect::descriptor_off_its_atom, FindingKind::misaligned, {"swizzle atom"});
}
TEST_F(TensorRing, OrdinaryStoresWithoutAProxyFence) {
  finds(TensorDefect::no_proxy_fence, FindingKind::missing_proxy_fence, {"tcgen05 of thread 160"});
}
TEST_F(TensorRing, ProductsOfTwoShapesOnTheSameSums) {
  finds(TensorDefect::other_shape_on_sums, FindingKind::tensor_in_flight, {"written by a product", "not promised"});
}
TEST_F(TensorRing, GivenBackWhileAWarpLoads) {
  finds(TensorDefect::freed_while_loaded, FindingKind::tensor_in_flight, {"tensor_memory::deallocate"});
}
TEST_F(TensorRing, NeverGivenBack) {
  finds(TensorDefect::never_freed, FindingKind::tensor_allocation, {"128 columns", "never given back"});
}
TEST_F(TensorRing, GivenBackTwice) {
  finds(TensorDefect::freed_twice, FindingKind::tensor_allocation, {"no allocation returned"});
}
TEST_F(TensorRing, GivenBackInAnotherSize) {
  finds(TensorDefect::freed_in_another_size, FindingKind::tensor_allocation, {"64 columns"});
}
TEST_F(TensorRing, AllocatedAfterGivingUp) {
  finds(TensorDefect::allocates_after_giving_up, FindingKind::tensor_allocation, {"after give_up_allocation"});
}
TEST_F(TensorRing, AllocationsThatGrow) {
  finds(TensorDefect::allocates_more_than_before, FindingKind::tensor_allocation, {"sizes may not grow"});
}
TEST_F(TensorRing, PlaceReadBeforeAnythingOrdersTheAllocation) {
  finds(TensorDefect::no_meeting_after_allocation, FindingKind::race, {"shared bytes"});
}
TEST_F(TensorRing, ProductsThatNobodyWaitsFor) {
  finds(TensorDefect::nobody_waits, FindingKind::deadlock, {"sums_empty"});
}
TEST_F(TensorRing, CommitToBlocksThatThereAreNot) {
  finds(TensorDefect::mask_beyond_cluster, FindingKind::bad_argument, {"mask names blocks"});
}

}  // namespace
}  // namespace thresher::emulator::tensor_ring
