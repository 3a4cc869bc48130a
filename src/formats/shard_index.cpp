#include "formats/shard_index.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

using nlohmann::json;

constexpr std::uint64_t max_index_bytes = 100'000'000;
constexpr int deepest = 16;

[[noreturn]] void reject_index(std::string_view file, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a valid index of a checkpoint: {}", file, problem));
}

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of("/\\") == std::string::npos && printable(name) == name;
}

/// Reads the JSON as a stream of events, so that the cost of depth and size is limited to what is kept.
class IndexReader : public nlohmann::json_sax<json> {
 public:
  WeightMap files;
  std::string problem;
  bool has_weight_map = false;

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("binary data"); }

  bool string(string_t& text) override {
    if (depth_ != 2 || section_ != Section::weight_map) {
      return value("a string");
    }
    if (!is_plain_file_name(text)) {
      return fail(fmt::format("it places the tensor {} in {}, but a file's own name is expected, in the index's folder",
                              quoted_name(key_), quoted_name(text)));
    }
    return files.emplace(key_, text).second ? true : fail(quoted_name(key_) + " appears twice in its weight_map");
  }

  bool start_object(std::size_t) override { return start("an object"); }
  bool start_array(std::size_t) override {
    return depth_ == 0 ? fail("it is an array, not an object") : start("an array");
  }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(string_t& text) override {
    key_ = text;
    if (depth_ != 1) {
      return true;
    }
    section_ = text == "weight_map" ? Section::weight_map : Section::other;
    if (section_ == Section::weight_map && std::exchange(has_weight_map, true)) {
      return fail("'weight_map' appears twice");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("it is not JSON near byte {}", position));
  }

 private:
  enum class Section : std::uint8_t { other, weight_map };

  bool fail(std::string reason) {
    problem = std::move(reason);
    return false;
  }

  bool value(const char* what) {
    if (depth_ == 0) {
      return fail(fmt::format("it is {}, not an object", what));
    }
    return section_ == Section::other
               ? true
               : fail(fmt::format("it has {} at {}, where its weight_map needs the names of files", what,
                                  quoted_name(key_)));
  }

  bool start(const char* what) {
    const bool begins_map = depth_ == 1 && section_ == Section::weight_map && std::string_view(what) == "an object";
    if (depth_ > 0 && !begins_map && !value(what)) {
      return false;
    }
    return ++depth_ <= deepest ? true : fail(fmt::format("it is nested deeper than {}", deepest));
  }

  bool end() {
    if (--depth_ == 1) {
      section_ = Section::other;
    }
    return true;
  }

  int depth_ = 0;
  Section section_ = Section::other;
  std::string key_;
};

}  // namespace

WeightMap parse_shard_index(std::string_view text, std::string_view file) {
  // The parser takes a NUL for the end of its input, and would ignore the rest.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    reject_index(file, fmt::format("it has a NUL at byte {}, where JSON has none", nul));
  }
  IndexReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    reject_index(file, reader.problem);
  }
  if (!reader.has_weight_map) {
    reject_index(file, "it has no weight_map");
  }
  return std::move(reader.files);
}

WeightMap read_shard_index(const std::filesystem::path& path) {
  const InputFile file = read_input_file(path, max_index_bytes);
  if (!file.bytes) {
    throw Error(ErrorCode::io, fmt::format("{}: {}", path.string(), file.obstacle));
  }
  return parse_shard_index(*file.bytes, path.string());
}

}  // namespace thresher::formats
