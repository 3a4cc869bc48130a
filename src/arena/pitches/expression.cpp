#include "arena/pitches/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// Shortens a text to fit into a sentence.
std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 120;
  return text.size() <= longest ? std::string(text) : fmt::format("{}…", text.substr(0, longest));
}

constexpr std::int64_t largest = std::int64_t{1} << 62;
constexpr int deepest = 50;

/// A recursive-descent parser; each function reads operators of one precedence and above.
class Parser {
 public:
  Parser(std::string_view text, const Extents& extents) : text_(text), rest_(text), extents_(extents) {}

  std::int64_t all() {
    const std::int64_t value = sum();
    skip_blanks();
    if (!rest_.empty()) {
      fail(fmt::format("there is \"{}\" where it should end", excerpt(rest_)));
    }
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", excerpt(text_), why));
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  bool take(char symbol) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != symbol) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  void require(char symbol) {
    if (!take(symbol)) {
      fail(fmt::format("'{}' is missing before \"{}\"", symbol, excerpt(rest_)));
    }
  }

  /// `overflowed` comes from the compiler's checked arithmetic.
  [[nodiscard]] std::int64_t checked(bool overflowed, std::int64_t value) const {
    if (overflowed || value > largest || value < -largest) {
      fail("its value is too large");
    }
    return value;
  }

  [[nodiscard]] std::int64_t added(std::int64_t a, std::int64_t b) const {
    std::int64_t value = 0;
    const bool overflowed = __builtin_add_overflow(a, b, &value);
    return checked(overflowed, value);
  }

  [[nodiscard]] std::int64_t multiplied(std::int64_t a, std::int64_t b) const {
    std::int64_t value = 0;
    const bool overflowed = __builtin_mul_overflow(a, b, &value);
    return checked(overflowed, value);
  }

  [[nodiscard]] std::int64_t divided(std::int64_t value, std::int64_t by) const {
    if (by == 0) {
      fail("it divides by zero");
    }
    return value / by;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    for (;;) {
      if (take('+')) {
        value = added(value, product());
      } else if (take('-')) {
        value = added(value, -product());
      } else {
        return value;
      }
    }
  }

  std::int64_t product() {
    std::int64_t value = term();
    for (;;) {
      if (take('*')) {
        value = multiplied(value, term());
      } else if (take('/')) {
        value = divided(value, term());
      } else {
        return value;
      }
    }
  }

  std::int64_t term() {
    if (++depth_ > deepest) {
      fail("its parentheses are nested too deeply");
    }
    skip_blanks();
    std::int64_t value = 0;
    if (take('(')) {
      value = sum();
      require(')');
    } else if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) {
      value = number();
    } else {
      value = named();
    }
    --depth_;
    return value;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) {
      fail("a number in it is too large");
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return checked(false, value);
  }

  std::int64_t named() {
    const auto end =
        std::find_if(rest_.begin(), rest_.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; });
    const std::string_view name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(name.size());
    for (const auto& [known, value] : extents_) {
      if (known == name) {
        return value;
      }
    }
    if (name != "div_up" && name != "min" && name != "max") {
      fail(name.empty() ? fmt::format("a value is missing before \"{}\"", excerpt(rest_))
                        : fmt::format("\"{}\" is none of {}div_up, min and max", excerpt(name), known_names()));
    }
    require('(');
    const std::int64_t first = sum();
    require(',');
    const std::int64_t second = sum();
    require(')');
    return name == "min"   ? std::min(first, second)
           : name == "max" ? std::max(first, second)
                           : divided(added(first, second - 1), second);
  }

  /// "m, n, k, ".
  [[nodiscard]] std::string known_names() const {
    std::string names;
    for (const auto& [known, value] : extents_) {
      names += known + ", ";
    }
    return names;
  }

  std::string_view text_;
  std::string_view rest_;
  const Extents& extents_;
  int depth_ = 0;
};

}  // namespace

std::int64_t evaluate(std::string_view text, const Extents& extents) { return Parser(text, extents).all(); }

}  // namespace thresher::arena::user_kernels
