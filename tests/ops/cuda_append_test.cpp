// Appending on a GPU, and decoding behind it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "support/append_case.hpp"
#include "support/gpu.hpp"
#include "thresher/thresher.hpp"

namespace thresher::ops {
namespace {

using test::AppendCase;
using test::OnGpu;

/// The tensors of a case on GPU 0, between guard zones.
class AppendOnGpu {
 public:
  explicit AppendOnGpu(AppendCase& host) : host_(host), tensors(host.tensors) {
    move(tensors.q, host.q);
    move(tensors.k, host.k);
    move(tensors.v, host.v);
    q_out_ = move(tensors.q_out, host.q_out);
    k_out_ = move(tensors.k_out, host.k_out);
    k_cache_ = move(tensors.k_cache, host.k_cache);
    v_cache_ = move(tensors.v_cache, host.v_cache);
    move(tensors.k_descale, host.k_descale);
    move(tensors.v_descale, host.v_descale);
    move(tensors.positions, host.positions, host.narrow_positions);
    move(tensors.slots, host.slots, host.narrow_slots);
  }

  void fetch() {
    runtime::synchronize({}, 0);
    host_.q_out = q_out_->download<std::uint16_t>();
    host_.k_out = k_out_->download<std::uint16_t>();
    fetch(*k_cache_, host_.k_cache);
    fetch(*v_cache_, host_.v_cache);
    for (const std::unique_ptr<OnGpu>& one : owned_) {
      ASSERT_TRUE(one->guards_intact());
    }
  }

 private:
  template <class T>
  OnGpu* move(Tensor& tensor, const std::vector<T>& values) {
    if (tensor.data == nullptr) {
      return nullptr;
    }
    owned_.push_back(std::make_unique<OnGpu>(values));
    tensor.data = owned_.back()->data();
    tensor.device = {DeviceKind::cuda, 0};
    return owned_.back().get();
  }
  void move(TokenNumbers& numbers, const std::vector<std::int64_t>& wide, const std::vector<std::int32_t>& narrow) {
    owned_.push_back(numbers.bits == 32 ? std::make_unique<OnGpu>(narrow) : std::make_unique<OnGpu>(wide));
    numbers.data = owned_.back()->data();
  }
  static void fetch(const OnGpu& from, std::vector<std::uint8_t>& to) {
    const std::vector<std::uint8_t> bytes = from.download<std::uint8_t>();
    std::copy(bytes.begin(), bytes.end(), to.begin());  // where they lie: tensors of the host point there
  }

  AppendCase& host_;
  OnGpu* q_out_ = nullptr;
  OnGpu* k_out_ = nullptr;
  OnGpu* k_cache_ = nullptr;
  OnGpu* v_cache_ = nullptr;
  std::vector<std::unique_ptr<OnGpu>> owned_;

 public:
  AppendTensors tensors;
};

class CudaAppend : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_GPU(); }
};

/// Outputs lie where the case's tensors say.
void adopt(AppendCase& c) {
  c.tensors.q_out.data = c.q_out.data();
  c.tensors.k_out.data = c.k_out.data();
}

TEST_F(CudaAppend, TurnsAndWritesAsTheDefinitionSays) {
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const RotaryPairs pairs : {RotaryPairs::none, RotaryPairs::halves, RotaryPairs::interleaved}) {
      for (const bool is_fp8 : {false, true}) {
        for (const std::int64_t rotary_dim : {0, 64, 20}) {
          AppendProblem problem{.tokens = 300,
                                .heads = 8,
                                .kv_heads = 2,
                                .head_dim = 128,
                                .format = format,
                                .pairs = pairs,
                                .rotary_dim = pairs == RotaryPairs::none ? 0 : rotary_dim,
                                .page_size = 16,
                                .pages = 30};
          if (is_fp8) {
            problem.kv_format = Format::fp8_e4m3;
          }
          AppendCase c(problem, is_fp8 ? 32 : 64);
          const Append append = plan(Device::cuda(0), problem);
          AppendOnGpu on_gpu(c);
          EXPECT_EQ(c.fault_after([&] {
            append.run({}, on_gpu.tensors);
            on_gpu.fetch();
            adopt(c);
          }),
                    "")
              << static_cast<int>(pairs) << is_fp8 << rotary_dim;
        }
      }
    }
  }
}

/// A token is appended and decoded, both calls launched early: the keys are there when they are read.
TEST_F(CudaAppend, DecodingFollowsByDependentLaunch) {
  AppendProblem problem{
      .tokens = 16, .heads = 8, .kv_heads = 2, .head_dim = 128, .format = Format::bf16, .page_size = 16};
  problem.pages = 1;
  AppendCase c(problem);
  for (std::size_t i = 0; i < c.slots.size(); ++i) {
    c.slots[i] = static_cast<std::int64_t>(i);
    c.positions[i] = static_cast<std::int64_t>(i);
  }
  AppendOnGpu on_gpu(c);
  AttentionProblem decode{
      .heads = 8, .kv_heads = 2, .queries = 16, .keys = 16, .head_dim = 128, .format = Format::bf16};
  decode.variable_length = decode.causal = true;
  decode.page_size = 16;
  decode.pages = 1;
  const OnGpu offsets(std::vector<std::int32_t>{0, 16});
  const OnGpu used(std::vector<std::int32_t>{16});
  const OnGpu table(std::vector<std::int32_t>{0});
  const OnGpu out(c.q_out);
  const DeviceId gpu{DeviceKind::cuda, 0};
  AttentionTensors tensors{.q = on_gpu.tensors.q_out,
                           .k = on_gpu.tensors.k_cache,
                           .v = on_gpu.tensors.v_cache,
                           .o = on_gpu.tensors.q_out,
                           .cu_seqlens_q = Tensor::contiguous(offsets.data(), Format::int32, {2}, gpu),
                           .block_table = Tensor::contiguous(table.data(), Format::int32, {1, 1}, gpu),
                           .seqused_k = Tensor::contiguous(used.data(), Format::int32, {1}, gpu)};
  tensors.o.data = out.data();
  const Append append = plan(Device::cuda(0), problem);
  const Attention attention = plan(Device::cuda(0), decode, {.strategy = "stream_k", .dependent_launch = true});
  const Workspace workspace(Device::cuda(0), attention.workspace_bytes());
  append.run({}, on_gpu.tensors);
  runtime::synchronize({}, 0);
  attention.run({}, tensors, workspace.data());
  runtime::synchronize({}, 0);
  const std::vector<std::uint16_t> wanted = out.download<std::uint16_t>();
  for (int i = 0; i < 100; ++i) {
    runtime::fill_async(on_gpu.tensors.k_cache.data, static_cast<std::uint8_t>(i), c.k_cache.size(), {}, 0);
    append.run({}, on_gpu.tensors);
    attention.run({}, tensors, workspace.data());
    runtime::synchronize({}, 0);
    ASSERT_EQ(out.download<std::uint16_t>(), wanted) << i;
  }
}

}  // namespace
}  // namespace thresher::ops
