// Layers of checkpoints by their names, and `thresher quantize` on a model, as a user calls them. The checkpoints are
// those that public packages wrote (tests/formats/checkpoints).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.hpp"
#include "cli/refusal.hpp"
#include "formats/checkpoint.hpp"
#include "formats/numbers.hpp"
#include "support/silu.hpp"

namespace thresher::testing {
namespace {

namespace fs = std::filesystem;
using formats::Dtype;

const fs::path recorded = fs::path(THRESHER_SOURCE_DIR) / "tests/formats/checkpoints";

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class Checkpoints : public ::testing::Test {
 protected:
  /// tokens.safetensors has `hidden` [1, 32], all 1, so that a product is the sum of a weight's row.
  Checkpoints() {
    const std::vector<std::uint16_t> ones(32, formats::float_to_fp16(1.0F));
    write("tokens.safetensors", "hidden", {1, 32}, ones);
  }

  void write(const char* file, const std::string& name, const std::vector<std::int64_t>& shape,
             const std::vector<std::uint16_t>& values) const {
    const formats::TensorToWrite tensor{name, Dtype::f16, shape, std::as_bytes(std::span(values))};
    formats::write_safetensors(folder_ / file, {&tensor, 1});
  }

  [[nodiscard]] Outcome thresher(const std::string& arguments) const { return run_thresher(folder_.path(), arguments); }

  /// c in F32 of tokens and the checkpoint `in`, with `names` for the weights.
  [[nodiscard]] std::vector<float> run(const std::string& in, const std::string& names) const {
    const Outcome outcome = thresher("run dual-gemm --in tokens.safetensors --in '" + in +
                                     "' --a hidden --out out.safetensors --device cpu --out-type fp32 " + names);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const formats::SafetensorsFile file(folder_ / "out.safetensors");
    return floats(file.read(*file.find("c")));
  }

  void expect_refusal(const std::string& arguments, const std::string& part) const {
    SCOPED_TRACE(arguments);
    thresher::testing::expect_refused(thresher(arguments), folder_.path(), part);
  }

  ScratchFolder folder_;
};

constexpr const char* proj = "--gate model.layers.0.mlp.gate_proj --up model.layers.0.mlp.up_proj";

TEST_F(Checkpoints, LayersOfPublicPackagesGiveWhatTheirWeightsAre) {
  for (const char* name :
       {"compressed_tensors_nvfp4a16", "compressed_tensors_nvfp4", "compressed_tensors_mxfp4", "modelopt_nvfp4"}) {
    const fs::path in = recorded / (std::string(name) + ".safetensors");
    const formats::Checkpoint checkpoint(in);
    const std::vector<float> gate = floats(checkpoint.find("expected.gate_proj").read());
    const std::vector<float> up = floats(checkpoint.find("expected.up_proj").read());
    const std::vector<float> c = run(in.string(), proj);
    ASSERT_EQ(c.size(), 8U);
    for (std::size_t n = 0; n < c.size(); ++n) {
      double g = 0;
      double u = 0;
      for (std::size_t k = 0; k < 32; ++k) {
        g += static_cast<double>(gate[n * 32 + k]);
        u += static_cast<double>(up[n * 32 + k]);
      }
      EXPECT_NEAR(static_cast<double>(c[n]), silu(g) * u, 1e-5) << name << " " << n;
    }
  }
}

TEST_F(Checkpoints, AFolderAnIndexAndItsFilesAreTheSame) {
  const fs::path model = recorded / "llama";
  const std::vector<float> c = run(model.string(), proj);
  ASSERT_EQ(c.size(), 8U);
  EXPECT_EQ(run((model / "model.safetensors.index.json").string(), proj), c);
  EXPECT_EQ(run((model / "model-00004-of-00006.safetensors").string() + "' '" +
                    (model / "model-00005-of-00006.safetensors").string(),
                proj),
            c);
  const Outcome packed = thresher("pack --in '" + model.string() + "' --out packed --device cpu " + proj);
  ASSERT_EQ(packed.status, 0) << packed.err;
  EXPECT_NE(packed.out.find("model.layers.0.mlp.gate_proj (gate) and model.layers.0.mlp.up_proj (up) [8, 32] bf16"),
            std::string::npos)
      << packed.out;
  EXPECT_EQ(run(model.string(), "--weights packed"), c);
}

TEST_F(Checkpoints, AFusedTensorNeedsItsOrder) {
  std::vector<std::uint16_t> rows;
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F}) {
    rows.insert(rows.end(), 32, formats::float_to_fp16(value / 32));
  }
  write("fused.safetensors", "mlp.gate_up_proj.weight", {4, 32}, rows);
  const auto expect = [&](const char* order, const std::array<double, 2>& gate, const std::array<double, 2>& up) {
    const std::string names = "--gate-up mlp.gate_up_proj --gate-up-order " + std::string(order);
    const std::vector<float> c = run("fused.safetensors", names);
    ASSERT_EQ(c.size(), 2U);
    for (std::size_t n = 0; n < 2; ++n) {
      EXPECT_NEAR(static_cast<double>(c[n]), silu(gate[n]) * up[n], 1e-5) << order;
    }
    const Outcome packed = thresher("pack --in fused.safetensors --out packed --device cpu " + names);
    EXPECT_EQ(packed.status, 0) << packed.err;
    EXPECT_EQ(run("fused.safetensors", "--weights packed"), c);
  };
  expect("gate-first", {1, 2}, {3, 4});
  expect("up-first", {3, 4}, {1, 2});
  expect("interleaved", {1, 3}, {2, 4});
  fs::remove(folder_ / "out.safetensors");
  for (const char* command : {"pack", "run dual-gemm --a hidden --in tokens.safetensors"}) {
    const std::string begin =
        std::string(command) + " --in fused.safetensors --device cpu --out out.safetensors --gate-up mlp.gate_up_proj";
    expect_refusal(begin, "--gate-up-order");
    expect_refusal(begin + " --gate-up-order backwards", "backwards");
  }
}

TEST_F(Checkpoints, NamesThatContradictAreRefused) {
  const std::string begin = "run dual-gemm --in tokens.safetensors --out out.safetensors --device cpu --a hidden ";
  expect_refusal(begin + "--gate x", "--up");
  expect_refusal(begin + "--up x", "--gate");
  expect_refusal(begin + "--gate x --up x", "--gate and --up both name 'x'");
  expect_refusal(begin + "--gate x --up y --gate-up z --gate-up-order up-first", "--gate");
  expect_refusal(begin + "--gate-up-order up-first", "--gate-up");
  expect_refusal(begin + "--weights w --gate x --up y", "--weights");
  expect_refusal(begin + "--weights w --gate-up x --gate-up-order up-first", "--weights");
  expect_refusal(begin + "--gate x --up y", "tokens.safetensors has no tensor 'x' or 'x.weight'; it has 'hidden'");
}

/// MXFP4 is held as what products are given, and the command says which numerics are exact.
TEST_F(Checkpoints, PackingMxfp4SaysWhatHoldsIt) {
  const std::string in = (recorded / "compressed_tensors_mxfp4.safetensors").string();
  const Outcome packed = thresher("pack --device cpu --out packed --in '" + in + "' " + proj);
  ASSERT_EQ(packed.status, 0) << packed.err;
  EXPECT_NE(packed.out.find("(up) [8, 32] mxfp4 as nvfp4, exact in both numerics, packed for"), std::string::npos)
      << packed.out;
  EXPECT_EQ(run(in, "--weights packed"), run(in, proj));
}

/// From a model in bf16 to MXFP4, and through every command that reads single matrices.
TEST_F(Checkpoints, QuantisedMxfp4IsReadByEveryProduct) {
  const fs::path model = recorded / "llama";
  for (const char* const part : {"4", "5"}) {
    const Outcome made =
        thresher("quantize --format mxfp4 --exclude '*down*' --include '*_proj.weight' --in '" +
                 (model / (std::string("model-0000") + part + "-of-00006.safetensors")).string() + "' --out mx" + part);
    ASSERT_EQ(made.status, 0) << made.err;
  }
  const std::vector<float> exact = run((folder_ / "mx4").string() + "' '" + (folder_ / "mx5").string(), proj);
  const std::vector<float> wide = run(model.string(), proj);
  ASSERT_EQ(exact.size(), wide.size());
  for (std::size_t n = 0; n < wide.size(); ++n) {
    EXPECT_NEAR(static_cast<double>(exact[n]), static_cast<double>(wide[n]), 0.01);
  }
  const Outcome gemm = thresher(
      "run gemm --in tokens.safetensors mx5 --a hidden --b model.layers.0.mlp.up_proj --out g.safetensors --device "
      "cpu");
  ASSERT_EQ(gemm.status, 0) << gemm.err;
  EXPECT_NE(gemm.out.find("weight_packed' of mx5: mxfp4 as nvfp4, exact in both numerics\n"), std::string::npos)
      << gemm.out;
}

TEST_F(Checkpoints, AFileOfTheModelIsNeverWrittenOver) {
  fs::copy(recorded / "llama", folder_ / "llama");
  for (const char* out : {"llama/model.safetensors.index.json", "llama/model-00001-of-00006.safetensors"}) {
    const std::string before = slurp(folder_ / out);
    expect_refusal("pack --in llama --device cpu --out " + std::string(out) + " " + proj,
                   "is a file that this command reads");
    EXPECT_EQ(slurp(folder_ / out), before);
  }
}

TEST_F(Checkpoints, QuantizeSaysWhatItLeftAloneAndWhy) {
  const std::string in = (recorded / "llama/model-00005-of-00006.safetensors").string();
  const Outcome outcome = thresher("quantize --in '" + in + "' --out out.safetensors --exclude '*none*'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "model.layers.0.mlp.up_proj.weight -> model.layers.0.mlp.up_proj.weight [8, 32]: 512 bytes to 148\n"
            "model.layers.0.input_layernorm.weight left alone: no matrix [rows, K]\n"
            "model.layers.0.mlp.down_proj.weight left alone: K is no multiple of 16\n"
            "model.layers.0.post_attention_layernorm.weight left alone: no matrix [rows, K]\n"
            "model.norm.weight left alone: no matrix [rows, K]\n"
            "no tensor is excluded by '*none*'\n"
            "left alone, K is no multiple of 16: 512 bytes in 1\n"
            "left alone, no matrix [rows, K]: 192 bytes in 3\n"
            "1 quantized, 512 bytes to 148; 4 left alone, 704 bytes; written to out.safetensors\n");
  fs::remove(folder_ / "out.safetensors");
  expect_refusal(
      "quantize --in '" + (recorded / "llama/model-00001-of-00006.safetensors").string() + "' --out out.safetensors",
      "tensor 'model.embed_tokens.weight' is: an embedding (*embed*)");
}

/// What is lost and what is left alone is said where it is seen.
TEST_F(Checkpoints, QuantizeWarnsOfWhatBecomesZeroAndOfScaledMatrices) {
  std::vector<float> tiny(64, 1e-44F);
  tiny[0] = 0;
  const std::vector<float> scale(1, 2.0F);
  const std::vector<formats::TensorToWrite> tensors{
      {"down_proj.g_idx", Dtype::f32, {1}, std::as_bytes(std::span(scale))},
      {"down_proj.weight", Dtype::f32, {2, 32}, std::as_bytes(std::span(tiny))},
      {"up_proj.weight", Dtype::f32, {2, 32}, std::as_bytes(std::span(tiny))}};
  formats::write_safetensors(folder_ / "in.safetensors", tensors);
  const Outcome outcome = thresher("quantize --in in.safetensors --out out.safetensors");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(
      outcome.err,
      "warning: 63 values of up_proj.weight that are not 0 become 0: nvfp4 has none as small\n"
      "warning: down_proj.weight, 256 bytes, is not quantized: it is beside 'down_proj.g_idx', which changes what "
      "its values mean\n");
}

TEST_F(Checkpoints, NamesReachTheTerminalWithoutWhatItObeys) {
  const std::string name = "evil\x1b[2J\u009b31m\u202e";
  write("in.safetensors", name, {1, 32}, std::vector<std::uint16_t>(32, 0));
  const Outcome outcome = thresher("quantize --in in.safetensors --out out.safetensors");
  EXPECT_TRUE(outcome.out.starts_with("evil?[2J?31m? -> evil?[2J?31m?.weight [1, 32]")) << outcome.out;
  const Outcome refused = thresher("pack --in in.safetensors --out packed --device cpu");
  EXPECT_NE(refused.err.find("it has 'evil?[2J?31m?'"), std::string::npos) << refused.err;
}

/// Whether the signal meets a file that is half written, or comes too early or too late, no temporary file is left.
TEST_F(Checkpoints, AnInterruptedQuantizeLeavesNoTemporaryFile) {
  write("in.safetensors", "large", {4096, 4096}, std::vector<std::uint16_t>(std::size_t{4096} * 4096, 0x3C00));
  const auto has_temporary = [&] {
    return std::any_of(fs::directory_iterator(folder_.path()), fs::directory_iterator(), [](const auto& entry) {
      return entry.path().filename().string().starts_with("out.safetensors.");
    });
  };
  /// What the system calls the file that the process writes in the folder; empty before it does.
  const auto written_by = [&](pid_t process) {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", process), gone)) {
      const std::string file = fs::read_symlink(entry.path(), gone).string();
      if (!gone && file.starts_with(folder_.path().string() + "/") && !file.ends_with("in.safetensors")) {
        return file;
      }
    }
    return std::string();
  };
  for (const int number : {SIGINT, SIGTERM, SIGKILL}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::string in = (folder_ / "in.safetensors").string();
      const std::string out = (folder_ / "out.safetensors").string();
      execl(THRESHER_BINARY, THRESHER_BINARY, "quantize", "--in", in.c_str(), "--out", out.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    bool ended = false;
    while (written_by(child).empty() && !ended) {
      ended = waitpid(child, &status, WNOHANG) == child;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!ended) {
      const bool has_name = !written_by(child).ends_with("(deleted)");
      kill(child, number);
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (number == SIGKILL && has_name) {
        break;  // a file system that has no files without a name
      }
    }
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == number : WEXITSTATUS(status) == 0) << status;
    EXPECT_FALSE(has_temporary());
  }
}

}  // namespace
}  // namespace thresher::testing
