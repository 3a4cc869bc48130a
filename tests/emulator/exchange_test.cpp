// Defects of ordinary accesses, warps, named barriers.
#include <gtest/gtest.h>

#include "emulator/kernels/exchange.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator {
namespace {

using planted::ExchangeDefect;

class Exchange : public ::testing::Test {
 protected:
  test::Subject subject(ExchangeDefect defect) {
    for (std::uint32_t i = 0; i < 256; ++i) {
      in_[i] = i * i;
    }
    params_.in = {test::address_of(in_)};
    params_.out = {test::address_of(out_)};
    params_.rounds = 3;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.grid.x = 2;
    subject.shape.block = 256;
    subject.shape.dynamic_shared_bytes = planted::exchange_shared_bytes;
    test::add(subject.memory, "in", in_, Use::input);
    test::add(subject.memory, "out", out_, Use::output);
    subject.kernel = [this] { planted::exchange(params_); };
    subject.correct = [this] {
      for (std::uint32_t i = 0; i < out_.size(); ++i) {
        const std::uint32_t thread = i % 256;
        if (out_[i] != (255 - thread) * (255 - thread) + 3 + 1) {
          return false;
        }
      }
      return true;
    };
    return subject;
  }
  void finds(ExchangeDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  std::vector<std::uint32_t> in_ = std::vector<std::uint32_t>(256);
  std::vector<std::uint32_t> out_ = std::vector<std::uint32_t>(512);
  planted::ExchangeParams params_{};
};

TEST_F(Exchange, CorrectOneIsClean) { test::expect_clean(subject(ExchangeDefect::none)); }

TEST_F(Exchange, ReadWithoutBarrier) {
  finds(ExchangeDefect::no_sync_before_read, FindingKind::race,
        {"shared bytes", "written by thread", "read by thread"});
}
TEST_F(Exchange, OverwrittenBeforeEveryoneHasRead) {
  finds(ExchangeDefect::no_sync_before_reuse, FindingKind::race, {"before: read by thread"});
}
TEST_F(Exchange, TwoWriters) {
  finds(ExchangeDefect::two_writers, FindingKind::race, {"shared bytes 0-3", "thread 0 ", "thread 1 "});
}
TEST_F(Exchange, LanesThatTrustTheirWarp) { finds(ExchangeDefect::no_warp_sync, FindingKind::race, {"exchange.hpp"}); }
TEST_F(Exchange, WarpSyncThatLeavesALaneOut) {
  finds(ExchangeDefect::warp_sync_leaves_one_out, FindingKind::race, {"exchange.hpp"});
}
TEST_F(Exchange, PartOfAWordWrittenWhileItIsRead) {
  finds(ExchangeDefect::partial_overlap, FindingKind::race, {"shared bytes 28-31", "thread 7 "});
}
TEST_F(Exchange, BlocksThatWriteTheSameBytes) {
  finds(ExchangeDefect::blocks_race, FindingKind::race, {"'out'", "another cluster"});
}
TEST_F(Exchange, ReadOnlyPathOnBytesThatTheKernelWrites) {
  finds(ExchangeDefect::reads_only_what_it_writes, FindingKind::race, {"read-only path"});
}

TEST_F(Exchange, ShuffleInABranch) {
  finds(ExchangeDefect::shuffle_in_branch, FindingKind::divergent, {"warp::shuffle_xor", "0000ffff"});
}
TEST_F(Exchange, HalvesOfAWarpInDifferentShuffles) {
  finds(ExchangeDefect::different_shuffles, FindingKind::divergent, {"warp::shuffle_xor", "while others of its warp"});
}
TEST_F(Exchange, ElectInABranch) { finds(ExchangeDefect::elect_in_branch, FindingKind::divergent, {"warp::elect"}); }
TEST_F(Exchange, WarpIndexInABranch) {
  finds(ExchangeDefect::index_in_branch, FindingKind::divergent, {"warp::index", "while others of its warp"});
}

TEST_F(Exchange, ThreadThatEndsBeforeTheBarrier) {
  finds(ExchangeDefect::sync_in_branch, FindingKind::deadlock,
        {"block::sync (255 of 256 threads arrived)", "1 threads have ended"});
}
TEST_F(Exchange, NamedBarrierThatCountsTooMany) {
  finds(ExchangeDefect::named_count_too_high, FindingKind::bad_argument, {"named barrier 1", "288 threads"});
}
TEST_F(Exchange, NamedBarrierWhoseSidesCountDifferently) {
  finds(ExchangeDefect::named_counts_differ, FindingKind::arrival_count, {"counts 224 threads", "counts 256"});
}
TEST_F(Exchange, NamedBarrierOnWhichASideDoesNotArrive) {
  finds(ExchangeDefect::named_without_arrival, FindingKind::deadlock,
        {"named barrier 1 (128 of 256 threads arrived)", "named barrier 2 (128 of 256"});
}

TEST_F(Exchange, UninitialisedShared) {
  finds(ExchangeDefect::uninitialised_shared, FindingKind::uninitialised, {"shared bytes 2000-2003", "thread 3 "});
}
TEST_F(Exchange, OutputReadBeforeItIsWritten) {
  finds(ExchangeDefect::reads_output, FindingKind::uninitialised, {"'out'"});
}
TEST_F(Exchange, BeyondSharedMemory) {
  finds(ExchangeDefect::beyond_shared, FindingKind::out_of_bounds, {"shared bytes 2048-2051, but the block has 2048"});
}
TEST_F(Exchange, MisalignedShared) {
  finds(ExchangeDefect::misaligned_shared, FindingKind::misaligned, {"multiple of 8"});
}
TEST_F(Exchange, BeyondAnOutput) {
  finds(ExchangeDefect::beyond_global, FindingKind::out_of_bounds, {"store", "bytes 2048-2051 of 'out' (2048 bytes)"});
}
TEST_F(Exchange, BeforeAnInput) { finds(ExchangeDefect::beyond_global_read, FindingKind::out_of_bounds, {"load"}); }
TEST_F(Exchange, MisalignedGlobal) { finds(ExchangeDefect::misaligned_global, FindingKind::misaligned, {"'out'"}); }
TEST_F(Exchange, InputWritten) {
  finds(ExchangeDefect::writes_input, FindingKind::out_of_bounds, {"input bytes 0-3 of 'in'"});
}

TEST_F(Exchange, SpinThatNobodyEnds) {
  auto spinning = subject(ExchangeDefect::spins);
  spinning.options.patience_accesses = 1'000'000;
  test::expect_found(spinning, FindingKind::deadlock, {"spins", "plain accesses"});
}
TEST_F(Exchange, Expectation) {
  finds(ExchangeDefect::expectation_fails, FindingKind::failed_expectation, {"thread 17 is content", "thread 17 of"});
}
TEST_F(Exchange, ExceptionInTheKernel) { finds(ExchangeDefect::throws, FindingKind::kernel_exception, {"thread 31"}); }

}  // namespace
}  // namespace thresher::emulator
