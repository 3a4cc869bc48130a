// Byte counts that are wrong at the ragged edge of a tensor and right everywhere else.
#include <gtest/gtest.h>

#include <numeric>

#include "emulator/kernels/ragged.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator {
namespace {

using planted::RaggedDefect;

class Ragged : public ::testing::Test {
 protected:
  static constexpr std::uint32_t rows = 16 * 4 + 5;  // the last box holds 5 rows and 11 beyond them

  test::Subject subject(RaggedDefect defect, std::uint32_t row_count = rows) {
    in_.resize(std::size_t{row_count} * 64);
    std::iota(in_.begin(), in_.end(), 1U);
    params_.in = test::map_2d(in_.data(), machine::ElementType::uint32, row_count, 64, 16, 64, machine::Swizzle::none);
    params_.out = {test::address_of(out_)};
    params_.rows = row_count;
    params_.defect = defect;
    test::Subject subject;
    subject.shape.block = 64;
    subject.shape.dynamic_shared_bytes = planted::ragged_shared_bytes;
    test::add(subject.memory, "in", in_, Use::input);
    test::add(subject.memory, "out", out_, Use::output);
    subject.kernel = [this] { planted::ragged(params_); };
    subject.correct = [this] {
      for (std::size_t column = 0; column < 64; ++column) {
        std::uint32_t sum = 0;
        for (std::size_t row = 0; row * 64 < in_.size(); ++row) {
          sum += in_[row * 64 + column];
        }
        if (out_[column] != sum) {
          return false;
        }
      }
      return true;
    };
    return subject;
  }
  /// The ragged tile is the fifth: phase 2 of slot 0.
  void finds(RaggedDefect defect, const std::string& bytes) {
    test::expect_found(subject(defect), FindingKind::byte_count, {"full[0]", "phase 2", "awaits " + bytes + " bytes"});
  }

 private:
  std::vector<std::uint32_t> in_;
  std::vector<std::uint32_t> out_ = std::vector<std::uint32_t>(64);
  planted::RaggedParams params_{};
};

TEST_F(Ragged, CorrectOneIsClean) { test::expect_clean(subject(RaggedDefect::none)); }
TEST_F(Ragged, BytesOfTheRowsThatExist) { finds(RaggedDefect::announces_rows_that_exist, std::to_string(-11 * 256)); }
TEST_F(Ragged, ARowLessAtTheEdge) { finds(RaggedDefect::announces_a_row_less, "-256"); }
TEST_F(Ragged, ARowMoreAtTheEdge) { finds(RaggedDefect::announces_a_row_more, "256"); }
TEST_F(Ragged, WithoutAnEdgeTheyAreRight) {
  test::expect_clean(subject(RaggedDefect::announces_rows_that_exist, 64), 8);
  test::expect_clean(subject(RaggedDefect::announces_a_row_less, 64), 8);
}

}  // namespace
}  // namespace thresher::emulator
