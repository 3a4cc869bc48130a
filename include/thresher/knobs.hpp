#pragma once
/// The compile-time choices of a strategy, by name.
#include <compare>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace thresher {

/// Knobs that differ from a strategy's default, for instance stages = "4", epilogue = "tma", persistent = "true".
/// `thresher plan --help-knobs` lists each strategy's knobs and their values.
class Knobs {
 public:
  Knobs() = default;
  Knobs(std::initializer_list<std::pair<const std::string, std::string>> values) : values_(values) {}

  /// Words separated by blanks, each name=value; a name alone means name=true. Throws Error(invalid_argument) for a
  /// word without a name and for a duplicate name.
  static Knobs parse(std::string_view text);
  /// The text that `parse` reads back, in the order of the names; empty without knobs.
  [[nodiscard]] std::string text() const;

  /// Null when the knob is not set.
  [[nodiscard]] const std::string* find(const std::string& name) const;
  void set(std::string name, std::string value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void erase(const std::string& name) { values_.erase(name); }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] auto begin() const noexcept { return values_.begin(); }
  [[nodiscard]] auto end() const noexcept { return values_.end(); }
  auto operator<=>(const Knobs&) const = default;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace thresher
