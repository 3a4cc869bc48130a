// Defects of a warp-specialised ring: phases, byte and arrival counts, slots reused or read too early, wgmma's own
// rules.
#include <gtest/gtest.h>

#include "emulator/kernels/ring.hpp"
#include "emulator/support.hpp"
#include "formats/numbers.hpp"

namespace thresher::emulator {
namespace {

using planted::RingDefect;
using planted::RingParams;

class Ring : public ::testing::Test {
 protected:
  static constexpr std::uint32_t k = 64 * 7;

  test::Subject subject(RingDefect defect) {
    params_.a = test::map_2d(a_.data(), machine::ElementType::fp16, 128, k, 128, 64, machine::Swizzle::b128);
    params_.b = test::map_2d(b_.data(), machine::ElementType::fp16, 64, k, 64, 64, machine::Swizzle::b128);
    params_.c = {test::address_of(c_)};
    params_.k = k;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.block = 288;
    subject.shape.dynamic_shared_bytes = planted::ring_shared_bytes;
    test::add(subject.memory, "a", a_, Use::input);
    test::add(subject.memory, "b", b_, Use::input);
    test::add(subject.memory, "c", c_, Use::output);
    subject.kernel = [this] { planted::ring(params_); };
    subject.correct = [this] { return c_ == expected_; };
    return subject;
  }

  void finds(RingDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  static std::vector<float> product(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
    std::vector<float> c(std::size_t{128} * 64);
    for (std::size_t i = 0; i < 128; ++i) {
      for (std::size_t j = 0; j < 64; ++j) {
        for (std::size_t x = 0; x < k; ++x) {
          c[i * 64 + j] += formats::fp16_to_float(a[i * k + x]) * formats::fp16_to_float(b[j * k + x]);
        }
      }
    }
    return c;
  }

  std::vector<std::uint16_t> a_ = test::small_halves(std::size_t{128} * k, 1);
  std::vector<std::uint16_t> b_ = test::small_halves(std::size_t{64} * k, 2);
  std::vector<float> c_ = std::vector<float>(std::size_t{128} * 64);
  std::vector<float> expected_ = product(a_, b_);
  RingParams params_{};
};

TEST_F(Ring, CorrectOneIsCleanAndComputesTheProduct) { test::expect_clean(subject(RingDefect::none)); }

TEST_F(Ring, LoaderThatForgetsToFlipItsPhaseAtWrapAround) {
  finds(RingDefect::loader_does_not_flip, FindingKind::deadlock, {"empty[0]", "load[0]", "math[1]", "ring.hpp"});
}
TEST_F(Ring, ReadersThatForgetToFlipTheirPhase) {
  finds(RingDefect::reader_does_not_flip, FindingKind::deadlock, {"empty[", "load[0]"});
}
TEST_F(Ring, TooFewBytesAnnounced) {
  finds(RingDefect::too_few_bytes, FindingKind::byte_count,
        {"awaits -128 bytes", "full[0]", "phase 0, arrived 1 of 1"});
}
TEST_F(Ring, TooManyBytesAnnounced) {
  finds(RingDefect::too_many_bytes, FindingKind::byte_count, {"awaits 128 bytes", "full[0]"});
}
TEST_F(Ring, SlotReleasedBeforeItsMultipliesRetire) {
  finds(RingDefect::released_before_wait, FindingKind::refilled_while_read,
        {"wgmma of warpgroup", "full[", "ring.hpp"});
}
TEST_F(Ring, SlotNeverReleased) {
  finds(RingDefect::never_released, FindingKind::deadlock, {"parity 0 of barrier empty[0]", "arrived 0 of 2"});
}
TEST_F(Ring, TooManyArrivalsRunThroughThePhases) {
  finds(RingDefect::too_many_release_arrivals, FindingKind::deadlock, {"empty[0]", "phase 128"});
}
TEST_F(Ring, TooFewArrivalsExpectedOfTwoReaders) {
  finds(RingDefect::too_few_release_arrivals, FindingKind::deadlock, {"empty[0]"});
}
TEST_F(Ring, ReadersThatDoNotWaitForTheCopies) {
  finds(RingDefect::no_wait_for_full, FindingKind::read_before_full, {"wgmma of warpgroup", "full["});
}
TEST_F(Ring, LoaderThatDoesNotWaitForTheReaders) {
  finds(RingDefect::no_wait_for_empty, FindingKind::refilled_while_read, {"wgmma of warpgroup"});
}
TEST_F(Ring, AccumulatorsReadBeforeTheWait) {
  finds(RingDefect::accumulators_read_early, FindingKind::accumulator_in_flight, {"may still write it", "math["});
}
TEST_F(Ring, AccumulatorsReadWithoutSettle) {
  finds(RingDefect::no_settle, FindingKind::accumulator_in_flight, {"without wgmma::settle"});
}
TEST_F(Ring, MultiplyWithoutFence) {
  finds(RingDefect::no_product_fence, FindingKind::missing_wgmma_fence, {"ring.hpp"});
}
TEST_F(Ring, MultiplyOntoNothing) { finds(RingDefect::not_zeroed, FindingKind::uninitialised, {"hold nothing"}); }
TEST_F(Ring, BarrierInitWithoutFence) {
  finds(RingDefect::no_barrier_fence, FindingKind::missing_proxy_fence, {"fence::barrier_init"});
}
TEST_F(Ring, BarrierUsedWithoutMeetingAfterInit) {
  finds(RingDefect::no_sync_after_init, FindingKind::race, {"without knowing that it is initialised"});
}
TEST_F(Ring, CommitWithoutWait) {
  finds(RingDefect::commit_without_wait, FindingKind::unfinished_work, {"no wgmma::wait retired"});
}
TEST_F(Ring, EmptyStepThatTheLoaderSkipsAndTheReadersAwait) {
  finds(RingDefect::loader_skips_a_slot, FindingKind::deadlock, {"full[0]", "math[0]", "32 threads have ended"});
}
TEST_F(Ring, WarpThatSkipsAMultiply) { finds(RingDefect::one_warp_skips_multiply, FindingKind::divergent, {"commit"}); }
TEST_F(Ring, WarpWithAnotherDescriptor) {
  finds(RingDefect::different_descriptor, FindingKind::divergent, {"multiply", "same arguments"});
}
TEST_F(Ring, BoxBeyondTheSharedMemory) {
  finds(RingDefect::box_beyond_shared_memory, FindingKind::out_of_bounds, {"but the block has 73792"});
}
TEST_F(Ring, BarriersInsideASlot) { finds(RingDefect::barrier_in_slot, FindingKind::barrier_misuse, {"live barrier"}); }

TEST_F(Ring, FindingIsReplayedByItsSeed) {
  const auto faulty = subject(RingDefect::no_wait_for_full);
  Options options;
  options.schedule = Schedule::from_seed(11);
  const Report first = launch(faulty.shape, options, faulty.memory, faulty.kernel);
  const Report second = launch(faulty.shape, options, faulty.memory, faulty.kernel);
  ASSERT_FALSE(first.findings.empty());
  EXPECT_EQ(first.findings.front().seed, 11U);
  EXPECT_EQ(test::text_of(first.findings), test::text_of(second.findings));
}

}  // namespace
}  // namespace thresher::emulator
