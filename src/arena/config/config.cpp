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

/// The place of the last quote of the string that begins at `at`, of one line or of several; counts its lines.
std::size_t end_of_string(std::string_view text, std::size_t at, std::uint32_t& line) {
  const char quote = text[at];
  const std::string_view three = quote == '"' ? R"(""")" : "'''";
  const bool is_long = text.substr(at, 3) == three;
  for (std::size_t next = at + (is_long ? 3 : 1); next < text.size(); ++next) {
    if (text[next] == '\n') {
      if (!is_long) {
        return next - 1;  // the parser will say that it has no end
      }
      ++line;
    } else if (text[next] == '\\' && quote == '"') {
      ++next;
    } else if (text[next] == quote && (!is_long || text.substr(next, 3) == three)) {
      return next + (is_long ? 2 : 0);
    }
  }
  return text.size();
}

/// A key has few parts; the parser makes a table inside a table of each, and ends them one inside the other.
constexpr int most_key_parts = 32;

/// The line of the first key with more parts than that; nothing when there is none. Strings and comments are passed over.
std::optional<std::uint32_t> line_of_deep_key(std::string_view text) {
  std::uint32_t line = 1;
  int parts = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (character == '"' || character == '\'') {
      at = end_of_string(text, at, line);
    } else if (character == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (character == '.') {
      if (++parts > most_key_parts) {
        return line;
      }
    } else if (character == '\n' || std::string_view("=[]{},").find(character) != std::string_view::npos) {
      parts = 1;
      line += character == '\n' ? 1U : 0U;
    }
  }
  return std::nullopt;
}

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
  if (const auto line = line_of_deep_key(text)) {
    fail_at(file, *line, fmt::format("this key has more than {} parts", most_key_parts));
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
