#pragma once
/// One problem of bench_nvfp4_variants on the GPU: operands that rotate, what they yield, and calls of any
/// configuration.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/kernel.hpp"
#include "runtime/memory.hpp"
#include "strategies/dual_gemm/packed/launches.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::bench {

namespace device_code = strategies::dual_gemm::packed;

/// Which tokens a call reads, and whether it prepares them itself.
enum class Tokens { prepared, fp16, nvfp4 };

struct Variant {
  device_code::Config config;
  Tokens tokens;
};

/// A random NVFP4 matrix, about normal, on the host.
struct Nvfp4 {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;
  std::int64_t rows;
  std::int64_t k;

  Nvfp4(std::int64_t r, std::int64_t columns, std::uint64_t seed);
  [[nodiscard]] Tensor view() { return Tensor::nvfp4(codes.data(), scales.data(), rows, k); }
  /// Some rows as a matrix of their own.
  [[nodiscard]] Nvfp4 gathered(const std::vector<std::int64_t>& which) const;
};

struct GpuNvfp4 {
  runtime::DeviceBuffer codes;
  runtime::DeviceBuffer scales;
  Tensor view;
  explicit GpuNvfp4(const Nvfp4& host);
};

/// What is compared: some outputs and their definition, in both numerics.
struct Samples {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> outputs;
  std::vector<double> exact;
  std::vector<double> fast;
};

/// One input set on the GPU.
struct Set {
  std::unique_ptr<PackedWeights> exact;
  std::unique_ptr<PackedWeights> fast;
  std::unique_ptr<GpuNvfp4> a;
  runtime::DeviceBuffer a16;     ///< exact values, rows without gaps
  runtime::DeviceBuffer folded;  ///< as fold_tokens leaves them
  runtime::DeviceBuffer workspace;
  runtime::DeviceBuffer c;
};

/// A variant's kernels, loaded.
struct Loaded {
  runtime::Kernel product;
  runtime::Kernel preparation;
  bool was_compiled = false;  ///< here and now, because no cache had it
};

Loaded load(const Variant& variant);

class Problem {
 public:
  explicit Problem(const device_code::Extents& extents);

  [[nodiscard]] std::size_t sets() const { return sets_.size(); }
  /// Enqueues one call on input set `i` modulo their number.
  void call(const Variant& variant, const Loaded& loaded, std::size_t i, Stream stream) const;
  /// Relative error of the samples' norm after one call; Inf when an output is not finite or was not written.
  [[nodiscard]] double error(const Variant& variant, const Loaded& loaded) const;

 private:
  void prepare(const Variant& variant, const runtime::Kernel& kernel, const Tensor& a, void* out, Stream stream) const;

  device_code::Extents extents_;
  Nvfp4 a_;
  Nvfp4 gate_;
  Nvfp4 up_;
  Samples samples_;
  runtime::DeviceBuffer weight_scale_;
  std::vector<Set> sets_;
};

}  // namespace thresher::bench
