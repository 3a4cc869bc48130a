#include "arena/audit/sass.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace thresher::arena {
namespace {

constexpr int system_shared_bytes = 1024;

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  const std::size_t end = text.find_last_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin + 1);
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find_first_of(" \t;")); }

/// What follows "/*0a30*/" when `line` is an instruction, else nothing. Encodings ("/* 0x… */" alone) are none.
std::string_view instruction_of(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with("/*") || line.size() < 6 || std::isxdigit(static_cast<unsigned char>(line[2])) == 0) {
    return {};
  }
  const std::size_t close = line.find("*/");
  if (close == std::string_view::npos || close > 12) {
    return {};
  }
  const std::string_view offset = line.substr(2, close - 2);
  if (!std::all_of(offset.begin(), offset.end(), [](unsigned char c) { return std::isxdigit(c) != 0; })) {
    return {};
  }
  const std::string_view rest = trimmed(line.substr(close + 2));
  return trimmed(rest.substr(0, rest.find("/*")));
}

/// "R17" → 17, for every register the operands name.
void note_registers(std::string_view operands, int& highest) {
  for (std::size_t at = operands.find('R'); at != std::string_view::npos; at = operands.find('R', at + 1)) {
    const bool starts_word = at == 0 || (std::isalnum(static_cast<unsigned char>(operands[at - 1])) == 0);
    int index = -1;
    std::from_chars(operands.data() + at + 1, operands.data() + operands.size(), index);
    if (starts_word && index > highest) {
      highest = index;
    }
  }
}

void add_instruction(SassFunction& function, std::string_view text) {
  if (text.starts_with('@')) {  // a predicate
    text = trimmed(text.substr(first_word(text).size()));
  }
  const std::string_view mnemonic = first_word(text);
  if (mnemonic.empty() || std::isupper(static_cast<unsigned char>(mnemonic.front())) == 0) {
    return;
  }
  ++function.instructions;
  ++function.by_mnemonic[std::string(mnemonic)];
  note_registers(text.substr(mnemonic.size()), function.highest_register);
}

/// The function that `line` opens, if it does.
std::string_view opened_function(std::string_view line) {
  constexpr std::string_view of_cuobjdump = "Function : ";
  constexpr std::string_view of_nvdisasm = ".section\t.text.";
  line = trimmed(line);
  if (line.starts_with(of_cuobjdump)) {
    return trimmed(line.substr(of_cuobjdump.size()));
  }
  if (line.starts_with(of_nvdisasm)) {
    const std::string_view name = line.substr(of_nvdisasm.size());
    return name.substr(0, name.find(','));
  }
  return {};
}

int number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  int value = 0;
  if (at != std::string_view::npos) {
    std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  }
  return value;
}

}  // namespace

bool has_modifier(std::string_view mnemonic, std::string_view modifier) noexcept {
  for (std::size_t at = mnemonic.find('.'); at != std::string_view::npos; at = mnemonic.find('.', at + 1)) {
    const std::string_view word = mnemonic.substr(at + 1);
    if (word.substr(0, word.find('.')) == modifier) {
      return true;
    }
  }
  return false;
}

int SassFunction::count(std::string_view opcode) const {
  int total = 0;
  for (const auto& [mnemonic, times] : by_mnemonic) {
    const std::string_view text = mnemonic;
    total += text.substr(0, text.find('.')) == opcode ? times : 0;
  }
  return total;
}

int SassFunction::count(std::string_view opcode, std::string_view modifier) const {
  int total = 0;
  for (const auto& [mnemonic, times] : by_mnemonic) {
    const std::string_view text = mnemonic;
    total += text.substr(0, text.find('.')) == opcode && has_modifier(text, modifier) ? times : 0;
  }
  return total;
}

std::vector<SassFunction> parse_sass(std::string_view listing) {
  std::vector<SassFunction> functions;
  std::string arch;
  for_each_line(listing, [&](std::string_view line) {
    if (const std::string_view text = instruction_of(line); !text.empty()) {
      if (!functions.empty()) {
        add_instruction(functions.back(), text);
      }
    } else if (const std::string_view name = opened_function(line); !name.empty()) {
      functions.push_back({.name = std::string(name), .arch = arch});
    } else if (const std::string_view target = trimmed(line); target.starts_with(".target")) {
      arch = std::string(trimmed(target.substr(7)));
    } else if (target.starts_with("code for ")) {
      arch = std::string(target.substr(9));
    }
  });
  return functions;
}

std::vector<SassResources> parse_resource_usage(std::string_view listing) {
  std::vector<SassResources> all;
  for_each_line(listing, [&](std::string_view line) {
    line = trimmed(line);
    constexpr std::string_view function = "Function ";
    if (line.starts_with(function) && line.ends_with(":")) {
      const std::string_view name = trimmed(line.substr(function.size(), line.size() - function.size() - 1));
      all.push_back({.name = name.empty() ? "a function without a name" : std::string(name)});
    } else if (line.starts_with("REG:") && !all.empty()) {
      SassResources& last = all.back();
      last.registers = number_after(line, "REG:");
      last.stack_bytes = number_after(line, "STACK:");
      const int shared = number_after(line, "SHARED:");
      last.shared_bytes = shared >= system_shared_bytes ? shared - system_shared_bytes : shared;
      last.local_bytes = number_after(line, "LOCAL:");
    }
  });
  return all;
}

}  // namespace thresher::arena
