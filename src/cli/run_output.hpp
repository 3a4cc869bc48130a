#pragma once
/// The output of `thresher run`, which may be requantised: the options that say how, the tensor, and the file.
#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/device_memory.hpp"
#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher::cli {

struct OutputOptions {
  std::string out;
  Format out_type = Format::fp16;
  float scale = 1;
  bool powers_of_two = false;

  void add_to(CLI::App& command);
  /// Throws Error(invalid_argument) where an option is of another output type.
  void check() const;

 private:
  CLI::Option* scale_option_ = nullptr;
};

/// An output on a device, [rows, n] or [slots, rows, n], all zeros and with the scales of its type.
class RunOutput {
 public:
  RunOutput(const OutputOptions& options, std::vector<std::int64_t> shape, const Device& device);

  [[nodiscard]] const Tensor& tensor() const noexcept { return there_.tensor(); }
  /// Writes c and, of a requantised one, c_scale and c_scale_2, as operands are read.
  void write() const;

 private:
  /// The same in memory of the host.
  [[nodiscard]] Tensor zeros();

  std::string path_;
  Format format_;
  bool powers_of_two_;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> nothing_;
  std::vector<float> global_scales_;
  ops::DeviceTensor there_;
};

}  // namespace thresher::cli
