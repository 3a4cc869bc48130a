// Defects of blocks that work together.
#include <gtest/gtest.h>

#include <numeric>

#include "emulator/kernels/cluster.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator {
namespace {

using planted::ClusterDefect;

class Cluster : public ::testing::Test {
 protected:
  static constexpr std::uint32_t slots = 5;

  test::Subject subject(ClusterDefect defect) {
    std::iota(in_.begin(), in_.end(), 1U);
    params_.in = {test::address_of(in_)};
    params_.out = {test::address_of(out_)};
    params_.slots = slots;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.grid.x = 2;
    subject.shape.cluster.x = 2;
    subject.shape.block = 64;
    subject.shape.dynamic_shared_bytes = planted::cluster_shared_bytes;
    test::add(subject.memory, "in", in_, Use::input);
    test::add(subject.memory, "out", out_, Use::output);
    subject.kernel = [this] { planted::in_cluster(params_); };
    subject.correct = [this] {
      const std::uint32_t total = std::accumulate(in_.begin(), in_.end(), 0U);
      return out_ == std::vector<std::uint32_t>{total, total, total + 1, total, total, total + 1};
    };
    return subject;
  }
  void finds(ClusterDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  std::vector<std::uint32_t> in_ = std::vector<std::uint32_t>(slots * 64);
  std::vector<std::uint32_t> out_ = std::vector<std::uint32_t>(6);
  planted::ClusterParams params_{};
};

TEST_F(Cluster, CorrectOneIsClean) { test::expect_clean(subject(ClusterDefect::none)); }
TEST_F(Cluster, MulticastIntoABlockThatMayNotHaveStarted) {
  finds(ClusterDefect::no_cluster_sync_at_start, FindingKind::left_cluster_early, {"which may not have started"});
}
TEST_F(Cluster, SlotRefilledByThePeerWhileItIsRead) {
  finds(ClusterDefect::released_to_own_only, FindingKind::refilled_while_read, {"full[0] of block", "(sum[0])"});
}
TEST_F(Cluster, PeerThatEndsWhileAMulticastIsInFlight) {
  finds(ClusterDefect::peer_ends_early, FindingKind::unfinished_work,
        {"block (1,0,0)", "full[0]", "ended while a multicast into its shared memory was in flight",
         "thread 0 (load[0])"});
}
TEST_F(Cluster, PeerThatEndsWhileItsMemoryIsInUse) {
  finds(ClusterDefect::no_cluster_sync_at_end, FindingKind::left_cluster_early,
        {"ended while another block may still use"});
}
TEST_F(Cluster, RemoteStoreReadWithoutOrder) {
  finds(ClusterDefect::remote_store_unordered, FindingKind::race, {"cluster.hpp", "before: written by thread 32"});
}
TEST_F(Cluster, RelaxedArriveDoesNotHandOver) {
  finds(ClusterDefect::relaxed_arrive, FindingKind::race, {"before: written by thread 32"});
}
TEST_F(Cluster, AsynchronousStoreReadBeforeItsBarrier) {
  finds(ClusterDefect::store_async_not_awaited, FindingKind::read_before_full, {"sent[0]"});
}
TEST_F(Cluster, AsynchronousStoreOfFewerBytesThanAnnounced) {
  finds(ClusterDefect::store_async_bytes, FindingKind::byte_count, {"sent[0]", "awaits 4 bytes"});
}
TEST_F(Cluster, MapBeyondTheCluster) {
  finds(ClusterDefect::map_beyond_cluster, FindingKind::bad_argument, {"block 2 of a cluster of 2"});
}
TEST_F(Cluster, MulticastBeyondTheCluster) {
  finds(ClusterDefect::mask_beyond_cluster, FindingKind::bad_argument, {"block 2 of a cluster of 2"});
}
TEST_F(Cluster, ArrivesTwice) { finds(ClusterDefect::arrives_twice, FindingKind::barrier_misuse, {"cluster::arrive"}); }

}  // namespace
}  // namespace thresher::emulator
