#pragma once
/// The output of `thresher run`, which may be quantized: its options, the tensor, and the file.
#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/device_memory.hpp"
#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher::cli {

struct OutputOptions {
  std::string out;
  std::optional<Format> out_type{};
  float scale = 1;
  bool powers_of_two = false;

  void add_to(CLI::App& command);
  /// Throws Error(invalid_argument) where an option belongs to another output type.
  void check() const;
  /// The requested type, else default_out_type.
  [[nodiscard]] Format type(Format tokens, Format weights) const;

 private:
  CLI::Option* scale_option_ = nullptr;
};

/// The tokens' format if it has 16 bits, else the weights' if that has 16, else bf16: as in Python.
[[nodiscard]] Format default_out_type(Format tokens, Format weights) noexcept;
/// --out-type for all outputs; `type` of OutputOptions uses it.
void add_out_type(CLI::App& command, std::optional<Format>& out_type);
/// --out-type for outputs without scales; `type` of OutputOptions uses it.
void add_unscaled_out_type(CLI::App& command, std::optional<Format>& out_type);

/// Prints a warning with the number of Inf and NaN in `tensor`, "c". Finite operands make them only beyond the range of
/// the output's format.
void warn_of_overflow(const char* tensor, Format format, std::span<const std::byte> values);

/// An output on a device, [rows, n] or [slots, rows, n], zero-filled and with the scales of its type.
class RunOutput {
 public:
  RunOutput(const OutputOptions& options, Format format, std::vector<std::int64_t> shape, const Device& device);

  [[nodiscard]] const Tensor& tensor() const noexcept { return there_.tensor(); }
  /// Writes c and, for a quantized one, c_scale and c_scale_2, as operands are read. Warns about Inf and NaN.
  void write() const;

 private:
  /// The same in host memory.
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
