// Defects of an epilogue that stages tiles for TMA: proxy fences, reuse, unfinished stores.
#include <gtest/gtest.h>

#include "emulator/kernels/staging.hpp"
#include "emulator/support.hpp"
#include "formats/numbers.hpp"

namespace thresher::emulator {
namespace {

using planted::StagingDefect;

class Staging : public ::testing::Test {
 protected:
  static constexpr std::uint32_t rows = 200;  // the last tile is ragged

  test::Subject subject(StagingDefect defect) {
    params_.out = test::map_2d(out_.data(), machine::ElementType::fp16, rows, 64, 64, 64, machine::Swizzle::none);
    params_.tiles = 4;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.block = 64;
    subject.shape.dynamic_shared_bytes = planted::staging_shared_bytes;
    test::add(subject.memory, "out", out_, Use::output);
    subject.kernel = [this] { planted::staging(params_); };
    subject.correct = [this] {
      for (std::size_t i = 0; i < out_.size(); ++i) {
        if (out_[i] != formats::float_to_fp16(static_cast<float>(i / 64 + i % 64))) {
          return false;
        }
      }
      return true;
    };
    return subject;
  }
  void finds(StagingDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  std::vector<std::uint16_t> out_ = std::vector<std::uint16_t>(std::size_t{rows} * 64);
  planted::StagingParams params_{};
};

TEST_F(Staging, CorrectOneIsClean) { test::expect_clean(subject(StagingDefect::none)); }
TEST_F(Staging, OrdinaryStoresWithoutProxyFence) {
  finds(StagingDefect::no_fence, FindingKind::missing_proxy_fence,
        {"staging[0]", "a TMA store of thread 0", "before: written"});
}
TEST_F(Staging, FenceOnTheWrongSideOfTheBarrier) {
  finds(StagingDefect::fence_after_barrier, FindingKind::missing_proxy_fence, {"between its store and the barrier"});
}
TEST_F(Staging, StoreBeforeTheWritersAreThere) {
  finds(StagingDefect::no_barrier, FindingKind::race, {"read asynchronously", "before: written by thread"});
}
TEST_F(Staging, CommitWithoutWaitBeforeReuse) {
  finds(StagingDefect::no_wait_before_reuse, FindingKind::refilled_while_read,
        {"a TMA store of thread 0", "its group 1"});
}
TEST_F(Staging, WaitByAThreadThatStoredNothing) {
  finds(StagingDefect::wait_on_wrong_thread, FindingKind::refilled_while_read, {"a TMA store of thread 0"});
}
TEST_F(Staging, BlockEndsWhileItsStoreReads) {
  finds(StagingDefect::no_wait_at_end, FindingKind::unfinished_work, {"may still read its shared memory"});
}
TEST_F(Staging, LastGroupNeverCommitted) {
  finds(StagingDefect::no_commit, FindingKind::unfinished_work, {"thread 0"});
}
TEST_F(Staging, TilesThatOverlapInMemory) {
  finds(StagingDefect::tiles_overlap, FindingKind::race, {"'out'", "a TMA store of thread 0"});
}
TEST_F(Staging, RowsThatNobodyWrote) {
  finds(StagingDefect::half_written, FindingKind::uninitialised, {"shared bytes 128-143"});
}
TEST_F(Staging, MisalignedSource) {
  finds(StagingDefect::misaligned_source, FindingKind::misaligned, {"multiple of 128"});
}
TEST_F(Staging, MapNobodyEncoded) { finds(StagingDefect::wrong_map, FindingKind::bad_argument, {"tma::store"}); }
TEST_F(Staging, BoxThatBeginsInsideAChunk) {
  finds(StagingDefect::begins_inside_a_chunk, FindingKind::misaligned, {"tma::store", "begins at byte 8 of its rows"});
}
TEST_F(Staging, BoxThatBeginsBeforeTheTensor) {
  finds(StagingDefect::begins_before, FindingKind::bad_argument, {"coordinate -1 of dimension 1"});
}

}  // namespace
}  // namespace thresher::emulator
