#include "cli/run_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>

#include "cli/by_name.hpp"
#include "core/remark.hpp"
#include "formats/safetensors.hpp"
#include "formats/stacks.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

/// Output formats whose values are divided by a given scale.
bool takes_scale(Format format) { return format == Format::fp8_tensor || format == Format::nvfp4; }

template <std::size_t count>
void add_out_type(CLI::App& command, std::optional<Format>& out_type, const std::array<Format, count>& allowed) {
  std::array<std::string_view, count> names;
  std::transform(allowed.begin(), allowed.end(), names.begin(), [](Format format) { return name(format); });
  command
      .add_option("--out-type", out_type,
                  "Type of the output; without it that of the tokens where it has 16 bits, else that of the weights "
                  "where they have, else bf16")
      ->transform(by_name(allowed))
      ->option_text(fmt::format("{}", fmt::join(names, "|")));
}

bool has_16_bits(Format format) { return format == Format::fp16 || format == Format::bf16; }

/// The number of Inf and NaN values; `exponent` has the bits that are all ones in those.
template <class Bits>
std::size_t not_finite(std::span<const std::byte> values, Bits exponent) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    count += (bits & exponent) == exponent ? 1 : 0;
  }
  return count;
}

std::size_t not_finite(Format format, std::span<const std::byte> values) {
  switch (format) {
    case Format::fp16: return not_finite<std::uint16_t>(values, 0x7C00);
    case Format::bf16: return not_finite<std::uint16_t>(values, 0x7F80);
    case Format::fp32: return not_finite<std::uint32_t>(values, 0x7F80'0000);
    case Format::nvfp4: return 0;  // every 4-bit value is finite
    default: return not_finite<std::uint8_t>(values, 0x7F);
  }
}

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

Format OutputOptions::type(Format tokens, Format weights) const {
  return out_type.value_or(default_out_type(tokens, weights));
}

void OutputOptions::check() const {
  const std::string_view type = out_type ? name(*out_type) : "the default";
  if (scale_option_ != nullptr && scale_option_->count() > 0 && !(out_type && takes_scale(*out_type))) {
    refuse(fmt::format("--out-scale is of --out-type fp8_tensor and nvfp4, not of {}", type));
  }
  if (!(scale > 0) || !std::isfinite(scale)) {
    refuse(fmt::format("--out-scale is {}, expected a number above 0", scale));
  }
  if (powers_of_two && out_type != Format::fp8_row && out_type != Format::fp8_block) {
    refuse(fmt::format("--out-powers-of-two is of --out-type fp8_row and fp8_block, not of {}", type));
  }
}

Format default_out_type(Format tokens, Format weights) noexcept {
  return has_16_bits(tokens) ? tokens : has_16_bits(weights) ? weights : Format::bf16;
}

void add_out_type(CLI::App& command, std::optional<Format>& out_type) {
  add_out_type(command, out_type, output_formats);
}

void add_unscaled_out_type(CLI::App& command, std::optional<Format>& out_type) {
  add_out_type(command, out_type, unscaled_output_formats);
}

void warn_of_overflow(const char* tensor, Format format, std::span<const std::byte> values) {
  const std::size_t count = not_finite(format, values);
  if (count > 0) {
    print_note(stderr,
               fmt::format("warning: {} of the {} values of {} are Inf or NaN{}\n", count,
                           values.size() * 8 / static_cast<std::size_t>(bits(format)), tensor,
                           format == Format::fp16 ? ": fp16 ends at 65504, --out-type bf16 and fp32 do not" : ""));
  }
}

RunOutput::RunOutput(const OutputOptions& options, Format format, std::vector<std::int64_t> shape, const Device& device)
    : path_(options.out),
      format_(format),
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
  if (traits.is_quantized_output() && traits.has_scales()) {
    const std::int64_t columns = there_.tensor().scales.block.columns;
    std::vector<std::int64_t> of_scales = shape_;
    of_scales.back() = (shape_.back() + columns - 1) / columns;
    tensors.push_back(
        {"c_scale", format_ == Format::nvfp4 ? formats::Dtype::f8_e4m3 : formats::Dtype::f32, of_scales, scales});
  }
  if (!global_scales_.empty()) {
    tensors.push_back({traits.has_scales() ? "c_scale_2" : "c_scale",
                       formats::Dtype::f32,
                       {static_cast<std::int64_t>(global_scales_.size())},
                       given});
  }
  formats::write_safetensors(path_, tensors);
  warn_of_overflow("c", format_, values);
  if (tensors.size() > 1 && tensors[1].name == "c_scale" && traits.has_scales()) {
    warn_of_overflow("c_scale", format_ == Format::nvfp4 ? Format::fp8_e4m3 : Format::fp32, scales);
  }
}

}  // namespace thresher::cli
