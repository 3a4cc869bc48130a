#include "thresher/packed_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "core/fingerprint.hpp"
#include "core/printable.hpp"
#include "formats/safetensors.hpp"
#include "ops/backend.hpp"
#include "ops/device_operations.hpp"
#include "ops/packed_content.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace ops {
namespace {

constexpr const char* version_key = "thresher_packed_weights";
constexpr const char* version = "1";
constexpr std::array matrix_names{"b1", "b2"};

using formats::Dtype;
using formats::TensorToWrite;

Dtype value_type(Format format) {
  switch (format_traits(format).product_format) {
    case Format::bf16: return Dtype::bf16;
    case Format::fp8_e4m3: return Dtype::f8_e4m3;
    default: return format == Format::fp16 ? Dtype::f16 : Dtype::u8;
  }
}

Dtype scale_type(Format format) {
  return format_traits(format).scale_format == Format::fp32 ? Dtype::f32 : Dtype::f8_e4m3;
}

/// Elements of one row as the file counts them: bytes, where several values share one.
std::int64_t stored_columns(Format format, std::int64_t k) { return bits(format) < 8 ? k * bits(format) / 8 : k; }

std::vector<TensorToWrite> tensors_of(const PackedContent& content) {
  std::vector<TensorToWrite> tensors;
  const auto flat = [](const std::vector<std::byte>& bytes, Format format) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(bytes.size()) / (bits(format) / 8)};
  };
  const bool is_matrices = content.layout == matrices_layout;
  if (!is_matrices) {
    tensors.push_back({"packed", Dtype::u8, flat(content.packed, Format::uint8), content.packed});
  }
  for (std::size_t i = 0; i < matrix_names.size(); ++i) {
    const HostMatrix& matrix = content.matrices.at(i);
    const std::string name = matrix_names.at(i);
    if (is_matrices) {
      tensors.push_back(
          {name, value_type(content.format), {content.n, stored_columns(content.format, content.k)}, matrix.values});
    }
    if (!matrix.scales.empty()) {
      tensors.push_back({name + "_scale", scale_type(content.format),
                         flat(matrix.scales, format_traits(content.format).scale_format), matrix.scales});
    }
    if (!matrix.global_scale.empty()) {
      tensors.push_back(
          {name + "_global_scale", Dtype::f32, {1}, std::as_bytes(std::span<const float>(matrix.global_scale))});
    }
  }
  return tensors;
}

std::string fingerprint(const PackedContent& content) {
  Fingerprint sum;
  for (const TensorToWrite& tensor : tensors_of(content)) {
    sum.add(tensor.name).add({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  }
  return sum.hex();
}

/// Reads a file's metadata and tensors, refusing what save_packed does not write.
class PackedReader {
 public:
  explicit PackedReader(const std::string& path) : file_(path) {}

  PackedContent read() {
    const std::string found = entry(version_key, "it holds no packed weights, make it with thresher pack");
    if (found != version) {
      fail(fmt::format("it is of version {} and this Thresher reads version {}, pack the weights again",
                       quoted_name(found), version));
    }
    PackedContent content;
    content.layout = entry("layout");
    content.numerics = one_of("numerics", all_numerics);
    content.format = one_of("format", operand_formats);
    content.n = count("n");
    content.k = count("k");
    const int multiple = format_traits(content.format).k_multiple;
    if (content.k % multiple != 0) {
      fail(fmt::format("its k is {}, which is no multiple of {}", content.k, multiple));
    }
    for (std::size_t i = 0; i < matrix_names.size(); ++i) {
      read_matrix(content, i);
    }
    if (content.layout != matrices_layout) {
      content.packed = bytes("packed", true);
    }
    if (entry("fingerprint") != fingerprint(content)) {
      fail("its bytes are not those that were saved, it is damaged: pack the weights again");
    }
    return content;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("packed weights {}: {}", file_.path(), reason));
  }

  std::string entry(const std::string& key, const std::string& without = {}) const {
    const auto found = file_.header().metadata.find(key);
    if (found == file_.header().metadata.end()) {
      fail(without.empty() ? "its metadata lack \"" + key + "\", it is damaged: pack the weights again" : without);
    }
    return found->second;
  }

  template <class Value, std::size_t size>
  Value one_of(const std::string& key, const std::array<Value, size>& values) const {
    const std::string text = entry(key);
    for (const Value value : values) {
      if (name(value) == text) {
        return value;
      }
    }
    fail(fmt::format("its {} is {}, which this Thresher does not know", key, quoted_name(text)));
  }

  std::int64_t count(const std::string& key) const {
    const std::string text = entry(key);
    constexpr std::int64_t most = std::int64_t{1} << 31;  // of a problem's extents
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most) {
      fail(fmt::format("its {} is {}, expected a count", key, quoted_name(text)));
    }
    return value;
  }

  std::vector<std::byte> bytes(const std::string& tensor, bool required) const {
    const formats::StoredTensor* found = file_.find(tensor);
    if (found == nullptr && required) {
      fail("it lacks the tensor " + tensor + ", it is damaged: pack the weights again");
    }
    return found == nullptr ? std::vector<std::byte>{} : file_.read(*found);
  }

  void require_bytes(const std::string& tensor, std::size_t is, std::size_t expected) const {
    if (is != expected) {
      fail(fmt::format("its tensor {} has {} bytes, expected {}, it is damaged: pack the weights again", tensor, is,
                       expected));
    }
  }

  void read_matrix(PackedContent& content, std::size_t i) const {
    HostMatrix& matrix = content.matrices.at(i);
    const std::string name = matrix_names.at(i);
    const std::vector<std::byte> global = bytes(name + "_global_scale", false);
    if (!global.empty()) {
      require_bytes(name + "_global_scale", global.size(), sizeof(float));
      matrix.global_scale.resize(1);
      std::memcpy(matrix.global_scale.data(), global.data(), sizeof(float));
    }
    if (content.layout != matrices_layout) {
      return;
    }
    matrix.values = bytes(name, true);
    const auto row_bytes = static_cast<std::size_t>(content.k * bits(content.format) / 8);
    require_bytes(name, matrix.values.size(), static_cast<std::size_t>(content.n) * row_bytes);
    if (format_traits(content.format).has_scales()) {
      matrix.scale_layout = one_of(name + "_scale_layout", all_scale_layouts);
      matrix.scales = bytes(name + "_scale", true);
      if (!may_lie(matrix.scale_layout, content.format, OperandRole::weights)) {
        fail(fmt::format("its scales of {} are {}, which they cannot be", name, thresher::name(matrix.scale_layout)));
      }
      require_bytes(name + "_scale", matrix.scales.size(),
                    scale_bytes(content.format, OperandRole::weights, content.n, content.k, matrix.scale_layout));
    }
  }

  formats::SafetensorsFile file_;
};

}  // namespace

void write_packed_file(const std::string& path, const PackedContent& content) {
  formats::Metadata metadata{{version_key, version},
                             {"layout", content.layout},
                             {"numerics", std::string(name(content.numerics))},
                             {"format", std::string(name(content.format))},
                             {"n", std::to_string(content.n)},
                             {"k", std::to_string(content.k)},
                             {"fingerprint", fingerprint(content)}};
  if (format_traits(content.format).has_scales() && content.layout == matrices_layout) {
    for (std::size_t i = 0; i < matrix_names.size(); ++i) {
      metadata[std::string(matrix_names.at(i)) + "_scale_layout"] = name(content.matrices.at(i).scale_layout);
    }
  }
  formats::write_safetensors(path, tensors_of(content), metadata);
}

PackedContent read_packed_file(const std::string& path) { return PackedReader(path).read(); }

}  // namespace ops

void save_packed(const PackedWeights& weights, const std::string& path) {
  ops::write_packed_file(path, weights.storage().content());
}

PackedWeights load_packed(const Device& device, const std::string& path) {
  ops::PackedContent content = ops::read_packed_file(path);
  try {
    return PackedWeights(ops::operations_for(device.kind()).restore(device, std::move(content)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("packed weights {}: {}", path, error.what()));
  }
}

}  // namespace thresher
