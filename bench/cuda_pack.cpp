// Times packing of NVFP4 weights, which happens once at model load: the host's time from the call to the packed
// weights, including the allocation of their memory.
//
// usage: bench_cuda_pack   (needs a GPU; gate and up of 14336 x 4096)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/dual_gemm.hpp"

int main() {
  using namespace thresher;
  if (const std::string& problem = runtime::driver_status().problem; !problem.empty()) {
    std::printf("%s\n", problem.c_str());
    return 1;
  }
  constexpr std::int64_t n = 14336;
  constexpr std::int64_t k = 4096;
  constexpr int rounds = 21;
  runtime::DeviceBuffer codes(0, n * k / 2);
  runtime::DeviceBuffer scales(0, n * k / 16);
  runtime::fill_async(codes.data(), 0x5A, codes.bytes(), Stream{}, 0);
  runtime::fill_async(scales.data(), 0x38, scales.bytes(), Stream{}, 0);
  runtime::synchronize({}, 0);
  const Tensor weights = Tensor::nvfp4(codes.data(), static_cast<const std::uint8_t*>(scales.data()), n, k, nullptr,
                                       ScaleLayout::row_major, codes.device());
  const Device device = Device::cuda();
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const PackedWeights packed = pack(device, weights, weights);
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    samples.push_back(spent.count());
  }
  const double first = samples.front();  // loads the program
  std::sort(samples.begin(), samples.end());
  std::printf("pack 2 x %ld x %ld nvfp4 on %s: %.2f ms (median of %d; the first %.2f ms)\n", static_cast<long>(n),
              static_cast<long>(k), device.name().c_str(), samples[samples.size() / 2], rounds, first);
}
