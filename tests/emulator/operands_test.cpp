// Defects around one multiply whose operands threads write themselves.
#include <gtest/gtest.h>

#include "emulator/kernels/operands.hpp"
#include "emulator/support.hpp"
#include "formats/numbers.hpp"

namespace thresher::emulator {
namespace {

using planted::OperandDefect;

class Operands : public ::testing::Test {
 protected:
  test::Subject subject(OperandDefect defect) {
    params_.a = {test::address_of(a_)};
    params_.b = {test::address_of(b_)};
    params_.c = {test::address_of(c_)};
    params_.defect = defect;
    test::Subject subject;
    subject.shape.block = 128;
    subject.shape.dynamic_shared_bytes = planted::operand_shared_bytes;
    test::add(subject.memory, "a", a_, Use::input);
    test::add(subject.memory, "b", b_, Use::input);
    test::add(subject.memory, "c", c_, Use::output);
    subject.kernel = [this] { planted::operands(params_); };
    subject.correct = [this] {
      for (std::size_t i = 0; i < c_.size(); ++i) {
        float sum = 0;
        for (std::size_t k = 0; k < 16; ++k) {
          sum += formats::fp16_to_float(a_[i / 32 * 16 + k]) * formats::fp16_to_float(b_[i % 32 * 16 + k]);
        }
        if (c_[i] != sum) {
          return false;
        }
      }
      return true;
    };
    return subject;
  }
  void finds(OperandDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    test::expect_found(subject(defect), kind, words);
  }

 private:
  std::vector<std::uint16_t> a_ = test::small_halves(64 * 16, 3);
  std::vector<std::uint16_t> b_ = test::small_halves(32 * 16, 4);
  std::vector<float> c_ = std::vector<float>(64 * 32);
  planted::OperandParams params_{};
};

TEST_F(Operands, CorrectOneIsCleanAndComputesTheProduct) { test::expect_clean(subject(OperandDefect::none)); }
TEST_F(Operands, CorrectOneFromRegistersToo) { test::expect_clean(subject(OperandDefect::fragment)); }
TEST_F(Operands, FragmentOverwrittenInFlight) {
  finds(OperandDefect::fragment_overwritten, FindingKind::accumulator_in_flight,
        {"a fragment of thread", "operands.hpp"});
}
TEST_F(Operands, FragmentWrittenAfterItsSettle) {
  finds(OperandDefect::fragment_not_settled, FindingKind::missing_wgmma_fence, {"takes a fragment that was written"});
}
TEST_F(Operands, FragmentSettledAfterTheFence) {
  finds(OperandDefect::fragment_not_fenced, FindingKind::missing_wgmma_fence, {"must come after wgmma::settle"});
}
TEST_F(Operands, OrdinaryStoresWithoutProxyFence) {
  finds(OperandDefect::no_fence, FindingKind::missing_proxy_fence,
        {"wgmma of warpgroup 0", "before: written by thread"});
}
TEST_F(Operands, FenceOnTheWrongSideOfTheBarrier) {
  finds(OperandDefect::fence_after_barrier, FindingKind::missing_proxy_fence, {"wgmma of warpgroup 0"});
}
TEST_F(Operands, MultiplyBeforeTheOtherWarpsWrote) {
  finds(OperandDefect::no_barrier, FindingKind::race, {"wgmma of warpgroup 0", "nothing orders the two"});
}
TEST_F(Operands, OperandOverwrittenInFlight) {
  finds(OperandDefect::overwritten_in_flight, FindingKind::refilled_while_read,
        {"wgmma of warpgroup 0", "its group 1"});
}
TEST_F(Operands, AccumulatorSetInFlight) {
  finds(OperandDefect::accumulator_set_in_flight, FindingKind::accumulator_in_flight,
        {"element 0 set", "operands.hpp"});
}
TEST_F(Operands, AccumulatorsOutOfScopeInFlight) {
  finds(OperandDefect::accumulators_die_in_flight, FindingKind::accumulator_in_flight, {"went out of scope"});
}
TEST_F(Operands, StartValuesWithoutSettle) {
  finds(OperandDefect::set_without_settle, FindingKind::missing_wgmma_fence, {"set() needs wgmma::settle"});
}
TEST_F(Operands, DescriptorBeyondSharedMemory) {
  finds(OperandDefect::beyond_shared_memory, FindingKind::out_of_bounds, {"operand B reaches shared bytes 3072"});
}
TEST_F(Operands, AsynchronousCopiesWithoutProxyFence) {
  finds(OperandDefect::copies_not_fenced, FindingKind::missing_proxy_fence, {"cp.async of thread"});
}

}  // namespace
}  // namespace thresher::emulator
