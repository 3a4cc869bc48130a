// Packed weights as blocks of bytes: what was written is what runs, where it lies, and nothing else is taken.
#include "thresher/packed_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "ops/packed_image.hpp"
#include "support/dual_gemm_case.hpp"
#include "support/grouped_case.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"
#include "thresher/packed_file.hpp"
#include "thresher/workspace.hpp"

namespace thresher {
namespace {

/// Bytes that begin where a block may.
class Block {
 public:
  explicit Block(std::size_t bytes) : memory_(bytes + block_alignment), bytes_(bytes) {}
  explicit Block(std::span<const std::byte> bytes) : Block(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), span().begin());
  }
  [[nodiscard]] std::span<std::byte> span() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return std::span(memory_).subspan((block_alignment - address % block_alignment) % block_alignment, bytes_);
  }
  [[nodiscard]] std::string_view text() { return {reinterpret_cast<const char*>(span().data()), bytes_}; }

 private:
  std::vector<std::byte> memory_;
  std::size_t bytes_;
};

template <class Weights>
Block block_of(const Weights& weights) {
  Block block(block_bytes(weights));
  to_block(weights, block.span());
  return block;
}

std::vector<std::byte> bytes_of(test::Matrix& matrix) {
  const auto* bytes = reinterpret_cast<const std::byte*>(matrix.bytes().data());
  return {bytes, bytes + matrix.bytes().size()};
}

std::vector<std::byte> outputs(const PackedWeights& weights, test::DualGemmCase& of) {
  const DualGemm gemm = plan(Device::cpu(), of.problem, weights);
  const Workspace workspace(Device::cpu(), gemm.workspace_bytes());
  of.c.poison();
  gemm.run({}, of.a.view(), of.c.view(), workspace.data());
  return bytes_of(of.c);
}

std::vector<std::byte> outputs(const PackedGroupedWeights& weights, test::GroupedCase& of) {
  const GroupedGemm gemm = plan(Device::cpu(), of.problem(), weights);
  const Workspace workspace(Device::cpu(), gemm.workspace_bytes());
  of.c().poison();
  gemm.run({}, of.tensors(), workspace.data());
  return bytes_of(of.c());
}

test::DualGemmCase dual_case(Format format, const test::Layout& layout = {}) {
  return test::DualGemmCase::random({.m = 3, .n = 37, .k = 48, .a = Format::bf16, .b = format}, layout);
}

TEST(PackedBlock, WhatIsReadFromItGivesTheSameBits) {
  for (const Format format : operand_formats) {
    for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      for (const bool global_scales : {false, true}) {
        test::DualGemmCase of = dual_case(format, {.row_gap = 16, .scales = scales, .global_scales = global_scales});
        const PackedWeights weights = pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view());
        const std::vector<std::byte> expected = outputs(weights, of);
        Block block = block_of(weights);
        of.b1_gate.poison();
        Block moved(block.span());
        std::ranges::fill(block.span(), std::byte{0xAA});
        const PackedWeights seen = from_block(Device::cpu(), moved.span(), PackedCheck::content);
        EXPECT_EQ(outputs(seen, of), expected) << name(format);
        EXPECT_EQ(block_of(seen).text(), moved.text()) << "a block of what a block holds";
      }
    }
  }
}

TEST(PackedBlock, IsReadWhereItLies) {
  test::DualGemmCase of = dual_case(Format::bf16);
  const PackedWeights weights = pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view());
  Block block = block_of(weights);
  const PackedWeights seen = from_block(Device::cpu(), block.span());
  const std::vector<std::byte> before = outputs(seen, of);
  std::ranges::fill(block.span().last(64), std::byte{0});  // the last row of B2
  EXPECT_NE(outputs(seen, of), before);
}

TEST(PackedBlock, IsWhatAFileHolds) {
  const ScratchFolder folder;
  const std::string path = (folder / "weights").string();
  for (const Format format : {Format::nvfp4, Format::fp8_block}) {
    test::DualGemmCase of = dual_case(format);
    const PackedWeights weights = pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view());
    save_packed(weights, path);
    std::ifstream file(path, std::ios::binary);
    const std::string written(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(block_of(weights).text(), written);
  }
}

GroupedProblem grouped_problem(Format format, bool has_activation, bool bias) {
  GroupedProblem problem{.experts = 3, .rows = 11, .n = 20, .k = 48, .a = Format::bf16, .b = format, .bias = bias};
  if (has_activation) {
    problem.activation = Activation{};
  }
  return problem;
}

TEST(PackedBlock, GroupedWeightsGiveTheSameBits) {
  const std::optional<GateUpOrder> none;
  for (const Format format : operand_formats) {
    for (const bool bias : {false, true}) {
      for (const auto& [order, has_activation] : {std::pair{none, true},
                                                  {none, false},
                                                  {std::optional(GateUpOrder::interleaved), true},
                                                  {std::optional(GateUpOrder::up_first), true}}) {
        if (format == Format::fp8_block && order) {
          continue;  // 40 rows of gate and up would share blocks of 128
        }
        const GroupedProblem problem = grouped_problem(format, has_activation, bias);
        test::GroupedCase of(problem, {.groups = {0, 4, 4, 11}, .order = order, .bias_format = Format::bf16});
        const PackedGroupedWeights weights = pack(Device::cpu(), of.weights());
        const std::vector<std::byte> expected = outputs(weights, of);
        Block block = block_of(weights);
        const PackedGroupedWeights seen = grouped_from_block(Device::cpu(), block.span(), PackedCheck::content);
        EXPECT_EQ(outputs(seen, of), expected) << name(format);
        EXPECT_EQ(seen.matrices(), weights.matrices());
        EXPECT_EQ(block_of(seen).text(), block.text());
      }
    }
  }
}

/// Expects `take` to throw an Error with these words.
void expect_refusal(const std::function<void()>& take, const std::string& part,
                    ErrorCode code = ErrorCode::invalid_argument) {
  try {
    take();
    FAIL() << "taken, expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

class RefusedBlock : public ::testing::Test {
 protected:
  void expect(const std::string& part, PackedCheck check = PackedCheck::header,
              ErrorCode code = ErrorCode::invalid_argument) {
    expect_refusal([&] { (void)from_block(Device::cpu(), block_.span(), check); }, part, code);
  }
  /// Same length, so that the rest stays where it is.
  void replace(std::string_view text, std::string_view by) {
    const std::size_t place = block_.text().find(text);
    ASSERT_NE(place, std::string::npos) << text;
    ASSERT_EQ(text.size(), by.size());
    std::memcpy(block_.span().data() + place, by.data(), by.size());
  }

  test::DualGemmCase of_ = dual_case(Format::nvfp4);
  Block block_ = block_of(pack(Device::cpu(), of_.b1_gate.view(), of_.b2_up.view()));
};

TEST_F(RefusedBlock, EveryByteOfTheHeaderIsSeenToBeChanged) {
  const auto header_bytes = [&] {  // what the first eight bytes say
    std::uint64_t length = 0;
    std::memcpy(&length, block_.span().data(), sizeof length);
    return sizeof length + length;
  }();
  ASSERT_EQ(header_bytes % ops::packed_image_alignment, 0U);
  for (std::size_t i = 0; i < header_bytes; ++i) {
    Block damaged(block_.span());
    damaged.span()[i] ^= std::byte{1};
    const auto is_taken = [&] {
      try {
        (void)from_block(Device::cpu(), damaged.span(), PackedCheck::content);
        return true;
      } catch (const Error& error) {
        return error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::unsupported;
      }
    };
    EXPECT_FALSE(is_taken()) << "byte " << i;
  }
}

TEST_F(RefusedBlock, DamagedBytesAreFoundWhereTheyAreLookedAt) {
  block_.span().back() ^= std::byte{1};
  EXPECT_NO_THROW((void)from_block(Device::cpu(), block_.span(), PackedCheck::header));
  expect("packed weights in memory: its bytes are not those that were written", PackedCheck::content);
}

TEST_F(RefusedBlock, AnotherVersionIsNamed) {
  replace(R"("thresher_packed_weights":"3")", R"("thresher_packed_weights":"7")");
  expect("it is of version '7' and this Thresher reads versions '2' and '3'");
}

TEST_F(RefusedBlock, ForeignAndCutOffBytes) {
  Block all(block_.span());
  block_ = Block(all.span().first(5));
  expect("not even the 8 of a header's length");
  block_ = Block(all.span().first(all.span().size() - 1));
  expect("packed weights in memory");
  block_ = Block(4096);
  expect("packed weights in memory is not a valid safetensors file");
  expect_refusal([&] { (void)from_block(Device::cpu(), {}); }, "the block of packed weights starts at");
  expect_refusal([&] { (void)from_block(Device::cpu(), all.span().subspan(1)); }, "expected a multiple of 16 bytes");
}

TEST_F(RefusedBlock, WhatWasPackedForAGpuIsNotForTheCpu) {
  ops::PackedContent content;
  content.layout = "nvfp4-exact-sm90-1";
  content.format = Format::nvfp4;
  content.n = 32;
  content.k = 64;
  content.packed = std::vector<std::byte>(64);
  const ops::PackedImage image(content);
  block_ = Block(image.bytes());
  image.write({.sums = ops::byte_sums, .put = [&](std::size_t offset, std::span<const std::byte> bytes) {
                 std::copy(bytes.begin(), bytes.end(), block_.span().begin() + static_cast<std::ptrdiff_t>(offset));
               }});
  expect("they were packed for a GPU (nvfp4-exact-sm90-1)", PackedCheck::header, ErrorCode::unsupported);
}

TEST_F(RefusedBlock, TheWeightsOfTheOtherOperation) {
  test::GroupedCase of(grouped_problem(Format::bf16, true, false), {.groups = {0, 4, 4, 11}});
  const Block grouped = block_of(pack(Device::cpu(), of.weights()));
  expect_refusal([&] { (void)grouped_from_block(Device::cpu(), block_.span()); },
                 "it holds the weights of a dual GEMM, expected those of experts");
  block_ = grouped;
  expect("it holds the weights of 3 experts, of a grouped product");
}

TEST_F(RefusedBlock, ABlockOfAnotherSizeIsNotWritten) {
  const PackedWeights weights = from_block(Device::cpu(), block_.span());
  Block small(block_.span().size() - 1);
  expect_refusal([&] { to_block(weights, small.span()); }, "expected the ");
  EXPECT_TRUE(std::ranges::all_of(small.span(), [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace
}  // namespace thresher
