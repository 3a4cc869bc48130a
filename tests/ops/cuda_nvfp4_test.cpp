// The strategy `packed` on a GPU against the definition on the CPU.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "support/gpu_dual_gemm_case.hpp"
#include "thresher/error.hpp"
#include "thresher/packed_file.hpp"

namespace thresher::weights_in_nvfp4 {
namespace {

using test::DualGemmCase;
using test::Layout;

class Case : public test::GpuDualGemmCase {
 public:
  explicit Case(DualGemmCase of, bool packed = true, Numerics numerics = Numerics::exact)
      : GpuDualGemmCase(std::move(of), {.strategy = "packed", .knobs = {{"numerics", std::string(name(numerics))}}},
                        packed) {}
};

class FastCase : public Case {
 public:
  explicit FastCase(DualGemmCase of, bool packed = true) : Case(std::move(of), packed, Numerics::fast) {}
};

DualGemmProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, Format a = Format::nvfp4,
                           Format out = Format::fp16) {
  return {.m = m, .n = n, .k = k, .a = a, .b = Format::nvfp4, .out = out};
}

TEST(CudaPackedNvfp4, EveryFormatOfTokensAndOutputs) {
  SKIP_WITHOUT_GPU();
  for (const Format a : {Format::fp16, Format::bf16, Format::nvfp4}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      EXPECT_EQ(Case(DualGemmCase::random(problem_of(33, 72, 320, a, out))).run_and_judge(), "")
          << name(a) << " -> " << name(out);
    }
  }
}

TEST(CudaPackedNvfp4, EveryActivation) {
  SKIP_WITHOUT_GPU();
  for (const ActivationKind kind : {ActivationKind::silu, ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
    DualGemmProblem problem = problem_of(20, 64, 256);
    problem.activation.kind = kind;
    EXPECT_EQ(Case(DualGemmCase::random(problem)).run_and_judge(), "") << name(kind);
  }
}

TEST(CudaPackedNvfp4, EdgeShapesOfEveryTile) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t m : {1, 7, 8, 9, 16, 17, 40, 64, 65, 127, 128, 129, 255, 257}) {
    for (const auto& [n, k] : {std::pair{1, 16}, {3, 48}, {65, 16}, {127, 304}, {200, 1040}, {8, 64}}) {
      EXPECT_EQ(Case(DualGemmCase::random(problem_of(m, n, k))).run_and_judge(), "") << m << "x" << n << "x" << k;
    }
  }
}

TEST(CudaPackedNvfp4, TokensWhoseRowsAreNoWholeBlocks) {
  SKIP_WITHOUT_GPU();
  EXPECT_EQ(Case(DualGemmCase::random(problem_of(70, 96, 80, Format::fp16))).run_and_judge(), "");
  EXPECT_EQ(Case(DualGemmCase::random(problem_of(5, 96, 1072, Format::bf16))).run_and_judge(), "");
}

TEST(CudaPackedNvfp4, GridsThatSplitK) {
  SKIP_WITHOUT_GPU();
  EXPECT_EQ(Case(DualGemmCase::random(problem_of(256, 1024, 2048))).run_and_judge(), "");
  EXPECT_EQ(Case(DualGemmCase::random(problem_of(200, 1000, 1536, Format::bf16, Format::fp32))).run_and_judge(), "");
}

TEST(CudaPackedNvfp4, BlockedScalesAndGlobalScalesPackedOrRaw) {
  SKIP_WITHOUT_GPU();
  for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    for (const bool global_scales : {false, true}) {
      for (const bool packed : {false, true}) {
        const Layout layout{.scales = scales, .global_scales = global_scales};
        EXPECT_EQ(Case(DualGemmCase::random(problem_of(131, 200, 208), layout), packed).run_and_judge(), "");
      }
    }
  }
}

TEST(CudaFastNvfp4, EveryFormatOfTokensAndOutputs) {
  SKIP_WITHOUT_GPU();
  for (const Format a : {Format::fp16, Format::bf16, Format::nvfp4}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(33, 72, 320, a, out))).run_and_judge(), "")
          << name(a) << " -> " << name(out);
    }
  }
}

TEST(CudaFastNvfp4, EdgeShapesOfEveryTile) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t m : {1, 8, 9, 17, 40, 64, 65, 128, 129, 257}) {
    for (const auto& [n, k] : {std::pair{1, 16}, {65, 48}, {200, 1040}, {8, 64}}) {
      EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(m, n, k))).run_and_judge(), "") << m << "x" << n << "x" << k;
    }
  }
}

TEST(CudaFastNvfp4, GridsThatSplitKAndScalesOfBothLayouts) {
  SKIP_WITHOUT_GPU();
  EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(256, 1024, 2048))).run_and_judge(), "");
  EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(200, 1000, 1536, Format::bf16, Format::fp32))).run_and_judge(),
            "");
  for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    for (const bool packed : {false, true}) {
      const Layout layout{.scales = scales, .global_scales = false};
      EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(131, 200, 208), layout), packed).run_and_judge(), "");
    }
  }
}

TEST(CudaFastNvfp4, IsForNvfp4WeightsAndPackedOnly) {
  SKIP_WITHOUT_GPU();
  FastCase fast(DualGemmCase::random(problem_of(8, 64, 128)));
  fast.options.strategy = "two_pass";
  EXPECT_THROW((void)fast.planned(), Error);
}

TEST(CudaPackedNvfp4, PreparedTokensServeSeveralRuns) {
  SKIP_WITHOUT_GPU();
  const Layout layout{.global_scales = true};
  EXPECT_EQ(Case(DualGemmCase::random(problem_of(70, 96, 320), layout)).prepared_once_and_judged(), "");
  for (const Format a : {Format::nvfp4, Format::bf16}) {
    EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(70, 96, 320, a), layout)).prepared_once_and_judged(), "");
  }
}

TEST(CudaPackedNvfp4, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_GPU();
  for (const auto& [m, n, k] : {std::tuple{1, 520, 2048}, {40, 520, 1040}, {256, 1024, 2048}, {300, 520, 1040}}) {
    for (const Format a : {Format::fp16, Format::nvfp4}) {
      EXPECT_EQ(Case(DualGemmCase::random(problem_of(m, n, k, a))).same_bits(1000), "") << m << "x" << n << "x" << k;
      EXPECT_EQ(FastCase(DualGemmCase::random(problem_of(m, n, k, a))).same_bits(1000), "")
          << "fast " << m << "x" << n << "x" << k;
    }
  }
}

TEST(CudaPackedNvfp4, ThreadsAndStreamsShareAPlan) {
  SKIP_WITHOUT_GPU();
  EXPECT_EQ(Case(DualGemmCase::random(problem_of(64, 512, 1024))).shared_by_threads(), "");
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CudaPackedNvfp4, WeightsFromAFileAreTheSame) {
  SKIP_WITHOUT_GPU();
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::filesystem::path first = folder / "thresher-nvfp4-first";
  const std::filesystem::path second = folder / "thresher-nvfp4-second";
  Case of(DualGemmCase::random(problem_of(20, 72, 320)));
  save_packed(pack(Device::cuda(), of.b1.tensor(), of.b2.tensor()), first.string());
  const PackedWeights loaded = load_packed(Device::cuda(), first.string());
  save_packed(loaded, second.string());
  EXPECT_EQ(bytes_of(first), bytes_of(second));
  of.b1.spoil();  // the loaded weights are their own
  const DualGemm gemm = plan(Device::cuda(), of.problem, loaded);
  const test::OnGpu workspace(gemm.workspace_bytes());
  gemm.run({}, of.a.tensor(), of.out, workspace.data());
  runtime::synchronize({}, 0);
  EXPECT_EQ(of.judged(of.c), "");
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

}  // namespace
}  // namespace thresher::weights_in_nvfp4
