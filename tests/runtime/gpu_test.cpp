// The driver, on a GPU.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/cublaslt.hpp"
#include "runtime/kernel.hpp"
#include "runtime/nvml.hpp"
#include "runtime/nvrtc.hpp"
#include "runtime/stream.hpp"
#include "runtime/tensor_map.hpp"
#include "support/gpu.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

using test::OnGpu;

template <class Act>
std::string sentence_of(ErrorCode expected, Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr const char* device_text = R"(
__global__ void add(int* values, int amount) { values[blockIdx.x * blockDim.x + threadIdx.x] += amount; }
__global__ void rank_in_cluster(unsigned* ranks) {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  ranks[blockIdx.x] = rank;
}
__global__ void use_shared(int* out) {
  extern __shared__ int staged[];
  staged[threadIdx.x * 512] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = staged[(31 - threadIdx.x) * 512];
}
)";

Module compiled_module(const std::string& kernel, std::string& lowered) {
  const Cubin cubin = compile({.title = "gpu_test",
                               .text = device_text,
                               .headers = {},
                               .kernels = {kernel},
                               .options = {},
                               .arch = device_properties(0).arch()});
  lowered = cubin.kernels[0].lowered_name;
  return Module(0, cubin.image);
}

Kernel compiled_kernel(const std::string& kernel) {
  std::string lowered;
  const Module module = compiled_module(kernel, lowered);
  return module.kernel(lowered);
}

TEST(GpuDriver, TellsWhatTheGpuIs) {
  SKIP_WITHOUT_GPU();
  const DeviceProperties& properties = device_properties(0);
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GT(properties.multiprocessors, 0);
  EXPECT_GT(properties.l2_bytes, 0U);
  EXPECT_GE(properties.shared_bytes_per_block, std::size_t{48} << 10);
  EXPECT_TRUE(properties.arch().starts_with("sm_"));
  EXPECT_TRUE(contains(sentence_of(ErrorCode::device, [] { device_properties(1000); }), "there is no GPU 1000"));
}

TEST(GpuMemory, KeepsWhatIsCopied) {
  SKIP_WITHOUT_GPU();
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const OnGpu on_gpu(values);
  EXPECT_EQ(on_gpu.download<int>(), values);
  EXPECT_TRUE(on_gpu.guards_intact());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(DeviceBuffer(0, 1).data()) % 256, 0U);
}

TEST(GpuMemory, OverflowSaysHowMuchIsFree) {
  SKIP_WITHOUT_GPU();
  const std::string sentence =
      sentence_of(ErrorCode::out_of_memory, [] { DeviceBuffer(0, std::size_t{1} << 45, "the test"); });
  EXPECT_TRUE(sentence.starts_with("the test needs 32768.00 GiB of GPU 0, which has ")) << sentence;
}

TEST(GpuMemory, PointersTellWhereTheyBelong) {
  SKIP_WITHOUT_GPU();
  const DeviceBuffer buffer(0, 64);
  const int on_host = 0;
  EXPECT_EQ(pointer_device(buffer.data()), (DeviceId{DeviceKind::cuda, 0}));
  EXPECT_EQ(pointer_device(&on_host), (DeviceId{DeviceKind::cpu, 0}));
  EXPECT_EQ(pointer_device(nullptr), (DeviceId{DeviceKind::cpu, 0}));
  EXPECT_EQ(sentence_of(ErrorCode::invalid_argument, [&] { require_on_gpu(&on_host, 0, "b1 (gate)"); }),
            "b1 (gate) points to host memory, expected memory of GPU 0: copy it there first");
  EXPECT_EQ(sentence_of(ErrorCode::invalid_argument, [&] { require_on_gpu(buffer.data(), 1, "c"); }),
            "c points to the memory of GPU 0, expected memory of GPU 1: copy it there first");
}

TEST(GpuKernel, RunsOnAStreamAndInAGraph) {
  SKIP_WITHOUT_GPU();
  const Kernel add = compiled_kernel("add");
  EXPECT_GT(add.registers(), 0);
  EXPECT_GT(add.blocks_per_multiprocessor(128, 0), 0);
  const OnGpu values(std::vector<int>(256, 5));
  const auto enqueue = [&](Stream stream) {
    LaunchConfig config;
    config.grid.x = 2;
    config.block.x = 128;
    config.stream = stream;
    add.launch_with(config, values.data(), 3);
  };
  const OwnedStream stream(0);
  enqueue(stream.get());
  stream.synchronize();
  EXPECT_EQ(values.download<int>(), std::vector<int>(256, 8));
  const Graph graph = Graph::capture(0, [&](Stream captured) {
    enqueue(captured);
    enqueue(captured);
  });
  EXPECT_EQ(graph.nodes(), 2U);
  EXPECT_EQ(values.download<int>(), std::vector<int>(256, 8)) << "a capture must not run";
  graph.launch(stream.get());
  stream.synchronize();
  EXPECT_EQ(values.download<int>(), std::vector<int>(256, 14));
}

TEST(GpuKernel, LoadingDoesNotRun) {
  SKIP_WITHOUT_GPU();
  const Kernel add = compiled_kernel("add");
  const OnGpu values(std::vector<int>(32, 1));
  load_kernels(0, [&](Stream stream) {
    LaunchConfig config;
    config.block.x = 32;
    config.stream = stream;
    add.launch_with(config, values.data(), 1);
  });
  synchronize_device(0);
  EXPECT_EQ(values.download<int>(), std::vector<int>(32, 1));
}

TEST(GpuKernel, FormsClusters) {
  SKIP_WITHOUT_GPU();
  if (device_properties(0).capability_major < 9) {
    GTEST_SKIP() << "this GPU has no clusters";
  }
  const Kernel rank = compiled_kernel("rank_in_cluster");
  const OnGpu ranks(std::vector<unsigned>(8, 99U));
  LaunchConfig config;
  config.grid.x = 8;
  config.block.x = 32;
  config.cluster.x = 4;
  config.dependent_launch = true;
  EXPECT_GT(rank.resident_clusters(config), 0);
  rank.launch_with(config, ranks.data());
  synchronize_device(0);
  EXPECT_EQ(ranks.download<unsigned>(), (std::vector<unsigned>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(GpuKernel, SharedMemoryBeyondTheDefaultMustBeAllowed) {
  SKIP_WITHOUT_GPU();
  const Kernel use_shared = compiled_kernel("use_shared");
  const std::size_t limit = device_properties(0).shared_bytes_per_block;
  LaunchConfig config;
  config.block.x = 32;
  config.dynamic_shared_bytes = static_cast<unsigned>(limit);
  const OnGpu out(std::vector<int>(32, -1));
  const std::string refused = sentence_of(ErrorCode::device, [&] { use_shared.launch_with(config, out.data()); });
  EXPECT_TRUE(contains(refused, "bytes of shared memory")) << refused;
  use_shared.allow_dynamic_shared(limit);
  use_shared.launch_with(config, out.data());
  synchronize_device(0);
  EXPECT_EQ(out.download<int>().front(), 31);
  const std::string too_much =
      sentence_of(ErrorCode::invalid_argument, [&] { use_shared.allow_dynamic_shared(limit + 1024); });
  EXPECT_TRUE(contains(too_much, "allows a block " + std::to_string(limit))) << too_much;
}

TEST(GpuKernel, CodeOfAnotherArchitectureIsRefusedInWords) {
  SKIP_WITHOUT_GPU();
  const std::string other = device_properties(0).arch() == "sm_100a" ? "sm_90a" : "sm_100a";
  const Cubin cubin =
      compile({.title = "other", .text = device_text, .headers = {}, .kernels = {"add"}, .options = {}, .arch = other});
  const std::string sentence = sentence_of(ErrorCode::device, [&] { Module(0, cubin.image); });
  EXPECT_TRUE(contains(sentence, "does not fit GPU 0")) << sentence;
}

TEST(GpuGraph, RefusesAllocationsAndNothing) {
  SKIP_WITHOUT_GPU();
  EXPECT_THROW(Graph::capture(0, [](Stream) { const DeviceBuffer buffer(0, std::size_t{1} << 20); }), Error);
  EXPECT_THROW(Graph::capture(0, [](Stream) {}), Error);
  const OwnedStream stream(0);  // the failed captures left nothing behind
  stream.synchronize();
}

TEST(GpuEvent, TimeGoesForward) {
  SKIP_WITHOUT_GPU();
  const OwnedStream stream(0);
  const DeviceBuffer buffer(0, std::size_t{64} << 20);
  const Event start(0);
  const Event end(0);
  start.record(stream.get());
  fill_async(buffer.data(), 1, buffer.bytes(), stream.get(), 0);
  end.record(stream.get());
  EXPECT_GT(end.elapsed_us_since(start), 0.0);
}

TEST(GpuContext, EveryThreadMayUseIt) {
  SKIP_WITHOUT_GPU();
  const Kernel add = compiled_kernel("add");
  const OnGpu values(std::vector<int>(4 * 32, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const OwnedStream stream(0);
      LaunchConfig config;
      config.block.x = 32;
      config.stream = stream.get();
      int* const part = static_cast<int*>(values.data()) + 32 * t;
      for (int i = 0; i < 100; ++i) {
        add.launch_with(config, part, t);
      }
      stream.synchronize();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::vector<int> result = values.download<int>();
  for (std::size_t i = 0; i < result.size(); ++i) {
    EXPECT_EQ(result[i], static_cast<int>(i / 32) * 100);
  }
}

TEST(GpuTensorMap, EncodesALegalViewAndRefusesAnother) {
  SKIP_WITHOUT_GPU();
  if (device_properties(0).capability_major < 9) {
    GTEST_SKIP() << "this GPU has no tensor maps";
  }
  const DeviceBuffer buffer(0, std::size_t{1} << 20);
  const std::array<std::uint64_t, 2> extents{512, 64};
  const std::array<std::uint32_t, 2> box{64, 32};
  const std::array<std::uint64_t, 1> stride{1024};
  TiledView view{.data = buffer.data(),
                 .element = TensorElement::fp16,
                 .extents = extents,
                 .byte_strides = stride,
                 .box = box,
                 .swizzle = TensorSwizzle::bytes128};
  EXPECT_NE(encode_tiled(view).opaque, TensorMap{}.opaque);
  const std::array<std::uint64_t, 1> odd_stride{1022};
  view.byte_strides = odd_stride;
  EXPECT_TRUE(contains(sentence_of(ErrorCode::invalid_argument, [&] { encode_tiled(view); }), "byte strides [1022]"));
}

TEST(GpuNvml, TellsClockPowerAndTemperature) {
  SKIP_WITHOUT_GPU();
  if (!nvml_status().problem.empty()) {
    GTEST_SKIP() << nvml_status().problem;
  }
  const GpuState state = gpu_state(0);
  ASSERT_TRUE(state.multiprocessor_clock_mhz.has_value());
  EXPECT_GT(*state.multiprocessor_clock_mhz, 0);
  EXPECT_TRUE(state.temperature_c.has_value());
  EXPECT_FALSE(nvml_status().driver_version.empty());
}

TEST(GpuMatmul, MultipliesSmallIntegersExactly) {
  SKIP_WITHOUT_GPU();
  constexpr int m = 5;
  constexpr int n = 24;
  constexpr int k = 32;
  constexpr int d_stride = 32;
  std::vector<float> a(m * k);
  std::vector<float> b(n * k);
  for (int i = 0; i < m * k; ++i) {
    a[static_cast<std::size_t>(i)] = static_cast<float>(i * 7 % 11 - 5);
  }
  for (int i = 0; i < n * k; ++i) {
    b[static_cast<std::size_t>(i)] = static_cast<float>(i * 5 % 13 - 6);
  }
  const OnGpu a_gpu(a);
  const OnGpu b_gpu(b);
  const OnGpu d(std::vector<float>(m * d_stride, -1.0F));
  const Matmul matmul(
      0,
      {.m = m, .n = n, .k = k, .input = Format::fp32, .a_row_stride = k, .b_row_stride = k, .d_row_stride = d_stride});
  const DeviceBuffer workspace(0, matmul.workspace_bytes());
  matmul.run(Stream{}, m, a_gpu.data(), k, b_gpu.data(), d.data(), workspace.data());
  synchronize_device(0);
  const std::vector<float> got = d.download<float>();
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < d_stride; ++column) {
      float want = -1.0F;
      if (column < n) {
        want = 0;
        for (int i = 0; i < k; ++i) {
          want += a[static_cast<std::size_t>(row * k + i)] * b[static_cast<std::size_t>(column * k + i)];
        }
      }
      EXPECT_EQ(got[static_cast<std::size_t>(row * d_stride + column)], want) << row << ", " << column;
    }
  }
  EXPECT_TRUE(d.guards_intact());
}

}  // namespace
}  // namespace thresher::runtime
