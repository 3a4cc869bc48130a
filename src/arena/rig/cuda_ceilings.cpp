#include "arena/rig/cuda_ceilings.hpp"

#include <functional>
#include <vector>

#include "arena/random.hpp"
#include "core/device_spec.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"

namespace thresher::arena {
namespace {

constexpr std::int64_t product_side = 8192;
constexpr std::size_t copied_bytes = std::size_t{1} << 30;
constexpr double heat_us = 0.5e6;

/// Seconds per call, over `repeats` calls on a stream.
double seconds_each(const runtime::OwnedStream& stream, int repeats, const std::function<void()>& call) {
  const runtime::Event start(stream.ordinal());
  const runtime::Event end(stream.ordinal());
  start.record(stream.get());
  for (int i = 0; i < repeats; ++i) {
    call();
  }
  end.record(stream.get());
  return end.elapsed_us_since(start) * 1e-6 / repeats;
}

/// bf16 numbers of magnitude 1 to 2 with random signs and fractions.
runtime::DeviceBuffer random_matrix(int ordinal, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint16_t> values(static_cast<std::size_t>(product_side * product_side));
  for (std::uint16_t& value : values) {
    value = static_cast<std::uint16_t>(0x3F80U | (random.next() & 0x807FU));
  }
  runtime::DeviceBuffer buffer(ordinal, values.size() * sizeof(std::uint16_t), "a matrix to measure the GPU with");
  runtime::copy(buffer.data(), values.data(), buffer.bytes(), ordinal);
  return buffer;
}

double sustained_operations_per_s(int ordinal) {
  const runtime::OwnedStream stream(ordinal);
  const runtime::DeviceBuffer a = random_matrix(ordinal, 1);
  const runtime::DeviceBuffer b = random_matrix(ordinal, 2);
  const runtime::DeviceBuffer d(ordinal, static_cast<std::size_t>(product_side * product_side) * sizeof(float));
  const runtime::Matmul product(ordinal, {.m = product_side,
                                          .n = product_side,
                                          .k = product_side,
                                          .input = Format::bf16,
                                          .a_row_stride = product_side,
                                          .b_row_stride = product_side,
                                          .d_row_stride = product_side});
  const runtime::DeviceBuffer workspace(ordinal, product.workspace_bytes());
  const auto call = [&] {
    product.run(stream.get(), product_side, a.data(), product_side, b.data(), d.data(), workspace.data());
  };
  call();
  const double first_s = seconds_each(stream, 3, call);
  seconds_each(stream, static_cast<int>(heat_us * 1e-6 / first_s) + 1, call);
  return 2.0 * product_side * product_side * product_side / seconds_each(stream, 20, call);
}

double copy_bytes_per_s(int ordinal) {
  const runtime::OwnedStream stream(ordinal);
  const runtime::DeviceBuffer from(ordinal, copied_bytes);
  const runtime::DeviceBuffer to(ordinal, copied_bytes);
  const auto call = [&] { runtime::copy_async(to.data(), from.data(), copied_bytes, stream.get(), ordinal); };
  runtime::fill_async(from.data(), 0x5A, copied_bytes, stream.get(), ordinal);
  call();
  return 2.0 * static_cast<double>(copied_bytes) / seconds_each(stream, 10, call);
}

}  // namespace

Ceilings measure_cuda_ceilings(int ordinal) {
  const runtime::DeviceProperties& properties = runtime::device_properties(ordinal);
  Ceilings ceilings;
  if (const DeviceSpec* spec = find_device_spec(properties.name)) {
    ceilings.peak_operations_per_s = static_cast<double>(spec->ops_per_clock(MatrixType::bits16)) *
                                     properties.multiprocessors * properties.clock_khz * 1e3;
    ceilings.fast_rate = spec->ops_per_clock(MatrixType::fp8) / spec->ops_per_clock(MatrixType::bits16);
  }
  ceilings.sustained_operations_per_s = sustained_operations_per_s(ordinal);
  ceilings.bytes_per_s = copy_bytes_per_s(ordinal);
  ceilings.method =
      "peak: 16-bit operations a clock and multiprocessor times the highest clock; sustained: a bf16 cuBLASLt product "
      "of "
      "8192x8192x8192 on random values after 0.5 s of the same; bytes: a copy within the GPU's memory, reads and "
      "writes "
      "counted";
  return ceilings;
}

}  // namespace thresher::arena
