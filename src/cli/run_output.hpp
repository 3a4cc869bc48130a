#pragma once
/// The output of `thresher run`, which may be requantised: the options that say how, the tensor, and the file.
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
  /// Throws Error(invalid_argument) where an option is of another output type.
  void check() const;
  /// What was asked for, else default_out_type.
  [[nodiscard]] Format type(Format tokens, Format weights) const;

 private:
  CLI::Option* scale_option_ = nullptr;
};

/// That of the tokens where it has 16 bits, else that of the weights where that has, else bf16: as in Python.
[[nodiscard]] Format default_out_type(Format tokens, Format weights) noexcept;
/// --out-type of every output, for what `type` of OutputOptions does with it.
void add_out_type(CLI::App& command, std::optional<Format>& out_type);
/// --out-type of outputs that have no scales, for what `type` of OutputOptions does with it.
void add_unscaled_out_type(CLI::App& command, std::optional<Format>& out_type);

/// Prints a warning that counts the Inf and NaN among the values of `tensor`, "c": operands that are finite make none
/// but where the output's format ends.
void warn_of_overflow(const char* tensor, Format format, std::span<const std::byte> values);

/// An output on a device, [rows, n] or [slots, rows, n], all zeros and with the scales of its type.
class RunOutput {
 public:
  RunOutput(const OutputOptions& options, Format format, std::vector<std::int64_t> shape, const Device& device);

  [[nodiscard]] const Tensor& tensor() const noexcept { return there_.tensor(); }
  /// Writes c and, of a requantised one, c_scale and c_scale_2, as operands are read. Warns of Inf and NaN.
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
