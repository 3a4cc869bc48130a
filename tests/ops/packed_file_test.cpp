// Packed weights in files: what was saved is what runs, and nothing else is taken.
#include "thresher/packed_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ops/packed_image.hpp"
#include "support/dual_gemm_case.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> outputs_of_plan(const PackedWeights& weights, test::DualGemmCase& of) {
  const DualGemm gemm = plan(Device::cpu(), of.problem, weights);
  std::vector<std::byte> memory(gemm.workspace_bytes() + 256);
  void* start = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  of.c.poison();
  gemm.run({}, of.a.view(), of.c.view(), start);
  const auto* bytes = reinterpret_cast<const std::byte*>(of.c.bytes().data());
  return {bytes, bytes + of.c.bytes().size()};
}

class PackedFile : public ::testing::Test {
 protected:
  void save(Format format, const test::Layout& layout = {}) {
    test::DualGemmCase of =
        test::DualGemmCase::random({.m = 3, .n = 40, .k = 48, .a = Format::bf16, .b = format}, layout);
    save_packed(pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view()), path_);
  }

  void expect_refusal(const std::string& part, ErrorCode code = ErrorCode::invalid_argument) const {
    try {
      (void)load_packed(Device::cpu(), path_);
      FAIL() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
    }
  }

  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  /// Same length, so that the rest of the file stays where it is.
  void replace(const std::string& text, const std::string& by) const {
    std::string all = bytes();
    const std::size_t place = all.find(text);
    ASSERT_NE(place, std::string::npos) << text;
    ASSERT_EQ(text.size(), by.size());
    write(all.replace(place, text.size(), by));
  }

  ScratchFolder folder_;
  std::string path_ = (folder_ / "weights").string();
};

TEST_F(PackedFile, WhatIsLoadedGivesTheSameBits) {
  for (const Format format : operand_formats) {
    for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      for (const bool global_scales : {false, true}) {
        const test::Layout layout{.row_gap = 16, .scales = scales, .global_scales = global_scales};
        test::DualGemmCase of =
            test::DualGemmCase::random({.m = 3, .n = 40, .k = 48, .a = Format::bf16, .b = format}, layout);
        const PackedWeights weights = pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view());
        const std::vector<std::byte> expected = outputs_of_plan(weights, of);
        save_packed(weights, path_);
        const PackedWeights loaded = load_packed(Device::cpu(), path_);
        of.b1_gate.poison();  // the loaded weights are their own
        EXPECT_EQ(outputs_of_plan(loaded, of), expected) << name(format);
        save_packed(loaded, path_);
        EXPECT_EQ(outputs_of_plan(load_packed(Device::cpu(), path_), of), expected) << "saved again, over itself";
      }
    }
  }
}

TEST_F(PackedFile, DamageIsFound) {
  save(Format::nvfp4);
  std::string all = bytes();
  all.back() ^= 1;
  write(all);
  expect_refusal("it is damaged");
  write(all.substr(0, all.size() - 8));
  expect_refusal("");
}

TEST_F(PackedFile, AnotherVersionIsNamed) {
  save(Format::fp16);
  replace(R"("thresher_packed_weights":"3")", R"("thresher_packed_weights":"1")");
  expect_refusal("it is of version '1' and this Thresher reads versions '2' and '3'");
}

TEST_F(PackedFile, WhatWasPackedForAGpuIsNotForTheCpu) {
  ops::PackedContent content;
  content.layout = "nvfp4-exact-sm90-1";
  content.format = Format::nvfp4;
  content.n = 32;
  content.k = 64;
  content.packed = std::vector<std::byte>(64);
  ops::write_packed_file(path_, content);
  expect_refusal("nvfp4-exact-sm90-1", ErrorCode::unsupported);
}

TEST_F(PackedFile, OtherFilesAreNoPackedWeights) {
  write("{}");
  expect_refusal("");
  save(Format::fp16);
  replace("thresher_packed_weights", "thresher_packed_weighty");
  expect_refusal("it holds no packed weights");
  fs::remove(path_);
  expect_refusal("", ErrorCode::io);
}

TEST_F(PackedFile, ShapesThatDoNotFitTheirBytesAreDamage) {
  save(Format::fp16);
  replace(R"("n":"40")", R"("n":"41")");
  expect_refusal("its tensor b1 is F16 [40, 48], expected F16 [41, 48]");
}

TEST_F(PackedFile, WhatTheHeaderSaysIsNotChangedUnseen) {
  save(Format::fp8_row);
  replace(R"("numerics":"exact")", R"("numerics":"fast" )");
  expect_refusal("its header is not what was written");
}

TEST_F(PackedFile, APlanKeepsLoadedWeights) {
  save(Format::bf16);
  test::DualGemmCase of = test::DualGemmCase::random({.m = 3, .n = 40, .k = 48, .a = Format::bf16, .b = Format::bf16});
  const std::vector<std::byte> expected = outputs_of_plan(load_packed(Device::cpu(), path_), of);
  const DualGemm gemm = plan(Device::cpu(), of.problem, load_packed(Device::cpu(), path_));
  std::vector<std::byte> memory(gemm.workspace_bytes() + 256);
  void* start = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  of.c.poison();
  gemm.run({}, of.a.view(), of.c.view(), start);
  EXPECT_EQ(std::memcmp(of.c.bytes().data(), expected.data(), expected.size()), 0);
}

TEST_F(PackedFile, NothingIsWrittenWhereNothingCanBe) {
  test::DualGemmCase of = test::DualGemmCase::random({.m = 3, .n = 40, .k = 48});
  const PackedWeights weights = pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view());
  EXPECT_THROW(save_packed(weights, (folder_ / "missing" / "weights").string()), Error);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace thresher
