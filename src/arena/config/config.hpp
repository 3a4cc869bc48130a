#pragma once
/// TOML files that users write: suites and pitches. Every fault in one is an Error(invalid_argument) with file and
/// line, and so is every unknown key.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thresher::arena {

struct ConfigNode;

/// One table of a file. Cheap to copy; a copy shares the record of the keys that were read.
class ConfigTable {
 public:
  /// `file` names the text in errors.
  static ConfigTable parse(std::string_view text, const std::string& file);

  [[nodiscard]] bool has(const std::string& key) const;

  // Each throws when the key holds another type; the plain forms also when it is missing.
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& fallback) const;
  [[nodiscard]] std::int64_t integer(const std::string& key) const;
  [[nodiscard]] bool boolean_or(const std::string& key, bool fallback) const;
  /// Integers and floating-point numbers; finite.
  [[nodiscard]] double number(const std::string& key) const;
  [[nodiscard]] std::optional<double> optional_number(const std::string& key) const;
  /// One value or a list of them; not empty.
  [[nodiscard]] std::vector<std::string> texts(const std::string& key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& key) const;
  [[nodiscard]] std::vector<double> numbers(const std::string& key) const;
  [[nodiscard]] std::vector<bool> booleans(const std::string& key) const;
  [[nodiscard]] ConfigTable table(const std::string& key) const;
  [[nodiscard]] std::optional<ConfigTable> optional_table(const std::string& key) const;
  /// [[key]]; empty when missing.
  [[nodiscard]] std::vector<ConfigTable> tables(const std::string& key) const;
  /// Every key with its text, number or truth value as text: for tables whose keys are the user's own.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> entries() const;

  /// Throws when the table holds a key that was never read.
  void reject_unknown() const;
  /// "file:line: `key` in [table] sentence".
  [[noreturn]] void fail(const std::string& key, const std::string& sentence) const;

 private:
  ConfigTable(std::shared_ptr<const ConfigNode> node, std::string file, std::string name);
  [[nodiscard]] const ConfigNode* find(const std::string& key) const;
  [[nodiscard]] const ConfigNode& require(const std::string& key) const;
  [[nodiscard]] std::vector<const ConfigNode*> one_or_many(const std::string& key) const;
  [[nodiscard]] ConfigTable child(const ConfigNode& node, const std::string& key) const;

  std::shared_ptr<const ConfigNode> node_;
  std::string file_;
  std::string name_;  ///< dotted, empty at the top
  std::shared_ptr<std::set<std::string>> asked_;
};

}  // namespace thresher::arena
