#include "arena/config/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <variant>

#include "thresher/error.hpp"

namespace thresher::arena {

struct ConfigNode {
  using List = std::vector<std::shared_ptr<const ConfigNode>>;
  using Table = std::map<std::string, std::shared_ptr<const ConfigNode>>;
  struct Other {};  // dates and times, which no file of ours holds
  std::uint32_t line = 0;
  std::variant<std::string, std::int64_t, double, bool, List, Table, Other> value;
};

namespace {

[[noreturn]] void fail_at(const std::string& file, std::uint32_t line, const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}:{}: {}", file, line, sentence));
}

std::shared_ptr<const ConfigNode> convert(const toml::node& source) {
  auto node = std::make_shared<ConfigNode>();
  node->line = source.source().begin.line;
  if (const auto* table = source.as_table()) {
    ConfigNode::Table members;
    for (const auto& [key, value] : *table) {
      auto member = std::make_shared<ConfigNode>(*convert(value));
      member->line = key.source().begin.line;
      members.emplace(std::string(key.str()), member);
    }
    node->value = std::move(members);
  } else if (const auto* array = source.as_array()) {
    ConfigNode::List items;
    for (const toml::node& item : *array) {
      items.push_back(convert(item));
    }
    node->value = std::move(items);
  } else if (const auto* text = source.as_string()) {
    node->value = text->get();
  } else if (const auto* integer = source.as_integer()) {
    node->value = integer->get();
  } else if (const auto* number = source.as_floating_point()) {
    node->value = number->get();
  } else if (const auto* truth = source.as_boolean()) {
    node->value = truth->get();
  } else {
    node->value = ConfigNode::Other{};
  }
  return node;
}

/// Checks a text before the parser, which cannot handle two things. It recurses once for each part of a dotted key. Its
/// behaviour is undefined for characters that are not ASCII where it expects blanks. Both may stand in strings and
/// comments, so this class finds where those begin, as the parser does. It rejects anything that the parser would not
/// read as a string.
class FirstLook {
 public:
  explicit FirstLook(std::string_view text) : text_(text) {
    if (constexpr std::string_view byte_order_mark = "\xef\xbb\xbf"; text.starts_with(byte_order_mark)) {
      text_.remove_prefix(byte_order_mark.size());
    }
    while (at_ < text_.size() && obstacle_.empty()) {
      look();
    }
  }
  /// Why the text is not parsed; empty when it may be.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  [[nodiscard]] std::uint32_t line() const { return line_; }

 private:
  static constexpr int max_key_parts = 32;

  void look() {
    const char character = text_[at_];
    switch (character) {
      case ' ':
      case '\t':
      case '\r': ++at_; return;
      case '\n': end_line(); return;
      case '#': at_ = std::min(text_.find('\n', at_), text_.size()); return;
      case '"':
      case '\'':
        if (!may_begin("=[{,", last_ == '.' && !in_value_)) {
          obstacle_ = "this is not TOML: a quote stands where no text begins";
          return;
        }
        pass_string(character);
        last_ = character;
        return;
      default: ++at_; pass(character);
    }
  }

  void pass(char character) {
    if (static_cast<unsigned char>(character) >= 0x80) {
      obstacle_ = "this is not TOML: outside of texts and comments there is nothing but ASCII";
      return;
    }
    switch (character) {
      case '.': count_part(); break;
      case '=': begin_value(); break;
      case '[':
      case '{': open(character); break;
      case ']':
      case '}':
        if (!nesting_.empty()) {
          nesting_.pop_back();
        }
        parts_ = 1;
        break;
      case ',':
        has_value_ = false;
        parts_ = 1;
        break;
      default: break;
    }
    last_ = character;
  }

  void count_part() {
    if (++parts_ > max_key_parts) {
      obstacle_ = fmt::format("this key has more than {} parts", max_key_parts);
    }
  }

  /// Whether the text before lets a string, a list or a table begin.
  [[nodiscard]] bool may_begin(std::string_view after, bool or_else) const {
    return last_ == '\n' || after.find(last_) != std::string_view::npos || or_else;
  }

  void begin_value() {
    if (has_value_ || nesting_.ends_with('[')) {
      obstacle_ = "this is not TOML: = stands where no value begins";
    }
    in_value_ = true;
    has_value_ = true;
    parts_ = 1;
  }

  void open(char character) {
    if (!may_begin("=[,", false)) {
      obstacle_ = fmt::format("this is not TOML: {} stands where nothing begins", character);
    }
    if (in_value_) {
      nesting_ += character;
    }
    has_value_ = false;
    parts_ = 1;
  }

  void end_line() {
    ++line_;
    ++at_;
    if (nesting_.empty()) {
      in_value_ = false;
      has_value_ = false;
      last_ = '\n';
    }
    parts_ = 1;
  }

  /// Skips a string of one line or of several. The parser reports one without an end.
  void pass_string(char quote) {
    const std::string_view three = quote == '"' ? R"(""")" : "'''";
    const bool is_long = text_.substr(at_, 3) == three;
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size() && obstacle_.empty()) {
      const char character = text_[at_];
      if (character == quote && (!is_long || text_.substr(at_, 3) == three)) {
        at_ += is_long ? 3 : 1;
        for (int more = 0; is_long && more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) {
          ++at_;  // quotes that the string ends with
        }
        return;
      }
      if (character == '\n' && !is_long) {
        return;
      }
      line_ += character == '\n' ? 1U : 0U;
      ++at_;
      if (character == '\\' && quote == '"') {
        pass_escape(is_long);
      }
    }
  }

  /// A backslash at the end of a line swallows all following blanks.
  void pass_escape(bool is_long) {
    constexpr std::string_view blanks = " \t\r\n";
    if (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x80) {
      obstacle_ = "this is not TOML: a backslash stands before a character that is not ASCII";
      return;
    }
    if (!is_long || at_ >= text_.size() || blanks.find(text_[at_]) == std::string_view::npos) {
      at_ = std::min(at_ + 1, text_.size());
      return;
    }
    while (at_ < text_.size() && blanks.find(text_[at_]) != std::string_view::npos) {
      line_ += text_[at_++] == '\n' ? 1U : 0U;
    }
    if (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x80) {
      obstacle_ = "this is not TOML: outside of texts and comments there is nothing but ASCII";
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  int parts_ = 1;           ///< of the key that is read
  char last_ = '\n';        ///< the last character that is no blank and of no comment; a line's beginning
  bool in_value_ = false;   ///< behind a key's =
  bool has_value_ = false;  ///< an = has come since the last , [ or {
  std::string nesting_;     ///< the lists and tables of a value that are open, by their first character
  std::string obstacle_;
};

std::optional<double> as_number(const ConfigNode& node) {
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* number = std::get_if<double>(&node.value); number != nullptr && std::isfinite(*number)) {
    return *number;
  }
  return std::nullopt;
}

std::string as_text(const ConfigNode& node) {
  if (const auto* text = std::get_if<std::string>(&node.value)) {
    return *text;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    return fmt::to_string(*integer);
  }
  if (const auto* number = std::get_if<double>(&node.value)) {
    return fmt::to_string(*number);
  }
  if (const auto* truth = std::get_if<bool>(&node.value)) {
    return *truth ? "true" : "false";
  }
  return {};
}

}  // namespace

ConfigTable::ConfigTable(std::shared_ptr<const ConfigNode> node, std::string file, std::string name)
    : node_(std::move(node)),
      file_(std::move(file)),
      name_(std::move(name)),
      asked_(std::make_shared<std::set<std::string>>()) {}

ConfigTable ConfigTable::parse(std::string_view text, const std::string& file) {
  if (const FirstLook look(text); !look.obstacle().empty()) {
    fail_at(file, look.line(), look.obstacle());
  }
  try {
    return {convert(toml::parse(text, file)), file, ""};
  } catch (const toml::parse_error& error) {
    fail_at(file, error.source().begin.line, fmt::format("this is not TOML: {}", error.description()));
  }
}

const ConfigNode* ConfigTable::find(const std::string& key) const {
  asked_->insert(key);
  const auto& members = std::get<ConfigNode::Table>(node_->value);
  const auto found = members.find(key);
  return found == members.end() ? nullptr : found->second.get();
}

const ConfigNode& ConfigTable::require(const std::string& key) const {
  const ConfigNode* node = find(key);
  if (node == nullptr) {
    fail_at(file_, node_->line, fmt::format("`{}`{} is missing", key, name_.empty() ? "" : " in [" + name_ + "]"));
  }
  return *node;
}

void ConfigTable::fail(const std::string& key, const std::string& sentence) const {
  const ConfigNode* node = find(key);
  fail_at(file_, node == nullptr ? node_->line : node->line,
          fmt::format("`{}`{} {}", key, name_.empty() ? "" : " in [" + name_ + "]", sentence));
}

bool ConfigTable::has(const std::string& key) const { return find(key) != nullptr; }

std::string ConfigTable::text(const std::string& key) const {
  if (const auto* text = std::get_if<std::string>(&require(key).value); text != nullptr && !text->empty()) {
    return *text;
  }
  fail(key, "must be a text that is not empty, such as \"...\"");
}

std::string ConfigTable::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

std::int64_t ConfigTable::integer(const std::string& key) const {
  if (const auto* integer = std::get_if<std::int64_t>(&require(key).value)) {
    return *integer;
  }
  fail(key, "must be a whole number");
}

bool ConfigTable::boolean_or(const std::string& key, bool fallback) const {
  const ConfigNode* node = find(key);
  if (node == nullptr) {
    return fallback;
  }
  if (const auto* truth = std::get_if<bool>(&node->value)) {
    return *truth;
  }
  fail(key, "must be true or false");
}

double ConfigTable::number(const std::string& key) const {
  if (const std::optional<double> number = as_number(require(key))) {
    return *number;
  }
  fail(key, "must be a finite number");
}

std::optional<double> ConfigTable::optional_number(const std::string& key) const {
  return has(key) ? std::optional(number(key)) : std::nullopt;
}

std::vector<const ConfigNode*> ConfigTable::one_or_many(const std::string& key) const {
  const ConfigNode& node = require(key);
  std::vector<const ConfigNode*> items;
  if (const auto* list = std::get_if<ConfigNode::List>(&node.value)) {
    for (const auto& item : *list) {
      items.push_back(item.get());
    }
    if (items.empty()) {
      fail(key, "must not be an empty list");
    }
  } else {
    items.push_back(&node);
  }
  return items;
}

std::vector<std::string> ConfigTable::texts(const std::string& key) const {
  std::vector<std::string> values;
  for (const ConfigNode* node : one_or_many(key)) {
    const auto* text = std::get_if<std::string>(&node->value);
    if (text == nullptr || text->empty()) {
      fail(key, "must be a text or a list of texts");
    }
    values.push_back(*text);
  }
  return values;
}

std::vector<std::int64_t> ConfigTable::integers(const std::string& key) const {
  std::vector<std::int64_t> values;
  for (const ConfigNode* node : one_or_many(key)) {
    const auto* integer = std::get_if<std::int64_t>(&node->value);
    if (integer == nullptr) {
      fail(key, "must be a whole number or a list of them");
    }
    values.push_back(*integer);
  }
  return values;
}

std::vector<double> ConfigTable::numbers(const std::string& key) const {
  std::vector<double> values;
  for (const ConfigNode* node : one_or_many(key)) {
    const std::optional<double> number = as_number(*node);
    if (!number) {
      fail(key, "must be a finite number or a list of them");
    }
    values.push_back(*number);
  }
  return values;
}

std::vector<bool> ConfigTable::booleans(const std::string& key) const {
  std::vector<bool> values;
  for (const ConfigNode* node : one_or_many(key)) {
    const auto* truth = std::get_if<bool>(&node->value);
    if (truth == nullptr) {
      fail(key, "must be true, false or a list of them");
    }
    values.push_back(*truth);
  }
  return values;
}

ConfigTable ConfigTable::child(const ConfigNode& node, const std::string& key) const {
  if (!std::holds_alternative<ConfigNode::Table>(node.value)) {
    fail(key, "must be a table");
  }
  return {std::make_shared<ConfigNode>(node), file_, name_.empty() ? key : name_ + "." + key};
}

ConfigTable ConfigTable::table(const std::string& key) const { return child(require(key), key); }

std::optional<ConfigTable> ConfigTable::optional_table(const std::string& key) const {
  return has(key) ? std::optional(table(key)) : std::nullopt;
}

std::vector<ConfigTable> ConfigTable::tables(const std::string& key) const {
  std::vector<ConfigTable> found;
  if (has(key)) {
    for (const ConfigNode* node : one_or_many(key)) {
      found.push_back(child(*node, key));
    }
  }
  return found;
}

std::vector<std::pair<std::string, std::string>> ConfigTable::entries() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [key, node] : std::get<ConfigNode::Table>(node_->value)) {
    asked_->insert(key);
    std::string text = as_text(*node);
    if (text.empty()) {
      fail(key, "must be a text, a number, true or false");
    }
    found.emplace_back(key, std::move(text));
  }
  return found;
}

void ConfigTable::reject_unknown() const {
  for (const auto& [key, node] : std::get<ConfigNode::Table>(node_->value)) {
    if (!asked_->contains(key)) {
      fail_at(file_, node->line,
              fmt::format("unknown key `{}`{}; known here: {}", key, name_.empty() ? "" : " in [" + name_ + "]",
                          fmt::join(*asked_, ", ")));
    }
  }
}

}  // namespace thresher::arena
