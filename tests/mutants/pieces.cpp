#include "mutants/pieces.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <vector>

namespace thresher::mutants {
namespace {

constexpr std::string_view blanks = " \n";

bool is_blank(char one) { return blanks.find(one) != std::string_view::npos; }
bool is_of_name(char one) { return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_'; }

/// `text` with blanks in place of comments, and low lines in place of what string and character literals hold.
std::string without_texts(std::string_view text) {
  std::string code(text);
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code.compare(at, 2, "//") == 0) {
      for (; at < code.size() && code[at] != '\n'; ++at) {
        code[at] = ' ';
      }
    } else if (code[at] == '"' || (code[at] == '\'' && (at == 0 || !is_of_name(code[at - 1])))) {
      const char quote = code[at];
      for (++at; at < code.size() && code[at] != quote && code[at] != '\n'; ++at) {
        const bool is_escape = code[at] == '\\';
        code[at] = '_';
        if (is_escape && at + 1 < code.size()) {
          code[++at] = '_';
        }
      }
    }
  }
  return code;
}

std::string_view stripped(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  const std::size_t last = text.find_last_not_of(blanks);
  return text.substr(begin, last == std::string_view::npos ? 0 : last + 1 - begin);
}

std::string_view last_word(std::string_view text) {
  text = stripped(text);
  const std::size_t blank = text.find_last_of(blanks);
  return blank == std::string_view::npos ? text : text.substr(blank + 1);
}

std::string_view first_word(std::string_view text) {
  text = stripped(text);
  return text.substr(0, text.find_first_of(blanks));
}

/// How tightly an operator binds; 0: no operator with two operands.
int tightness(std::string_view word) {
  constexpr std::array<std::string_view, 11> operators{
      "= += -= *= /= %= &= |= ^= <<= >>=", "? :", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -"};
  if (word == "*" || word == "/" || word == "%") {
    return static_cast<int>(operators.size()) + 1;
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::string_view all = operators[i];
    for (std::size_t at = all.find(word); at != std::string_view::npos && !word.empty(); at = all.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if ((at == 0 || all[at - 1] == ' ') && (end == all.size() || all[end] == ' ')) {
        return static_cast<int>(i) + 1;
      }
    }
  }
  return 0;
}

/// Brackets, of which those of templates are the ones with a word before them and no blank.
class Brackets {
 public:
  /// False where `code[at]` closes what is not open.
  bool pass(std::string_view code, std::size_t at) {
    const char one = code[at];
    if (one == '<' && at > 0 && is_of_name(code[at - 1])) {
      open_ += '>';
    } else if (one == '(' || one == '[' || one == '{') {
      open_ += one == '(' ? ')' : one == '[' ? ']' : '}';
    } else if (one == ')' || one == ']' || one == '}' || closes_template(code, at)) {
      if (open_.empty() || open_.back() != one) {
        return false;
      }
      open_.pop_back();
    }
    return true;
  }

  bool are_closed() const { return open_.empty(); }

 private:
  bool closes_template(std::string_view code, std::size_t at) const {
    return code[at] == '>' && !open_.empty() && open_.back() == '>' && code[at - 1] != '-';
  }

  std::string open_;
};

bool closes_what_it_opens(std::string_view code) {
  Brackets brackets;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (!brackets.pass(code, at)) {
      return false;
    }
  }
  return brackets.are_closed();
}

/// What blanks part outside of all brackets; what follows `template` or `typename` belongs to it.
std::vector<std::string_view> words(std::string_view code) {
  std::vector<std::string_view> all;
  Brackets brackets;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= code.size(); ++at) {
    const std::string_view word = code.substr(begin, at - begin);
    const bool goes_on = word.ends_with("template") || word == "typename";
    if (at == code.size() || (brackets.are_closed() && is_blank(code[at]) && !goes_on)) {
      if (!word.empty()) {
        all.push_back(word);
      }
      begin = at + 1;
    } else {
      brackets.pass(code, at);
    }
  }
  return all;
}

/// Statements outside of all brackets, each with the semicolon or brace that ends it.
std::vector<std::string_view> statements(std::string_view code) {
  std::vector<std::string_view> all;
  Brackets brackets;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    brackets.pass(code, at);
    const bool is_block = code[at] == '}' && (at + 1 == code.size() || code[at + 1] == '\n');
    if (brackets.are_closed() && (code[at] == ';' || is_block)) {
      all.push_back(stripped(code.substr(begin, at + 1 - begin)));
      begin = at + 1;
    }
  }
  return all;
}

bool has_name(std::string_view code, std::string_view name) {
  for (std::size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_of_name(code[at - 1])) && (end == code.size() || !is_of_name(code[end]))) {
      return true;
    }
  }
  return false;
}

/// Up to the bracket that closes what stands around `code`'s first character.
std::string_view rest_of_block(std::string_view code) {
  Brackets brackets;
  std::size_t at = 0;
  while (at < code.size() && brackets.pass(code, at)) {
    ++at;
  }
  return code.substr(0, at);
}

std::vector<std::string_view> names_in(std::string_view code) {
  std::vector<std::string_view> all;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= code.size(); ++at) {
    if (at == code.size() || !is_of_name(code[at])) {
      if (at > begin) {
        all.push_back(code.substr(begin, at - begin));
      }
      begin = at + 1;
    }
  }
  return all;
}

/// What a statement declares: nothing unless it begins with two operands side by side, a type and a name.
std::vector<std::string_view> declared(std::string_view statement) {
  constexpr std::array<std::string_view, 14> others{"return", "throw", "delete",   "goto",     "case",
                                                    "break",  "if",    "for",      "while",    "switch",
                                                    "do",     "else",  "continue", "co_return"};
  const std::vector<std::string_view> all = words(statement);
  const auto is_other = [&](std::string_view word) {
    return tightness(word) != 0 || std::find(others.begin(), others.end(), word) != others.end();
  };
  if (all.size() < 2 || is_other(all[0]) || is_other(all[1])) {
    return {};
  }
  const auto assigned = std::find_if(all.begin(), all.end(), [](std::string_view word) { return word == "="; });
  const std::string_view declarator = *(assigned - 1);
  if (declarator.front() == '[') {
    return names_in(declarator);
  }
  const std::vector<std::string_view> names = names_in(declarator);
  return names.empty() ? names : std::vector{names.front()};
}

std::string misfit_of_expression(std::string_view code) {
  if (code.empty()) {
    return "is empty where an expression has to be";
  }
  if (!closes_what_it_opens(code)) {
    return "has brackets that do not close";
  }
  if (code.front() == '{') {
    return "is a list in braces, which is no expression";
  }
  int choices = 0;
  bool has_operand = false;
  for (const std::string_view word : words(code)) {
    const int tight = tightness(word);
    if ((tight != 0) != has_operand) {
      return has_operand ? "has two operands side by side" : "has an operator without an operand before it";
    }
    choices += word == "?" ? 1 : word == ":" ? -1 : 0;
    if (choices < 0 || word.back() == ',' || word.back() == ';') {
      return "is more or less than one expression";
    }
    has_operand = tight == 0;
  }
  return !has_operand || choices != 0 ? "ends in the middle of an expression" : "";
}

/// Of the operators outside of all brackets; 0: there are none.
int loosest(std::string_view code) {
  int least = 0;
  for (const std::string_view word : words(code)) {
    const int tight = tightness(word);
    least = least == 0 || (tight != 0 && tight < least) ? tight : least;
  }
  return least;
}

/// Operators for which (a before b) before c is a before (b before c).
bool may_be_regrouped(std::string_view word) {
  constexpr std::array<std::string_view, 9> all{"?", ":", "||", "&&", "|", "^", "&", "+", "="};
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool takes_all_behind(std::string_view left, int inside) {
  const int tight = tightness(left);
  return inside == 0 || tight < inside || (tight == inside && may_be_regrouped(left));
}

std::string misfit_on_the_left(std::string_view left, int inside) {
  if (stripped(left).empty()) {
    return "";
  }
  const char last = left.back();
  if (!is_blank(last)) {
    if (std::string_view("([{").find(last) != std::string_view::npos) {
      return "";
    }
    const bool is_unary = std::string_view("!~*&").find(last) != std::string_view::npos;
    const bool is_whole = last == '-' ? takes_all_behind("-", inside) : is_unary && inside == 0;
    return is_whole ? "" : "begins in the middle of an expression";
  }
  const std::string_view word = last_word(left);
  if (tightness(word) != 0) {
    return takes_all_behind(word, inside) ? "" : "begins in the middle of what another operator joins";
  }
  const bool may_begin =
      word == "return" || word == "throw" || std::string_view("([{,;:").find(word.back()) != std::string_view::npos;
  return may_begin ? "" : "begins in the middle of an expression or declaration";
}

std::string misfit_on_the_right(std::string_view right, int inside) {
  const std::string_view next = stripped(right);
  if (next.empty() || std::string_view(")]},;").find(next.front()) != std::string_view::npos) {
    return "";
  }
  if (inside == 0 && (next.starts_with('.') || next.starts_with("->"))) {
    return "";
  }
  const int tight = is_blank(right.front()) ? tightness(first_word(right)) : 0;
  if (tight == 0) {
    return "ends in the middle of an expression";
  }
  return inside == 0 || tight <= inside ? "" : "ends in the middle of what another operator joins";
}

/// What is evaluated as it is compiled no switch of the environment can change.
bool is_constant(std::string_view left) {
  std::size_t begin = left.size();
  while (begin > 0) {
    const char one = left[begin - 1];
    const bool is_before_blank = begin < left.size() && is_blank(left[begin]);
    if (one == ';' || ((one == '{' || one == '}') && is_before_blank)) {
      break;
    }
    --begin;
  }
  const std::string_view statement = left.substr(begin);
  return has_name(statement, "constexpr") || has_name(statement, "static_assert") || last_word(left) == "case" ||
         (!left.empty() && left.back() == '<');
}

std::string misfit_of_statements(std::string_view code) {
  if (!closes_what_it_opens(code)) {
    return "has brackets that do not close";
  }
  if (code.front() == '{' || has_name(words(code).front(), "else") || has_name(words(code).front(), "case")) {
    return "begins with what belongs to the code before it";
  }
  return code.back() == ';' || code.back() == '}' ? "" : "ends in the middle of a statement";
}

/// What is declared inside of the switch ends with it.
std::string misfit_of_declarations(std::string_view code, std::string_view right) {
  std::string_view rest = code;
  for (const std::string_view statement : statements(code)) {
    rest = code.substr(static_cast<std::size_t>(statement.data() + statement.size() - code.data()));
    for (const std::string_view name : declared(statement)) {
      if (has_name(rest_of_block(right), name)) {
        return "declares " + std::string(name) + ", which is used behind it";
      }
      if (!has_name(rest, name)) {
        return "declares " + std::string(name) + ", which would end with it";
      }
    }
  }
  return "";
}

/// Statements begin where one may: nothing of another stands before them on their line.
bool begins_statement(std::string_view left) {
  const std::string_view on_line = stripped(left.substr(left.rfind('\n') + 1));
  return on_line.empty() || std::string_view("{;:)").find(on_line.back()) != std::string_view::npos ||
         on_line == "} else";
}

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) {
      return reason;
    }
  }
  return "";
}

}  // namespace

std::string misfit(std::string_view text, std::size_t place, std::string_view before, std::string_view after) {
  const std::string all = without_texts(text);
  const std::string_view code(all);
  const std::string_view left = code.substr(0, place);
  const std::string_view right = code.substr(place + before.size());
  const std::string_view own = stripped(code.substr(place, before.size()));
  const std::string changed_texts = without_texts(after);
  const std::string_view changed = stripped(changed_texts);
  // As plant_faults.py tells them apart.
  if (before.find(';') == std::string_view::npos) {
    return first_of({is_constant(left) ? "is evaluated as it is compiled" : "", misfit_of_expression(own),
                     misfit_of_expression(changed), misfit_on_the_left(left, loosest(own)),
                     misfit_on_the_right(right, loosest(own))});
  }
  return first_of({begins_statement(left) ? "" : "begins in the middle of a statement", misfit_of_statements(own),
                   changed.empty() ? "" : misfit_of_statements(changed), misfit_of_declarations(own, right),
                   first_word(right) == "else" ? "parts an else from its if" : ""});
}

}  // namespace thresher::mutants
