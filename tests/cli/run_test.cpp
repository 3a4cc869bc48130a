// `thresher run` and `thresher quantize` as a user calls them: results, and one sentence with status 2 for bad input.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/refusal.hpp"
#include "cli/stored_file.hpp"
#include "formats/checkpoint.hpp"
#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/operands.hpp"
#include "formats/safetensors.hpp"
#include "support/silu.hpp"

namespace thresher::testing {
namespace {

using formats::Dtype;

Stored bf16(std::vector<std::int64_t> shape, float value) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  const std::uint16_t bits = formats::float_to_bf16(value);
  Stored stored{Dtype::bf16, std::move(shape), std::vector<std::byte>(static_cast<std::size_t>(count) * 2)};
  for (std::size_t i = 0; i < stored.bytes.size(); i += 2) {
    std::memcpy(&stored.bytes[i], &bits, 2);
  }
  return stored;
}

/// a [3,32] of 1, gate [5,32] of 1/8, up [5,32] of −1/4: g = 4, u = −8.
File dense_file() { return {{"a", bf16({3, 32}, 1.0F)}, {"b1", bf16({5, 32}, 0.125F)}, {"b2", bf16({5, 32}, -0.25F)}}; }

class Command : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path(const char* name) const { return folder_.path() / name; }
  [[nodiscard]] Outcome thresher(const std::string& arguments) const { return run_thresher(folder_.path(), arguments); }

  void expect_refusal(const Outcome& outcome, const std::string& part) const {
    thresher::testing::expect_refused(outcome, folder_.path(), part);
  }

  [[nodiscard]] std::vector<float> result() const {
    const formats::SafetensorsFile file(path("out.safetensors"));
    const std::vector<std::byte> bytes = file.read(*file.find("c"));
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  ScratchFolder folder_;
};

constexpr const char* run_command = "run dual-gemm --in in.safetensors --out out.safetensors --device cpu ";

TEST_F(Command, PackedWeightsStandInForB1AndB2) {
  write(path("in.safetensors"), dense_file());
  const Outcome packed = thresher("pack --in in.safetensors --out packed.safetensors --device cpu");
  ASSERT_EQ(packed.status, 0) << packed.err;
  EXPECT_NE(packed.out.find("[5, 32] bf16 packed"), std::string::npos) << packed.out;
  write(path("a.safetensors"), {{"a", bf16({3, 32}, 1.0F)}});
  const std::string run =
      "run dual-gemm --in a.safetensors --out out.safetensors --device cpu --out-type fp32 --weights ";
  expect_refusal(thresher(run + "in.safetensors"), "it holds no packed weights");
  const Outcome ran = thresher(run + "packed.safetensors");
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const float value : result()) {
    EXPECT_NEAR(value, silu(4.0) * -8.0, 1e-5);
  }
}

TEST_F(Command, RunWritesTheActivatedGateTimesUp) {
  write(path("in.safetensors"), dense_file());
  for (const char* strategy : {"two_pass", "interleaved"}) {
    const Outcome outcome = thresher(std::string(run_command) + "--out-type fp32 --strategy " + strategy);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<float> c = result();
    ASSERT_EQ(c.size(), 15U);
    for (const float value : c) {
      EXPECT_NEAR(value, silu(4) * -8, 1e-4);
    }
  }
}

TEST_F(Command, RunTakesTheActivationsParameters) {
  write(path("in.safetensors"), dense_file());
  const Outcome outcome = thresher(std::string(run_command) +
                                   "--out-type fp32 --activation swiglu_clamped --alpha 2 --limit 3 --up-offset 0.5");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NEAR(result()[0], 3 / (1 + std::exp(-6.0)) * (-3 + 0.5), 1e-4);
}

TEST_F(Command, RunReadsWhatQuantizeWrote) {
  write(path("in.safetensors"), dense_file());
  const Outcome quantized = thresher("quantize --in in.safetensors --out packed.safetensors --include b1 b2");
  ASSERT_EQ(quantized.status, 0) << quantized.err;
  const Outcome outcome =
      thresher("run dual-gemm --in packed.safetensors --out out.safetensors --device cpu --out-type fp32");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NEAR(result()[0], silu(4) * -8, 1e-2);  // constants quantise exactly, but for the scale's rounding
}

/// Every output is the same number, and so is what is read again where c is an operand.
TEST_F(Command, RunWritesQuantizedOutputsAsOperandsAreRead) {
  File file{{"a", bf16({3, 32}, 1.0F)}, {"b1", bf16({256, 32}, 0.125F)}, {"b2", bf16({256, 32}, -0.25F)}};
  write(path("in.safetensors"), file);
  for (const std::string type : {"fp8_tensor --out-scale 0.5", "fp8_row", "fp8_row --out-powers-of-two", "fp8_block",
                                 "nvfp4 --out-scale 0.25"}) {
    SCOPED_TRACE(type);
    const Outcome outcome = thresher(run_command + ("--out-type " + type));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const formats::Checkpoint written(path("out.safetensors"));
    const formats::Operand c = formats::load_operand(written, "c", ScaleLayout::row_major, OperandRole::tokens);
    EXPECT_EQ(name(c.format()), type.substr(0, type.find(' ')));
    const Tensor view = c.view();
    EXPECT_EQ(view.shape[0], 3);
    EXPECT_EQ(view.shape[1], 256);
    const double wanted = silu(4) * -8;
    EXPECT_NEAR(formats::element(view, 2, 255) * formats::global_scale(view), wanted, 0.13 * std::fabs(wanted));
  }
  std::filesystem::remove(path("out.safetensors"));
  const std::string run = std::string(run_command) + "--out-type ";
  expect_refusal(thresher(run + "fp16 --out-scale 2"),
                 "--out-scale is of --out-type fp8_tensor and nvfp4, not of fp16");
  expect_refusal(thresher(run + "nvfp4 --out-scale 0"), "--out-scale is 0, expected a number above 0");
  expect_refusal(thresher(run + "nvfp4 --out-powers-of-two"),
                 "--out-powers-of-two is of --out-type fp8_row and fp8_block, not of nvfp4");
}

TEST_F(Command, NoTokensGiveAnEmptyResult) {
  File file = dense_file();
  file["a"] = bf16({0, 32}, 1.0F);
  write(path("in.safetensors"), file);
  const Outcome outcome = thresher(std::string(run_command) + "--out-type fp32");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(result().empty());
}

TEST_F(Command, RunNamesTheTensorThatIsWrong) {
  File file = dense_file();
  file.erase("b2");
  write(path("in.safetensors"), file);
  expect_refusal(thresher(run_command), "b2");

  file = dense_file();
  file["b2"] = bf16({4, 32}, 1.0F);
  write(path("in.safetensors"), file);
  expect_refusal(thresher(run_command), "tensor 'b2' of in.safetensors is [4, 32], expected [5, 32] like b1");

  file = dense_file();
  file["a"] = bf16({3, 16}, 1.0F);
  write(path("in.safetensors"), file);
  expect_refusal(thresher(run_command), "K = 16");

  file = {{"a", bf16({3, 36}, 1.0F)}, {"b1", bf16({5, 36}, 1.0F)}, {"b2", bf16({5, 36}, 1.0F)}};
  write(path("in.safetensors"), file);
  expect_refusal(thresher(run_command), "36");
}

TEST_F(Command, RunRefusesFilesThatAreNotWhatTheySay) {
  expect_refusal(thresher(run_command), "in.safetensors");
  std::ofstream(path("in.safetensors")) << "not a safetensors file at all";
  expect_refusal(thresher(run_command), "in.safetensors");
  write(path("in.safetensors"), dense_file());
  std::filesystem::resize_file(path("in.safetensors"), std::filesystem::file_size(path("in.safetensors")) - 1);
  expect_refusal(thresher(run_command), "in.safetensors");
}

TEST_F(Command, RunRefusesOptionsItDoesNotKnow) {
  write(path("in.safetensors"), dense_file());
  expect_refusal(thresher(std::string(run_command) + "--strategy fastest"), "fastest");
  expect_refusal(thresher(std::string(run_command) + "--activation relu"), "relu");
  expect_refusal(thresher(std::string(run_command) + "--activation swiglu_clamped --limit -1"), "limit");
  expect_refusal(thresher(std::string(run_command) + "--turbo"), "--turbo");
  expect_refusal(thresher("run dual-gemm --in in.safetensors"), "--out");
}

TEST_F(Command, AnInputIsNeverWrittenOver) {
  write(path("in.safetensors"), dense_file());
  std::filesystem::create_symlink("in.safetensors", path("link"));
  const std::string before = slurp(path("in.safetensors"));
  for (const char* command : {"run dual-gemm", "run attention", "pack", "quantize"}) {
    for (const char* out : {"in.safetensors", "./in.safetensors", "link"}) {
      expect_refusal(thresher(std::string(command) + " --in in.safetensors --out " + out),
                     "is a file that this command reads");
      EXPECT_EQ(slurp(path("in.safetensors")), before);
    }
  }
}

TEST_F(Command, PackedWeightsAreNeverWrittenOver) {
  write(path("in.safetensors"), dense_file());
  ASSERT_EQ(thresher("pack --in in.safetensors --out packed --device cpu").status, 0);
  const std::string before = slurp(path("packed"));
  expect_refusal(thresher("run dual-gemm --in in.safetensors --weights packed --device cpu --out packed"),
                 "--out packed is a file that this command reads");
  EXPECT_EQ(slurp(path("packed")), before);
}

TEST_F(Command, NothingIsLeftWhenTheResultCannotBeWritten) {
  write(path("in.safetensors"), dense_file());
  const Outcome outcome =
      thresher("run dual-gemm --in in.safetensors --out no/such/folder/out.safetensors --device cpu");
  expect_refusal(outcome, "no/such/folder");
}

TEST_F(Command, DoctorSaysWhereOperationsRun) {
  const Outcome outcome = thresher("doctor");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("operations run on"), std::string::npos);
  for (const char* const subject : {"\ninstructions ", "\ncompiler ", "\ndisassembler ", "\ncache ", "\nledger "}) {
    EXPECT_NE(outcome.out.find(subject), std::string::npos) << subject << " in " << outcome.out;
  }
}

TEST_F(Command, DoctorNamesFoldersThatGiveNoLibrary) {
  std::filesystem::create_directory(path("empty"));
  std::ofstream(path("file")) << "";
  setenv("THRESHER_LIBRARY_PATH", (path("empty").string() + ":" + path("file").string() + ":/does/not/exist").c_str(),
         1);
  const Outcome outcome = thresher("doctor");
  unsetenv("THRESHER_LIBRARY_PATH");
  EXPECT_EQ(outcome.status, 0);
  for (const std::string& said :
       {path("empty").string() + ", which THRESHER_LIBRARY_PATH names, has none of these libraries that can be used\n",
        path("file").string() + ", which THRESHER_LIBRARY_PATH names, is no folder\n",
        std::string("/does/not/exist, which THRESHER_LIBRARY_PATH names, is not there\n")}) {
    EXPECT_NE(outcome.out.find("library path " + said), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(thresher("doctor").out.find("library path"), std::string::npos);
}

TEST_F(Command, DoctorSaysThatACacheIsNoFolder) {
  std::ofstream(path("file")) << "";
  setenv("THRESHER_CACHE", path("file").c_str(), 1);
  const Outcome outcome = thresher("doctor");
  unsetenv("THRESHER_CACHE");
  EXPECT_NE(outcome.out.find("cache        " + path("file").string() + " is no folder: nothing is kept\n"),
            std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace thresher::testing
