#include "formats/quantize_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/fp8.hpp"
#include "formats/glob.hpp"
#include "formats/mxfp4.hpp"
#include "formats/nvfp4.hpp"
#include "formats/operands.hpp"
#include "formats/safetensors.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

/// Input name to what the parts of the quantised matrix are named after.
using NewNames = std::map<std::string, std::string>;

/// What is left alone unless a pattern says so itself.
struct LeftAlone {
  std::string_view pattern;
  std::string_view what;
};
constexpr std::array<LeftAlone, 8> left_alone{{{"*embed*", "an embedding"},
                                               {"*lm_head*", "the head"},
                                               {"*output_layer*", "the head"},
                                               {"*norm*", "a norm"},
                                               {"*bias*", "a bias"},
                                               {"*router*", "a router"},
                                               {"*mlp.gate.weight", "a router"},
                                               {"*block_sparse_moe.gate.weight", "a router"}}};

bool is_floating(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32; }

/// Of all but MXFP4.
Format format_of(Quantization to) {
  switch (to) {
    case Quantization::fp8_tensor: return Format::fp8_tensor;
    case Quantization::fp8_row: return Format::fp8_row;
    case Quantization::fp8_block: return Format::fp8_block;
    default: return Format::nvfp4;
  }
}

std::int64_t k_multiple(Quantization to) {
  return to == Quantization::mxfp4 ? mxfp4_block : format_traits(format_of(to)).k_multiple;
}

/// Why a tensor cannot be quantised; empty when it can.
std::string obstacle(const StoredTensor& tensor, Quantization to) {
  if (!is_floating(tensor.dtype)) {
    return "not F16, BF16 or F32";
  }
  if (tensor.shape.size() != 2) {
    return "no matrix [rows, K]";
  }
  return tensor.shape[1] % k_multiple(to) == 0 ? "" : fmt::format("K is no multiple of {}", k_multiple(to));
}

/// What scales are named after.
std::string base_of(const std::string& name) { return name.ends_with("weight") ? name : name + ".weight"; }

/// Decides what becomes of each tensor of a file.
class Selector {
 public:
  Selector(const SafetensorsFile& file, const QuantizeSelection& selection, Quantization to)
      : file_(file), selection_(selection), to_(to) {}

  NewNames select(QuantizeReport& report) const {
    check_includes();
    NewNames names;
    for (const StoredTensor& tensor : file_.header().tensors) {
      std::string reason = reason_to_copy(tensor);
      if (reason.empty()) {
        names.emplace(tensor.name, base_of(tensor.name));
      } else {
        report.copied.push_back({tensor.name, std::move(reason)});
      }
    }
    std::copy_if(selection_.exclude.begin(), selection_.exclude.end(), std::back_inserter(report.idle_excludes),
                 [this](const std::string& pattern) { return !is_used(pattern); });
    if (names.empty()) {
      reject(fmt::format("{} has nothing to quantise: no F16, BF16 or F32 matrix [rows, K] with K a multiple of {}{}",
                         file_.path(), k_multiple(to_),
                         report.copied.empty()
                             ? ""
                             : fmt::format(" that is not left alone; tensor {} is: {}",
                                           quoted_name(report.copied.front().name), report.copied.front().reason)));
    }
    return names;
  }

 private:
  [[noreturn]] static void reject(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

  [[nodiscard]] bool is_used(const std::string& pattern) const {
    const auto& tensors = file_.header().tensors;
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const StoredTensor& tensor) { return matches(pattern, tensor.name); });
  }

  void check_includes() const {
    for (const std::string& pattern : selection_.include) {
      const StoredTensor* tensor = file_.find(pattern);
      if (tensor == nullptr && !is_used(pattern)) {
        reject(fmt::format("{} has no tensor {} to quantise", file_.path(), quoted_name(pattern)));
      }
      if (tensor != nullptr && !has_wildcards(pattern) && !obstacle(*tensor, to_).empty()) {
        reject(
            fmt::format("{} is {}, but only an F16, BF16 or F32 matrix [rows, K] with K a multiple of {} can be "
                        "quantised",
                        described({&file_, tensor}), type_and_shape(*tensor), k_multiple(to_)));
      }
    }
  }

  /// Empty for a tensor that is quantised.
  [[nodiscard]] std::string reason_to_copy(const StoredTensor& tensor) const {
    const auto has_name = [&](const std::string& pattern) { return matches(pattern, tensor.name); };
    const auto& [include, exclude] = selection_;
    if (!include.empty() && std::none_of(include.begin(), include.end(), has_name)) {
      return "not included";
    }
    const auto excluded = std::find_if(exclude.begin(), exclude.end(), has_name);
    if (excluded != exclude.end()) {
      return "excluded by " + quoted_name(*excluded);
    }
    const std::string reason = obstacle(tensor, to_);
    if (!reason.empty()) {
      return reason;
    }
    for (const auto& [pattern, what] : left_alone) {
      const auto says_so = [&, guarded = pattern](const std::string& text) {
        return matches(guarded, text) && matches(text, tensor.name);
      };
      if (matches(pattern, tensor.name) && std::none_of(include.begin(), include.end(), says_so)) {
        return fmt::format("{} ({})", what, pattern);
      }
    }
    return "";
  }

  const SafetensorsFile& file_;
  const QuantizeSelection& selection_;
  Quantization to_;
};

/// What becomes of a matrix [rows, k]: its values and their scales.
std::vector<StoredTensor> parts_of(const std::string& name, std::int64_t rows, std::int64_t k, Quantization to) {
  if (to == Quantization::nvfp4) {
    return {{name, Dtype::u8, {rows, k / 2}, 0, 0},
            {name + "_scale", Dtype::f8_e4m3, {rows, k / scale_block}, 0, 0},
            {name + "_scale_2", Dtype::f32, {}, 0, 0}};
  }
  if (to == Quantization::mxfp4) {
    return {{name + "_packed", Dtype::u8, {rows, k / 2}, 0, 0},
            {name + "_scale", Dtype::u8, {rows, k / mxfp4_block}, 0, 0}};
  }
  const Format format = format_of(to);
  const Scales::Block block = scale_block_of(format, OperandRole::weights, k);
  const std::vector<std::int64_t> scales = !format_traits(format).has_scales()
                                               ? std::vector<std::int64_t>{}
                                               : std::vector{ceil_div(rows, block.rows), ceil_div(k, block.columns)};
  return {{name, Dtype::f8_e4m3, {rows, k}, 0, 0},
          {name + (format == Format::fp8_block ? "_scale_inv" : "_scale"), Dtype::f32, scales, 0, 0}};
}

/// The tensors of the output, each name once.
std::vector<StoredTensor> planned(const SafetensorsFile& file, const NewNames& selection, Quantization to) {
  std::vector<StoredTensor> tensors;
  for (const StoredTensor& tensor : file.header().tensors) {
    const auto selected = selection.find(tensor.name);
    if (selected == selection.end()) {
      tensors.push_back(tensor);
      continue;
    }
    for (StoredTensor& part : parts_of(selected->second, tensor.shape[0], tensor.shape[1], to)) {
      tensors.push_back(std::move(part));
    }
  }
  std::set<std::string> taken;
  for (const StoredTensor& tensor : tensors) {
    if (!taken.insert(tensor.name).second) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} already has a tensor {}, which quantising would write",
                                                           file.path(), quoted_name(tensor.name)));
    }
  }
  return tensors;
}

void copy(const SafetensorsFile& file, const StoredTensor& tensor, SafetensorsWriter& writer) {
  std::vector<std::byte> piece(std::size_t{4} << 20);
  for (std::uint64_t offset = 0; offset < tensor.bytes(); offset += piece.size()) {
    const auto part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), tensor.bytes() - offset)));
    file.read(tensor, offset, part);
    writer.write(tensor.name, offset, part);
  }
}

/// In the order of parts_of; rows that hold nothing have no scales that could be written.
std::vector<std::vector<std::byte>> quantized_parts(const Tensor& matrix, const std::string& title, Quantization to) {
  std::vector<std::vector<std::byte>> parts;
  const auto add = [&](std::span<const std::byte> bytes) { parts.emplace_back(bytes.begin(), bytes.end()); };
  if (to == Quantization::mxfp4) {
    const Mxfp4Matrix made = quantize_mxfp4(matrix, title);
    add(std::as_bytes(std::span(made.values)));
    add(std::as_bytes(std::span(made.exponents)));
    return parts;
  }
  if (to == Quantization::nvfp4) {
    const Nvfp4Matrix made = quantize_nvfp4(matrix, title);
    add(std::as_bytes(std::span(made.values)));
    add(std::as_bytes(std::span(made.scales)));
    add(std::as_bytes(std::span(&made.global_scale, 1)));
    return parts;
  }
  const Fp8Matrix made = quantize_fp8(matrix, title, format_of(to), OperandRole::weights);
  add(std::as_bytes(std::span(made.values)));
  add(std::as_bytes(std::span(made.scales)));
  return parts;
}

QuantizedTensor quantize(const SafetensorsFile& file, const StoredTensor& tensor, const std::string& name,
                         Quantization to, SafetensorsWriter& writer) {
  const std::vector<std::vector<std::byte>> bytes =
      quantized_parts(load_matrix({&file, &tensor}).view(), described({&file, &tensor}), to);
  const std::vector<StoredTensor> parts = parts_of(name, tensor.shape[0], tensor.shape[1], to);
  std::uint64_t bytes_after = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    writer.write(parts[i].name, 0, bytes[i]);
    bytes_after += bytes[i].size();
  }
  return {tensor.name, parts.front().name, tensor.shape[0], tensor.shape[1], tensor.bytes(), bytes_after};
}

}  // namespace

std::string_view name(Quantization to) noexcept {
  return to == Quantization::mxfp4 ? "mxfp4" : thresher::name(format_of(to));
}

QuantizeReport quantize_file(const std::filesystem::path& in, const std::filesystem::path& out,
                             const QuantizeSelection& selection, Quantization to) {
  const SafetensorsFile file(in);
  QuantizeReport report;
  const NewNames names = Selector(file, selection, to).select(report);
  SafetensorsWriter writer(out, planned(file, names, to), file.header().metadata);
  for (const StoredTensor& tensor : file.header().tensors) {
    const auto selected = names.find(tensor.name);
    if (selected == names.end()) {
      copy(file, tensor, writer);
    } else {
      report.quantized.push_back(quantize(file, tensor, selected->second, to, writer));
    }
  }
  writer.commit();
  return report;
}

}  // namespace thresher::formats
