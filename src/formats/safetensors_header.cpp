#include "formats/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

using nlohmann::json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::string_view metadata_name = "__metadata__";

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::uint64_t bits;
};

constexpr std::array<DtypeRow, 17> dtype_rows{{{Dtype::boolean, "BOOL", 8},
                                               {Dtype::u8, "U8", 8},
                                               {Dtype::i8, "I8", 8},
                                               {Dtype::u16, "U16", 16},
                                               {Dtype::i16, "I16", 16},
                                               {Dtype::u32, "U32", 32},
                                               {Dtype::i32, "I32", 32},
                                               {Dtype::u64, "U64", 64},
                                               {Dtype::i64, "I64", 64},
                                               {Dtype::f16, "F16", 16},
                                               {Dtype::bf16, "BF16", 16},
                                               {Dtype::f32, "F32", 32},
                                               {Dtype::f64, "F64", 64},
                                               {Dtype::f8_e4m3, "F8_E4M3", 8},
                                               {Dtype::f8_e5m2, "F8_E5M2", 8},
                                               {Dtype::f8_e8m0, "F8_E8M0", 8},
                                               {Dtype::f4, "F4", 4}}};

const DtypeRow& row_of(Dtype dtype) noexcept {
  return *std::find_if(dtype_rows.begin(), dtype_rows.end(),
                       [dtype](const DtypeRow& row) { return row.dtype == dtype; });
}

std::optional<Dtype> dtype_named(std::string_view text) {
  for (const DtypeRow& row : dtype_rows) {
    if (row.name == text) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

[[noreturn]] void reject_file(std::string_view file, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a valid safetensors file: {}", file, problem));
}

/// Reads the JSON as a stream of events and accepts nothing but
/// {name: {"dtype": string, "shape": [n…], "data_offsets": [begin, end]}…, "__metadata__": {key: string…}}.
/// An unexpected event ends the parse with its reason in `problem`.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override { return unexpected(fmt::format("the number {}", value)); }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + quoted_name(text));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::numbers) {
      return unexpected(fmt::format("the number {}", value));
    }
    numbers_.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      header.metadata.emplace(key_, value);
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") {
      return unexpected("the string " + quoted_name(value));
    }
    const std::optional<Dtype> dtype = dtype_named(value);
    if (!dtype) {
      return fail(fmt::format("tensor {} has the unknown type {}", quoted_name(tensor_.name), quoted_name(value)));
    }
    tensor_.dtype = *dtype;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
      return true;
    }
    if (place_ != Place::top) {
      return unexpected("an object");
    }
    fields_.clear();
    place_ = key_ == metadata_name ? Place::metadata : Place::tensor;
    tensor_ = {};
    tensor_.name = key_;
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    const bool is_new = (place_ == Place::top ? names_ : fields_).insert(value).second;
    return is_new ? true : fail(fmt::format("{} appears twice{}", quoted_name(value), where()));
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      return end_tensor();
    }
    place_ = place_ == Place::metadata ? Place::top : Place::outside;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || (key_ != "shape" && key_ != "data_offsets")) {
      return unexpected("an array");
    }
    place_ = Place::numbers;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return key_ == "shape" ? take_shape() : take_offsets();
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("its header is not JSON near byte {}", length_bytes + position));
  }

 private:
  enum class Place : std::uint8_t { outside, top, metadata, tensor, numbers };

  bool fail(std::string reason) {
    problem = std::move(reason);
    return false;
  }

  [[nodiscard]] std::string where() const {
    switch (place_) {
      case Place::metadata: return " in its metadata";
      case Place::tensor:
      case Place::numbers: return " in tensor " + quoted_name(tensor_.name);
      default: return "";
    }
  }

  bool unexpected(const std::string& what) {
    const std::string at = key_.empty() ? std::string() : " at " + quoted_name(key_);
    return fail(fmt::format("its header has {}{}{}, where that does not belong", what, at, where()));
  }

  bool take_shape() {
    for (const std::uint64_t extent : numbers_) {
      if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return fail(fmt::format("tensor {} has the extent {}, which is too large", quoted_name(tensor_.name), extent));
      }
      tensor_.shape.push_back(static_cast<std::int64_t>(extent));
    }
    return true;
  }

  bool take_offsets() {
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) {
      return fail(
          fmt::format("tensor {} needs data_offsets [begin, end] with begin not above end", quoted_name(tensor_.name)));
    }
    tensor_.begin = numbers_[0];
    tensor_.end = numbers_[1];
    return true;
  }

  bool end_tensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.contains(field)) {
        return fail(fmt::format("tensor {} has no {}", quoted_name(tensor_.name), field));
      }
    }
    header.tensors.push_back(std::move(tensor_));
    place_ = Place::top;
    return true;
  }

  Place place_ = Place::outside;
  std::string key_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> fields_;
  std::vector<std::uint64_t> numbers_;
  StoredTensor tensor_;
};

void check_sizes(const SafetensorsHeader& header, std::string_view file) {
  for (const StoredTensor& tensor : header.tensors) {
    const std::uint64_t expected = stored_bytes(tensor, file);
    if (tensor.bytes() != expected) {
      reject_file(file, fmt::format("tensor {} has {} bytes of data, but {} needs {}", quoted_name(tensor.name),
                                    tensor.bytes(), type_and_shape(tensor), expected));
    }
  }
}

/// The tensors, by ascending begin, must follow each other without gap or overlap up to the end of the data.
void check_coverage(const SafetensorsHeader& header, std::uint64_t data_bytes, std::string_view file) {
  std::uint64_t covered = 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.end > data_bytes) {
      reject_file(file,
                  fmt::format("the data of tensor {} end at byte {}, but the file has only {}; it may be truncated",
                              quoted_name(tensor.name), tensor.end, data_bytes));
    }
    if (tensor.begin != covered) {
      reject_file(file,
                  fmt::format("the data of tensor {} begin at byte {}, but must begin at {}, where the data before end",
                              quoted_name(tensor.name), tensor.begin, covered));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    reject_file(file, fmt::format("it has {} bytes of data, but its tensors cover {}", data_bytes, covered));
  }
}

}  // namespace

std::string_view name(Dtype dtype) noexcept { return row_of(dtype).name; }
std::uint64_t bits(Dtype dtype) noexcept { return row_of(dtype).bits; }

std::string type_and_shape(const StoredTensor& tensor) {
  constexpr std::size_t most = 8;
  const auto first = std::span(tensor.shape).first(std::min(most, tensor.shape.size()));
  const std::string rest =
      tensor.shape.size() > most ? fmt::format(", … {} dimensions in all", tensor.shape.size()) : std::string();
  return fmt::format("{} [{}{}]", name(tensor.dtype), fmt::join(first, ", "), rest);
}

std::uint64_t safetensors_header_length(std::span<const std::byte> first_bytes, std::uint64_t file_bytes,
                                        std::string_view file) {
  if (first_bytes.size() < length_bytes) {
    reject_file(file, fmt::format("it has {} bytes, not even the 8 of a header's length", file_bytes));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= std::to_integer<std::uint64_t>(first_bytes[i]) << (8 * i);
  }
  if (length > max_header_bytes) {
    reject_file(file,
                fmt::format("its header claims {} bytes, and more than {} are not believed", length, max_header_bytes));
  }
  if (length > file_bytes - length_bytes) {
    reject_file(file, fmt::format("its header claims {} bytes, but only {} follow; it may be truncated", length,
                                  file_bytes - length_bytes));
  }
  return length;
}

std::uint64_t stored_bytes(const StoredTensor& tensor, std::string_view file) {
  auto size_bits = static_cast<std::int64_t>(bits(tensor.dtype));
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0) {
      reject_file(file, fmt::format("tensor {} has the negative extent {}", quoted_name(tensor.name), extent));
    }
    size_bits = size_product(size_bits, extent);
  }
  if (size_bits == too_large) {
    reject_file(file,
                fmt::format("tensor {} is {}, which is too large", quoted_name(tensor.name), type_and_shape(tensor)));
  }
  if (size_bits % 8 != 0) {
    reject_file(
        file, fmt::format("tensor {} has {} bits, which do not fill whole bytes", quoted_name(tensor.name), size_bits));
  }
  return static_cast<std::uint64_t>(size_bits / 8);
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, std::string_view file) {
  if (text.empty() || text.front() != '{') {
    reject_file(file, "its header does not begin with {");
  }
  // The parser takes a NUL for the end of its input, and would ignore the rest.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    reject_file(file, fmt::format("its header has a NUL at byte {}, where JSON has none; it is padded with spaces",
                                  length_bytes + nul));
  }
  HeaderReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    reject_file(file, reader.problem);
  }
  std::sort(reader.header.tensors.begin(), reader.header.tensors.end(),
            [](const StoredTensor& left, const StoredTensor& right) {
              return std::tie(left.begin, left.end, left.name) < std::tie(right.begin, right.end, right.name);
            });
  check_sizes(reader.header, file);
  check_coverage(reader.header, data_bytes, file);
  return std::move(reader.header);
}

std::string make_safetensors_header(const SafetensorsHeader& header, std::size_t alignment) {
  json out = json::object();
  if (!header.metadata.empty()) {
    out[std::string(metadata_name)] = header.metadata;
  }
  for (const StoredTensor& tensor : header.tensors) {
    out[tensor.name] = {{"dtype", std::string(name(tensor.dtype))},
                        {"shape", tensor.shape},
                        {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = out.dump();
  text.resize((length_bytes + text.size() + alignment - 1) / alignment * alignment - length_bytes, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    bytes += static_cast<char>((text.size() >> (8 * i)) & 0xFFU);
  }
  return bytes + text;
}

}  // namespace thresher::formats
