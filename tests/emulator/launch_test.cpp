// Registers, cp.async, earlier grids, and launches that cannot be.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "emulator/kernels/copies.hpp"
#include "emulator/kernels/registers.hpp"
#include "emulator/support.hpp"
#include "thresher/error.hpp"

namespace thresher::emulator {
namespace {

using planted::CopyDefect;
using planted::RegisterDefect;

test::Subject registers(RegisterDefect defect) {
  test::Subject subject;
  subject.shape.block = 640;
  subject.shape.registers_at_launch = 96;
  subject.shape.dynamic_shared_bytes = planted::register_shared_bytes;
  subject.kernel = [defect] { planted::reallocation(planted::RegisterParams{defect}); };
  return subject;
}

TEST(Registers, HandOverWithinThePoolIsClean) { test::expect_clean(registers(RegisterDefect::none)); }
TEST(Registers, HandOverBeyondThePool) {
  test::expect_found(registers(RegisterDefect::beyond_pool), FindingKind::register_budget,
                     {"wait for registers (120 a thread asked", "math["});
}
TEST(Registers, NobodyGives) {
  test::expect_found(registers(RegisterDefect::nobody_gives), FindingKind::register_budget, {"0 free in the pool"});
}
TEST(Registers, OneWarpKeeps) {
  test::expect_found(registers(RegisterDefect::one_warp_keeps), FindingKind::register_budget,
                     {"112 a thread asked", "was made by threads 512-543 (load[0])", "and not by threads 576-607"});
}
TEST(Registers, OneWarpGives) {
  test::expect_found(registers(RegisterDefect::one_warp_gives), FindingKind::divergent,
                     {"registers::decrease", "registers.hpp", "to 24 was made by threads 576-607 (load[0])",
                      "and not by threads 512-543 (load[0])", "of its warpgroup"});
}
TEST(Registers, OneWarpgroupDoesNotAsk) {
  test::expect_found(registers(RegisterDefect::one_warpgroup_does_not_ask), FindingKind::register_budget,
                     {"as many registers as it was launched with", "112 registers (registers::increase at",
                      "that run it reallocate alike"});
}
TEST(Registers, DivergentWarp) {
  test::expect_found(registers(RegisterDefect::divergent_warp), FindingKind::divergent, {"registers::increase"});
}
TEST(Registers, IncreaseThatLowers) {
  test::expect_found(registers(RegisterDefect::increase_that_lowers), FindingKind::register_budget, {"but it has 96"});
}
TEST(Registers, MoreThanAMultiprocessorHas) {
  auto subject = registers(RegisterDefect::none);
  subject.shape.registers_at_launch = 112;
  test::expect_found(subject, FindingKind::register_budget, {"640 threads × 112 registers = 71680"});
}

class Copies : public ::testing::Test {
 protected:
  static constexpr std::uint32_t steps = 5;

  test::Subject subject(CopyDefect defect) {
    std::iota(in_.begin(), in_.end(), 7U);
    params_.in = {test::address_of(in_)};
    params_.out = {test::address_of(out_)};
    params_.steps = steps;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.block = 128;
    subject.shape.dynamic_shared_bytes = planted::copy_shared_bytes;
    subject.shape.after_earlier_grid = true;
    subject.shape.releases_after_wait = true;
    test::add(subject.memory, "in", in_, Use::earlier_input);
    test::add(subject.memory, "out", out_, Use::output);
    subject.kernel = [this] { planted::copies(params_); };
    subject.correct = [this] {
      for (std::uint32_t i = 0; i < 128; ++i) {
        std::uint32_t total = 0;
        for (std::uint32_t step = 0; step < steps; ++step) {
          total += in_[step * 128 + (i ^ 1U)];
        }
        if (out_[i] != total) {
          return false;
        }
      }
      return true;
    };
    return subject;
  }
  void finds(CopyDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  std::vector<std::uint32_t> in_ = std::vector<std::uint32_t>(steps * 128);
  std::vector<std::uint32_t> out_ = std::vector<std::uint32_t>(128);
  planted::CopyParams params_{};
};

TEST_F(Copies, CorrectOnesAreClean) {
  test::expect_clean(subject(CopyDefect::none));
  test::expect_clean(subject(CopyDefect::none_with_barrier));
}
TEST_F(Copies, ReadWithoutWait) { finds(CopyDefect::no_wait, FindingKind::read_before_full, {"cp.async of thread"}); }
TEST_F(Copies, WaitThatLeavesTheGroupPending) {
  finds(CopyDefect::waits_for_one_less, FindingKind::read_before_full, {"its group 1"});
}
TEST_F(Copies, NeighboursCopyNotOrdered) { finds(CopyDefect::no_sync, FindingKind::read_before_full, {"copies.hpp"}); }
TEST_F(Copies, RefilledWhileOthersRead) {
  finds(CopyDefect::no_sync_before_refill, FindingKind::race, {"written by cp.async", "before: read by thread"});
}
TEST_F(Copies, BarrierNotAwaited) {
  finds(CopyDefect::barrier_not_awaited, FindingKind::read_before_full, {"cp.async of thread"});
}
TEST_F(Copies, Misaligned) { finds(CopyDefect::misaligned, FindingKind::misaligned, {"multiple of 16"}); }
TEST_F(Copies, EarlierGridNotAwaited) {
  finds(CopyDefect::touches_earlier_grid, FindingKind::earlier_grid, {"'in'", "wait_for_earlier_grids"});
}

TEST_F(Copies, OutputsWrittenBeforeTheEarlierGridIsAwaited) {
  finds(CopyDefect::writes_before_waiting, FindingKind::earlier_grid,
        {"'out'", "may still read or write", "copies.hpp", "wait_for_earlier_grids"});
}

TEST_F(Copies, DependentsReleasedBeforeTheEarlierGridIsAwaited) {
  finds(CopyDefect::releases_first, FindingKind::earlier_grid,
        {"launch::release_dependents", "copies.hpp", "the next grid relies on it"});
}
TEST_F(Copies, DependentsReleasedAtWillWhereNobodyReliesOnIt) {
  test::Subject alone = subject(CopyDefect::releases_first);
  alone.shape.releases_after_wait = false;
  test::expect_clean(alone);
}
TEST(Launch, BlockThatEndsReleasesDependents) {
  test::Subject subject;
  subject.shape.after_earlier_grid = true;
  subject.shape.releases_after_wait = true;
  subject.kernel = [] {};
  test::expect_found(subject, FindingKind::earlier_grid, {"ended", "the next grid relies on it"});
}

TEST_F(Copies, PrefetchBeyondTheEnd) {
  finds(CopyDefect::prefetch_beyond, FindingKind::out_of_bounds, {"tma::prefetch_bulk", "'in'"});
}
TEST_F(Copies, PrefetchOfAMisalignedAddress) {
  finds(CopyDefect::prefetch_misaligned, FindingKind::misaligned, {"tma::prefetch_bulk", "multiple of 16"});
}
TEST_F(Copies, PrefetchOfPartOfAPiece) {
  finds(CopyDefect::prefetch_uneven, FindingKind::bad_argument, {"tma::prefetch_bulk", "not a multiple of 16"});
}

TEST(Launch, RefusesWhatTheDriverWould) {
  const auto first = [](const LaunchShape& shape) {
    const Report report = launch(shape, {}, {}, [] {});
    return report.clean() ? std::string("clean") : to_string(report.findings.front());
  };
  LaunchShape shape;
  EXPECT_EQ(first(shape), "clean");
  shape.block = 1025;
  EXPECT_NE(first(shape).find("a block of 1025 threads"), std::string::npos);
  shape.block = 32;
  shape.dynamic_shared_bytes = 227 * 1024 + 1;
  EXPECT_NE(first(shape).find("232449 bytes of shared memory"), std::string::npos);
  shape.dynamic_shared_bytes = 0;
  shape.cluster.x = 2;
  EXPECT_NE(first(shape).find("not a multiple of the cluster"), std::string::npos);
}

TEST(Launch, DeviceCodeOutsideALaunchIsRefused) {
  EXPECT_THROW(static_cast<void>(machine::launch::thread_index()), Error);
}

TEST(GlobalMemory, RefusesBuffersThatOverlap) {
  GlobalMemory memory;
  const std::vector<std::uint8_t> bytes(64);
  memory.add("a", bytes.data(), 48, Use::input);
  EXPECT_THROW(memory.add("b", bytes.data() + 32, 32, Use::output), Error);
}

/// For as long as it lives, the process gets at most `bytes` more of address space.
class LittleAddressSpace {
 public:
  explicit LittleAddressSpace(std::uint64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleAddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  LittleAddressSpace(const LittleAddressSpace&) = delete;
  LittleAddressSpace& operator=(const LittleAddressSpace&) = delete;

 private:
  rlimit before_{};
};

// Some threads have their stacks when there are no more: the launch throws, and leaves nothing of itself behind.
TEST(Stacks, LaunchWithoutMemoryForThemThrowsAndEnds) {
  LaunchShape shape;
  shape.block = 64;
  const GlobalMemory memory;
  Options options;
  options.stack_bytes = 1U << 30;
  {
    const LittleAddressSpace little(std::uint64_t{8} << 30);
    EXPECT_THROW(static_cast<void>(launch(shape, options, memory, [] {})), Error);
  }
  EXPECT_THROW(static_cast<void>(machine::launch::thread_index()), Error)
      << "an engine that is gone is still the current one";
  int threads = 0;
  EXPECT_TRUE(launch(shape, {}, memory, [&] { ++threads; }).clean());
  EXPECT_EQ(threads, 64);
}

}  // namespace
}  // namespace thresher::emulator
