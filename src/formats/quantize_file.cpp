#include "formats/quantize_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/checkpoint.hpp"
#include "formats/fp8.hpp"
#include "formats/glob.hpp"
#include "formats/kept_names.hpp"
#include "formats/mxfp4.hpp"
#include "formats/nvfp4.hpp"
#include "formats/reject.hpp"
#include "formats/safetensors.hpp"
#include "formats/scales.hpp"
#include "formats/stack_layout.hpp"
#include "formats/weight_parts.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

/// Input name to the name that the parts of the quantized matrix derive from.
using NewNames = std::map<std::string, std::string>;

Format floating_format(Dtype dtype) {
  return dtype == Dtype::f16 ? Format::fp16 : dtype == Dtype::bf16 ? Format::bf16 : Format::fp32;
}

bool is_floating(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32; }

/// For all but MXFP4.
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

/// Several matrices, usually those of experts.
bool is_stack(const StoredTensor& tensor) { return tensor.shape.size() == 3; }

constexpr const char* quantisable = "F16, BF16 or F32 matrix [rows, K] or stack [E, rows, K]";

/// Why a tensor cannot be quantized; empty when it can.
std::string obstacle(const StoredTensor& tensor, Quantization to) {
  if (!is_floating(tensor.dtype)) {
    return "not F16, BF16 or F32";
  }
  if (tensor.shape.size() != 2 && !is_stack(tensor)) {
    return "no matrix [rows, K]";
  }
  return tensor.shape.back() % k_multiple(to) == 0 ? "" : fmt::format("K is no multiple of {}", k_multiple(to));
}

/// The base of the scales' names.
std::string base_of(const std::string& name) { return name.ends_with("weight") ? name : name + ".weight"; }

/// The output of a matrix [rows, K] or a stack [E, rows, K]: its values and their scales.
std::vector<StoredTensor> parts_of(const std::string& name, const std::vector<std::int64_t>& shape, Quantization to) {
  const std::int64_t rows = shape[shape.size() - 2];
  const std::int64_t k = shape.back();
  const std::vector<std::int64_t> matrices(shape.begin(), shape.end() - 2);  // [E] for a stack
  const auto of = [&](std::initializer_list<std::int64_t> extents) {
    std::vector<std::int64_t> whole = matrices;
    whole.insert(whole.end(), extents);
    return whole;
  };
  if (to == Quantization::nvfp4) {
    return {{name, Dtype::u8, of({rows, k / 2}), 0, 0},
            {name + "_scale", Dtype::f8_e4m3, of({rows, k / scale_block}), 0, 0},
            {name + "_scale_2", Dtype::f32, matrices, 0, 0}};
  }
  if (to == Quantization::mxfp4) {
    return {{name + "_packed", Dtype::u8, of({rows, k / 2}), 0, 0},
            {name + "_scale", Dtype::u8, of({rows, k / mxfp4_block}), 0, 0}};
  }
  const Format format = format_of(to);
  const Scales::Block block = scale_block_of(format, OperandRole::weights, k);
  const std::vector<std::int64_t> scales =
      !format_traits(format).has_scales() ? matrices : of({ceil_div(rows, block.rows), ceil_div(k, block.columns)});
  return {{name, Dtype::f8_e4m3, of({rows, k}), 0, 0},
          {name + (format == Format::fp8_block ? "_scale_inv" : "_scale"), Dtype::f32, scales, 0, 0}};
}

/// Whether a tensor named X and this ending changes the meaning of the values of X or X.weight. Scales of a layer's
/// input and output do not.
bool changes_values(std::string_view ending) {
  constexpr std::array<std::string_view, 6> of_tokens{
      "input_scale", "input_global_scale", "output_scale", "q_scale", "k_scale", "v_scale"};
  return names_part(ending) && !ending.ends_with("bias") && !ending.starts_with("lora") &&
         std::find(of_tokens.begin(), of_tokens.end(), ending) == of_tokens.end();
}

/// Decides for each tensor of a file whether it is quantized or copied.
class Selector {
 public:
  Selector(const SafetensorsFile& file, const QuantizeSelection& selection, Quantization to)
      : file_(file), selection_(selection), to_(to) {
    for (const StoredTensor& tensor : file.header().tensors) {
      names_.insert(tensor.name);
    }
  }

  NewNames select(QuantizeReport& report) const {
    check_includes();
    NewNames names;
    for (const StoredTensor& tensor : file_.header().tensors) {
      std::string reason = reason_to_copy(tensor);
      if (reason.empty()) {
        names.emplace(tensor.name, base_of(tensor.name));
      } else {
        const bool is_missed =
            reason == obstacle_beside(tensor) || (is_stack(tensor) && reason == obstacle_of_stack(tensor));
        report.copied.push_back({tensor.name, std::move(reason), tensor.bytes(), is_missed});
      }
    }
    std::copy_if(selection_.exclude.begin(), selection_.exclude.end(), std::back_inserter(report.idle_excludes),
                 [this](const std::string& pattern) { return !is_used(pattern); });
    if (names.empty()) {
      reject(fmt::format(
          "{} has nothing to quantize: no {} with K a multiple of {}{}", file_.path(), quantisable, k_multiple(to_),
          report.copied.empty() ? ""
                                : fmt::format(" that is not left alone; tensor {} is: {}",
                                              quoted_name(report.copied.front().name), report.copied.front().reason)));
    }
    return names;
  }

 private:
  [[nodiscard]] bool is_used(const std::string& pattern) const {
    const auto& tensors = file_.header().tensors;
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const StoredTensor& tensor) { return matches(pattern, tensor.name); });
  }

  void check_includes() const {
    for (const std::string& pattern : selection_.include) {
      const StoredTensor* tensor = file_.find(pattern);
      if (tensor == nullptr && !is_used(pattern)) {
        reject(fmt::format("{} has no tensor {} to quantize", file_.path(), quoted_name(pattern)));
      }
      if (tensor != nullptr && !has_wildcards(pattern) && !obstacle(*tensor, to_).empty()) {
        reject(fmt::format("{} is {}, but only an {} with K a multiple of {} can be quantized",
                           described({&file_, tensor}), type_and_shape(*tensor), quantisable, k_multiple(to_)));
      }
      if (tensor != nullptr && is_stack(*tensor) && stack_layout(file_, *tensor) == StackLayout::k_first) {
        reject(fmt::format("{} is {}, by its neighbours [E, K, rows], but only a stack [E, rows, K] can be quantized",
                           described({&file_, tensor}), type_and_shape(*tensor)));
      }
    }
  }

  /// Empty for a tensor that is quantized.
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
    if (const std::optional<Kept> stays = kept(tensor.name, include)) {
      return fmt::format("{} ({})", stays->what, stays->pattern);
    }
    const std::string beside = obstacle_beside(tensor);
    return beside.empty() && is_stack(tensor) ? obstacle_of_stack(tensor) : beside;
  }

  /// Empty unless a tensor beside this one changes the meaning of its values. Output names of the quantization are
  /// rejected later.
  [[nodiscard]] std::string obstacle_beside(const StoredTensor& tensor) const {
    if (!obstacle(tensor, to_).empty()) {
      return "";
    }
    constexpr std::string_view weight = ".weight";
    std::string_view layer = tensor.name;
    layer.remove_suffix(layer.ends_with(weight) ? weight.size() : 0);
    const std::vector<StoredTensor> parts = parts_of(base_of(tensor.name), tensor.shape, to_);
    for (auto name = names_.lower_bound(layer); name != names_.end() && name->starts_with(layer); ++name) {
      const std::string_view rest = std::string_view(*name).substr(layer.size());
      const bool is_part =
          rest.size() > 1 && (rest.front() == '.' || rest.front() == '_') && changes_values(rest.substr(1));
      if (is_part && std::none_of(parts.begin(), parts.end(), [&](const auto& part) { return part.name == *name; })) {
        return fmt::format("beside {}, which changes what its values mean", quoted_name(*name));
      }
    }
    return "";
  }

  [[nodiscard]] bool is_named(const StoredTensor& tensor) const {
    return std::find(selection_.include.begin(), selection_.include.end(), tensor.name) != selection_.include.end();
  }

  /// Empty if its matrices are [rows, K].
  [[nodiscard]] std::string obstacle_of_stack(const StoredTensor& tensor) const {
    switch (stack_layout(file_, tensor)) {
      case StackLayout::rows_first: return "";
      case StackLayout::k_first: return "a stack [E, K, rows], whose matrices are the other way round";
      default: break;
    }
    return is_named(tensor) ? ""
                            : "a stack of which nothing says that it is [E, rows, K]: an include of its name would";
  }

  const SafetensorsFile& file_;
  const QuantizeSelection& selection_;
  Quantization to_;
  std::set<std::string, std::less<>> names_;
};

/// The tensors of the output, each name once.
std::vector<StoredTensor> planned(const SafetensorsFile& file, const NewNames& selection, Quantization to) {
  std::vector<StoredTensor> tensors;
  for (const StoredTensor& tensor : file.header().tensors) {
    const auto selected = selection.find(tensor.name);
    if (selected == selection.end()) {
      tensors.push_back(tensor);
      continue;
    }
    for (StoredTensor& part : parts_of(selected->second, tensor.shape, to)) {
      tensors.push_back(std::move(part));
    }
  }
  std::set<std::string> taken;
  for (const StoredTensor& tensor : tensors) {
    if (!taken.insert(tensor.name).second) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} already has a tensor {}, which quantizing would write",
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

/// In the order of parts_of; empty rows have no scales to write.
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

/// The number of nonzero values of a matrix that becomes all zeros; 0 if any value stays nonzero or there is none. The
/// sign of a value is its highest bit; with two values per byte, the highest of each half.
std::size_t lost_values(std::span<const std::byte> values, Dtype dtype, std::span<const std::byte> codes, Dtype to) {
  const std::byte magnitude{to == Dtype::u8 ? std::uint8_t{0x77} : std::uint8_t{0x7F}};
  if (std::any_of(codes.begin(), codes.end(), [&](std::byte code) { return (code & magnitude) != std::byte{0}; })) {
    return 0;
  }
  const std::size_t bytes = dtype == Dtype::f32 ? 4 : 2;
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); i += bytes) {
    const std::span<const std::byte> value = values.subspan(i, bytes);  // little-endian
    const bool is_zero = (value.back() & std::byte{0x7F}) == std::byte{0} &&
                         std::all_of(value.begin(), value.end() - 1, [](std::byte one) { return one == std::byte{0}; });
    count += is_zero ? 0 : 1;
  }
  return count;
}

/// One matrix after another, so that at most one is in memory.
QuantizedTensor quantize(const SafetensorsFile& file, const StoredTensor& tensor, const std::string& name,
                         Quantization to, SafetensorsWriter& writer) {
  const std::vector<StoredTensor> parts = parts_of(name, tensor.shape, to);
  const std::int64_t matrices = is_stack(tensor) ? tensor.shape.front() : 1;
  QuantizedTensor done{tensor.name,
                       parts.front().name,
                       is_stack(tensor),
                       matrices,
                       tensor.shape[tensor.shape.size() - 2],
                       tensor.shape.back(),
                       tensor.bytes(),
                       0,
                       0};
  std::vector<std::byte> values(matrices == 0 ? 0 : tensor.bytes() / static_cast<std::uint64_t>(matrices));
  for (std::int64_t i = 0; i < matrices; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    file.read(tensor, at * values.size(), values);
    const std::string title = described({&file, &tensor});
    const Tensor matrix = Tensor::contiguous(values.data(), floating_format(tensor.dtype), {done.rows, done.k});
    const std::vector<std::vector<std::byte>> bytes =
        quantized_parts(matrix, is_stack(tensor) ? fmt::format("matrix {} of {}", i, title) : title, to);
    done.lost += lost_values(values, tensor.dtype, bytes.front(), parts.front().dtype);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      writer.write(parts[part].name, at * bytes[part].size(), bytes[part]);
      done.bytes_after += bytes[part].size();
    }
  }
  return done;
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
