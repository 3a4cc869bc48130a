#include "cli/run_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "cli/operand_options.hpp"
#include "formats/safetensors.hpp"
#include "formats/stacks.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

/// Outputs whose values are divided by what is given.
bool takes_scale(Format format) { return format == Format::fp8_tensor || format == Format::nvfp4; }

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.elements() * bits(tensor.format) / 8);
}

}  // namespace

void OutputOptions::add_to(CLI::App& command) {
  command.add_option("--out", out, "Safetensors file to write c to")->required();
  add_out_type(command, out_type);
  scale_option_ = command.add_option(
      "--out-scale", scale, "What c of fp8_tensor is divided by, and c of nvfp4 beside the scales of its blocks");
  command.add_flag("--out-powers-of-two", powers_of_two,
                   "Scales of c in fp8_row or fp8_block are rounded up to powers of two");
}

void OutputOptions::check() const {
  if (scale_option_ != nullptr && scale_option_->count() > 0 && !takes_scale(out_type)) {
    refuse(fmt::format("--out-scale is of --out-type fp8_tensor and nvfp4, not of {}", name(out_type)));
  }
  if (!(scale > 0) || !std::isfinite(scale)) {
    refuse(fmt::format("--out-scale is {}, expected a number above 0", scale));
  }
  if (powers_of_two && out_type != Format::fp8_row && out_type != Format::fp8_block) {
    refuse(fmt::format("--out-powers-of-two is of --out-type fp8_row and fp8_block, not of {}", name(out_type)));
  }
}

RunOutput::RunOutput(const OutputOptions& options, std::vector<std::int64_t> shape, const Device& device)
    : path_(options.out),
      format_(options.out_type),
      powers_of_two_(options.powers_of_two),
      shape_(std::move(shape)),
      global_scales_(takes_scale(format_) ? (shape_.size() == 3 ? static_cast<std::size_t>(shape_.front()) : 1) : 0,
                     options.scale),
      there_(zeros(), device) {}

Tensor RunOutput::zeros() {
  Tensor c = Tensor::contiguous(nullptr, format_, std::span<const std::int64_t>(shape_));
  c.describe_scales(OperandRole::tokens);
  c.scales.powers_of_two = powers_of_two_;
  c.global_scale = global_scales_.empty() ? nullptr : global_scales_.data();
  nothing_.resize(std::max(bytes_of(c), scale_bytes(c)));
  c.data = nothing_.data();
  c.scales.data = format_traits(format_).has_scales() ? nothing_.data() : nullptr;
  return c;
}

void RunOutput::write() const {
  const std::vector<std::byte> values = there_.to_host();
  const std::vector<std::byte> scales = there_.scales_to_host();
  const std::span<const std::byte> given = std::as_bytes(std::span(global_scales_));
  std::vector<std::int64_t> stored = shape_;
  stored.back() = stored.back() * bits(format_) / (format_ == Format::nvfp4 ? 8 : bits(format_));
  std::vector<formats::TensorToWrite> tensors{{"c", formats::stored_type(format_), stored, values}};
  const FormatTraits& traits = format_traits(format_);
  if (traits.is_requantised() && traits.has_scales()) {
    const std::int64_t columns = there_.tensor().scales.block.columns;
    std::vector<std::int64_t> of_scales = shape_;
    of_scales.back() = (shape_.back() + columns - 1) / columns;
    tensors.push_back({"c_scale", format_ == Format::nvfp4 ? formats::Dtype::f8_e4m3 : formats::Dtype::f32, of_scales,
                       scales});
  }
  if (!global_scales_.empty()) {
    tensors.push_back({traits.has_scales() ? "c_scale_2" : "c_scale",
                       formats::Dtype::f32,
                       {static_cast<std::int64_t>(global_scales_.size())},
                       given});
  }
  formats::write_safetensors(path_, tensors);
}

}  // namespace thresher::cli
