#include "ops/packed_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/fingerprint.hpp"
#include "core/printable.hpp"
#include "formats/atomic_file.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

constexpr const char* version_key = "thresher_packed_weights";
constexpr const char* version = "3";
constexpr const char* version_with_serial_sum = "2";  // whose "fingerprint" is that of all bytes one after the other
constexpr const char* bytes_key = "fingerprint";      // of the tensors' bytes
constexpr const char* header_key = "header_fingerprint";  // of all else that the header says
constexpr std::array matrix_names{"b1", "b2"};
constexpr std::size_t fingerprint_digits = 32;

using formats::Dtype;
using formats::Metadata;
using formats::SafetensorsHeader;
using formats::StoredTensor;

Dtype value_type(Format format) {
  switch (format_traits(format).product_format) {
    case Format::fp32: return Dtype::f32;
    case Format::bf16: return Dtype::bf16;
    case Format::fp8_e4m3: return Dtype::f8_e4m3;
    default: return format == Format::fp16 ? Dtype::f16 : Dtype::u8;
  }
}

Dtype scale_type(Format format) {
  return format_traits(format).scale_format == Format::fp32 ? Dtype::f32 : Dtype::f8_e4m3;
}

using Extents = std::vector<std::int64_t>;

/// As the file counts: bytes, where several values share one.
Extents value_shape(const PackedContent& content) {
  const std::int64_t columns = bits(content.format) < 8 ? content.k * bits(content.format) / 8 : content.k;
  return content.experts == 0 ? Extents{content.n, columns} : Extents{content.experts, content.rows(), columns};
}

std::int64_t global_scale_count(const PackedContent& content) { return std::max<std::int64_t>(content.experts, 1); }

/// Calls `add(name, type, shape, bytes)` for each tensor of the content.
template <class Add>
void for_each_tensor(const PackedContent& content, Add add) {
  const bool is_matrices = content.layout == matrices_layout;
  if (!is_matrices) {
    add("packed", Dtype::u8, Extents{static_cast<std::int64_t>(content.packed.size())}, content.packed);
  }
  for (std::size_t i = 0; i < matrix_names.size(); ++i) {
    const PackedMatrix& matrix = content.matrices.at(i);
    const std::string name = matrix_names.at(i);
    const bool is_there = i == 0 || content.has_b2;
    if (is_matrices && is_there) {
      add(name, value_type(content.format), value_shape(content), matrix.values);
    }
    if (is_matrices && is_there && format_traits(content.format).has_scales()) {
      const auto count =
          static_cast<std::int64_t>(matrix.scales.size()) * 8 / bits(format_traits(content.format).scale_format);
      add(name + "_scale", scale_type(content.format), Extents{count}, matrix.scales);
    }
    if (!matrix.global_scale.empty()) {
      add(name + "_global_scale", Dtype::f32, Extents{global_scale_count(content)}, matrix.global_scale);
    }
    if (content.bias_format && is_there) {
      add(name + "_bias", value_type(*content.bias_format), Extents{content.experts, content.rows()}, matrix.bias);
    }
  }
}

Metadata metadata_of(const PackedContent& content) {
  Metadata metadata{{version_key, version},
                    {"layout", content.layout},
                    {"numerics", std::string(name(content.numerics))},
                    {"format", std::string(name(content.format))},
                    {"n", std::to_string(content.n)},
                    {"k", std::to_string(content.k)}};
  if (content.experts > 0) {
    metadata["experts"] = std::to_string(content.experts);
    metadata["matrices"] = content.has_b2 ? "2" : "1";
  }
  if (content.order) {
    metadata["order"] = name(*content.order);
  }
  if (content.bias_format) {
    metadata["bias_format"] = name(*content.bias_format);
  }
  if (format_traits(content.format).has_scales() && content.layout == matrices_layout) {
    for (std::size_t i = 0; i < (content.has_b2 ? matrix_names.size() : 1); ++i) {
      metadata[std::string(matrix_names.at(i)) + "_scale_layout"] = name(content.matrices.at(i).scale_layout);
    }
  }
  return metadata;
}

/// The fingerprint of the header without its two fingerprints.
std::string header_fingerprint(const SafetensorsHeader& header) {
  Fingerprint sum;
  for (const auto& [key, value] : header.metadata) {
    if (key != bytes_key && key != header_key) {
      sum.add(key).add(value);
    }
  }
  std::vector<std::string> lines;  // in an order of their own: tensors without bytes begin where others do
  for (const StoredTensor& tensor : header.tensors) {
    lines.push_back(fmt::format("{} {} {} {}", tensor.name, type_and_shape(tensor), tensor.begin, tensor.end));
  }
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) {
    sum.add(line);
  }
  return sum.hex();
}

/// The fingerprint of all tensors but the padding: of their names, sizes and sums over words.
class ContentFingerprint {
 public:
  void add(std::string_view name, std::size_t bytes, const WordSums& sums) {
    sum_.add(name).add(fmt::format("{} {:016x} {:016x}", bytes, sums.first, sums.second));
  }
  [[nodiscard]] std::string hex() const { return sum_.hex(); }

 private:
  Fingerprint sum_;
};

class PackedReader {
 public:
  PackedReader(const PackedSource& source, PackedCheck check) : source_(source), check_(check) {}

  PackedContent read() {
    const std::string found = entry(version_key, "it holds no packed weights, make it with thresher pack");
    if (found != version && found != version_with_serial_sum) {
      fail(fmt::format("it is of version {} and this Thresher reads versions '{}' and '{}', pack the weights again",
                       quoted_name(found), version_with_serial_sum, version));
    }
    PackedContent content;
    content.layout = entry("layout");
    content.numerics = one_of("numerics", all_numerics);
    content.format = one_of("format", operand_formats);
    content.n = count("n");
    content.k = count("k");
    read_grouped(content);
    const int multiple = format_traits(content.format).k_multiple;
    if (content.k % multiple != 0) {
      fail(fmt::format("its k is {}, which is no multiple of {}", content.k, multiple));
    }
    if (content.layout != matrices_layout) {
      content.packed = bytes(tensor("packed"));
    }
    for (std::size_t i = 0; i < matrix_names.size(); ++i) {
      read_matrix(content, i);
    }
    if (entry(header_key) != header_fingerprint(source_.header())) {
      fail_damaged("its header is not what was written");
    }
    if (check_ == PackedCheck::content) {
      check_bytes(content);
    }
    return content;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", source_.name(), reason));
  }

  [[noreturn]] void fail_damaged(const std::string& reason) const {
    fail(reason + ", it is damaged: pack the weights again");
  }

  [[nodiscard]] bool has(const std::string& key) const { return source_.header().metadata.contains(key); }

  std::string entry(const std::string& key, const std::string& without = {}) const {
    const auto found = source_.header().metadata.find(key);
    if (found == source_.header().metadata.end()) {
      without.empty() ? fail_damaged("its metadata lack \"" + key + "\"") : fail(without);
    }
    return found->second;
  }

  template <class Value, std::size_t size>
  Value one_of(const std::string& key, const std::array<Value, size>& values) const {
    const std::string text = entry(key);
    for (const Value value : values) {
      if (thresher::name(value) == text) {
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

  void read_grouped(PackedContent& content) const {
    if (!has("experts")) {
      return;
    }
    content.experts = count("experts");
    if (content.experts == 0) {
      fail("its experts are \"0\", expected a count above 0");
    }
    content.has_b2 = count("matrices") == 2;
    if (has("order")) {
      content.order = one_of("order", all_gate_up_orders);
    }
    if (has("bias_format")) {
      content.bias_format = one_of("bias_format", unscaled_output_formats);
    }
    if (content.order && content.has_b2) {
      fail_damaged("it has an order of gate and up, and two matrices as well");
    }
  }

  [[nodiscard]] const StoredTensor* find(const std::string& name) const {
    const auto& tensors = source_.header().tensors;
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == name; });
    return found == tensors.end() ? nullptr : &*found;
  }

  [[nodiscard]] const StoredTensor& tensor(const std::string& name) const {
    const StoredTensor* found = find(name);
    if (found == nullptr) {
      fail_damaged("it lacks the tensor " + name);
    }
    if (found->begin % packed_image_alignment != 0) {
      fail_damaged(fmt::format("its tensor {} begins at byte {} of its data, expected a multiple of {}", name,
                               found->begin, packed_image_alignment));
    }
    return *found;
  }

  [[nodiscard]] Bytes bytes(const StoredTensor& of) const { return source_.read(of); }

  [[nodiscard]] Bytes bytes(const std::string& name, Dtype dtype, const Extents& shape) const {
    const StoredTensor& found = tensor(name);
    if (found.dtype != dtype || found.shape != shape) {
      fail_damaged(fmt::format("its tensor {} is {}, expected {}", name, type_and_shape(found),
                               type_and_shape(StoredTensor{name, dtype, shape, 0, 0})));
    }
    return bytes(found);
  }

  void read_matrix(PackedContent& content, std::size_t i) const {
    PackedMatrix& matrix = content.matrices.at(i);
    const std::string name = matrix_names.at(i);
    const bool is_there = i == 0 || content.has_b2;
    if (is_there && content.layout == matrices_layout) {
      matrix.values = bytes(name, value_type(content.format), value_shape(content));
      if (format_traits(content.format).has_scales()) {
        read_scales(content, matrix, name);
      }
    }
    if (find(name + "_global_scale") != nullptr) {
      matrix.global_scale = bytes(name + "_global_scale", Dtype::f32, {global_scale_count(content)});
    }
    if (is_there && content.bias_format) {
      matrix.bias = bytes(name + "_bias", value_type(*content.bias_format), {content.experts, content.rows()});
    }
  }

  void read_scales(const PackedContent& content, PackedMatrix& matrix, const std::string& name) const {
    matrix.scale_layout = one_of(name + "_scale_layout", all_scale_layouts);
    if (!may_lie(matrix.scale_layout, content.format, OperandRole::weights)) {
      fail(fmt::format("its scales of {} are {}, which they cannot be", name, thresher::name(matrix.scale_layout)));
    }
    const std::size_t of_one =
        scale_bytes(content.format, OperandRole::weights, content.rows(), content.k, matrix.scale_layout);
    const std::size_t expected = of_one * static_cast<std::size_t>(global_scale_count(content));
    const StoredTensor& found = tensor(name + "_scale");
    if (found.dtype != scale_type(content.format) || found.bytes() != expected) {
      fail_damaged(fmt::format("its tensor {}_scale has {} bytes, expected {}", name, found.bytes(), expected));
    }
    matrix.scales = bytes(found);
  }

  void check_bytes(const PackedContent& content) const {
    const bool is_serial = entry(version_key) == version_with_serial_sum;
    ContentFingerprint sum;
    Fingerprint serial;
    for_each_tensor(content, [&](const std::string& name, Dtype, const Extents&, const Bytes& held) {
      if (is_serial) {
        serial.add(name).add({reinterpret_cast<const char*>(held.data()), held.size()});
      } else {
        sum.add(name, held.size(), byte_sums(held.span()));
      }
    });
    if (entry(bytes_key) != (is_serial ? serial.hex() : sum.hex())) {
      fail_damaged("its bytes are not those that were written");
    }
  }

  const PackedSource& source_;
  PackedCheck check_;
};

}  // namespace

PackedImage::PackedImage(const PackedContent& content) {
  if (const int multiple = format_traits(content.format).k_multiple; content.k % multiple != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the weights have k = {}, expected a multiple of {}", content.k, multiple));
  }
  std::uint64_t end = 0;
  for_each_tensor(content, [&](const std::string& name, Dtype dtype, const Extents& shape, const Bytes& held) {
    const std::uint64_t begin = (end + packed_image_alignment - 1) / packed_image_alignment * packed_image_alignment;
    if (begin > end) {
      header_.tensors.push_back({"padding." + name, Dtype::u8, {static_cast<std::int64_t>(begin - end)}, end, begin});
    }
    end = begin + held.size();
    header_.tensors.push_back({name, dtype, shape, begin, end});
    parts_.push_back({name, held.span()});
  });
  header_.metadata = metadata_of(content);
  header_.metadata[header_key] = header_fingerprint(header_);
  header_.metadata[bytes_key] = std::string(fingerprint_digits, '0');  // until it is written
  bytes_ = make_safetensors_header(header_, packed_image_alignment).size() + end;
}

void PackedImage::write(const Sink& sink) const {
  ContentFingerprint sum;
  for (const Part& part : parts_) {
    sum.add(part.name, part.bytes.size(), sink.sums(part.bytes));
  }
  SafetensorsHeader header = header_;
  header.metadata[bytes_key] = sum.hex();
  const std::string head = make_safetensors_header(header, packed_image_alignment);
  sink.put(0, std::as_bytes(std::span(head)));
  auto part = parts_.begin();
  for (const StoredTensor& tensor : header.tensors) {
    const bool is_part = part != parts_.end() && part->name == tensor.name;
    const std::vector<std::byte> zeros(is_part ? 0 : tensor.bytes());
    sink.put(head.size() + tensor.begin, is_part ? part->bytes : std::span(zeros));
    part += is_part ? 1 : 0;
  }
}

PackedContent read_packed_image(const PackedSource& source, PackedCheck check) {
  return PackedReader(source, check).read();
}

void expect_dual_gemm(const PackedSource& source, const PackedContent& content) {
  if (content.experts > 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: it holds the weights of {} experts, of a grouped product, expected those of a dual GEMM",
                    source.name(), content.experts));
  }
}

void expect_grouped(const PackedSource& source, const PackedContent& content) {
  if (content.experts == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: it holds the weights of a dual GEMM, expected those of experts, of a grouped product",
                            source.name()));
  }
}

PackedPointer restore_from(const PackedSource& source, const Device& device, PackedContent content) {
  try {
    return restore_product(device, std::move(content));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source.name(), error.what()));
  }
}

void write_packed_file(const std::string& path, const PackedContent& content) {
  formats::AtomicFile file(path);
  PackedImage(content).write({.sums = byte_sums, .put = [&](std::size_t offset, std::span<const std::byte> bytes) {
                                file.write_at(offset, bytes);
                              }});
  file.commit();
}

}  // namespace thresher::ops
