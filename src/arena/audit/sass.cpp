#include "arena/audit/sass.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

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

/// An instruction's line.
struct Line {
  std::uint32_t offset = 0;  ///< of the instruction in its function, bytes
  std::string_view text{};   ///< what follows "/*0a30*/"; empty when the line is none. Encodings ("/* 0x… */") are none
};

Line instruction_of(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with("/*") || line.size() < 6 || std::isxdigit(static_cast<unsigned char>(line[2])) == 0) {
    return {};
  }
  const std::size_t close = line.find("*/");
  if (close == std::string_view::npos || close > 12) {
    return {};
  }
  std::uint32_t offset = 0;
  const char* const end = line.data() + close;
  if (const auto [stop, error] = std::from_chars(line.data() + 2, end, offset, 16);
      error != std::errc() || stop != end) {
    return {};
  }
  const std::string_view rest = trimmed(line.substr(close + 2));
  return {offset, trimmed(rest.substr(0, rest.find("/*")))};
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

/// The last operand of a branch or call as the tools write it: ".L_x_40" in "`(.L_x_40) ;", "0x650" in "P0, 0x650 ;".
std::string_view last_operand(std::string_view operands) {
  operands = trimmed(operands.substr(0, operands.find(';')));
  operands = operands.substr(operands.find_last_of(" ,`") + 1);
  if (operands.starts_with('(') && operands.ends_with(')')) {
    operands = operands.substr(1, operands.size() - 2);
  }
  return operands;
}

/// Collects the instructions of one function. Branch targets are known only at its end.
class Reader {
 public:
  explicit Reader(SassFunction& function) : function_(function) {}

  void add(const Line& line) {
    std::string_view text = line.text;
    const bool has_predicate = text.starts_with('@');
    if (has_predicate) {
      text = trimmed(text.substr(first_word(text).size()));
    }
    const std::string_view mnemonic = first_word(text);
    if (mnemonic.empty() || std::isupper(static_cast<unsigned char>(mnemonic.front())) == 0) {
      return;
    }
    const std::string_view operands = text.substr(mnemonic.size());
    const std::string_view opcode = opcode_of(mnemonic);
    const bool branches = opcode == "BRA" || opcode == "CALL" || opcode == "JMP";
    if (branches) {
      targets_.emplace_back(function_.code.size(), last_operand(operands));
    }
    offsets_.emplace(line.offset, function_.code.size());
    function_.code.push_back(
        {std::string(mnemonic), has_predicate || (branches && operands.find(',') != std::string_view::npos)});
    ++function_.instructions;
    ++function_.by_mnemonic[std::string(mnemonic)];
    note_registers(operands, function_.highest_register);
  }

  /// Names the place of the next instruction.
  void label(std::string_view name) { labels_.emplace(name, function_.code.size()); }

  void finish() {
    for (const auto& [from, target] : targets_) {
      function_.code[from].target = place_of(target);
    }
  }

 private:
  /// The index of a label or an offset; −1 when this function has none such.
  [[nodiscard]] int place_of(std::string_view target) const {
    if (const auto label = labels_.find(target); label != labels_.end()) {
      return label->second < function_.code.size() ? static_cast<int>(label->second) : -1;
    }
    std::uint32_t offset = 0;
    const std::size_t digits = target.starts_with("0x") ? 2 : target.size();
    const auto [end, error] = std::from_chars(target.data() + digits, target.data() + target.size(), offset, 16);
    const auto place = error == std::errc() ? offsets_.find(offset) : offsets_.end();
    return place == offsets_.end() ? -1 : static_cast<int>(place->second);
  }

  SassFunction& function_;
  std::vector<std::pair<std::size_t, std::string_view>> targets_;
  std::map<std::string_view, std::size_t> labels_;
  std::map<std::uint32_t, std::size_t> offsets_;
};

/// The function that `line` opens; empty when it opens none.
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

/// ".L_x_40" for the line ".L_x_40:"; empty when the line is no label.
std::string_view label_of(std::string_view line) {
  line = trimmed(line);
  return line.ends_with(':') && line.find_first_of(" \t") == std::string_view::npos ? line.substr(0, line.size() - 1)
                                                                                    : std::string_view{};
}

}  // namespace

std::string_view opcode_of(std::string_view mnemonic) noexcept { return mnemonic.substr(0, mnemonic.find('.')); }

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
    total += opcode_of(mnemonic) == opcode ? times : 0;
  }
  return total;
}

int SassFunction::count(std::string_view opcode, std::string_view modifier) const {
  int total = 0;
  for (const auto& [mnemonic, times] : by_mnemonic) {
    total += opcode_of(mnemonic) == opcode && has_modifier(mnemonic, modifier) ? times : 0;
  }
  return total;
}

std::vector<SassFunction> parse_sass(std::string_view listing) {
  std::vector<SassFunction> functions;
  std::optional<Reader> reader;  // of the last function
  SassFunction function;
  std::string arch;
  const auto close = [&] {
    if (reader) {
      reader->finish();
      functions.push_back(std::move(function));
    }
  };
  for_each_line(listing, [&](std::string_view line) {
    if (const Line instruction = instruction_of(line); !instruction.text.empty()) {
      if (reader) {
        reader->add(instruction);
      }
    } else if (const std::string_view name = opened_function(line); !name.empty()) {
      close();
      function = {.name = std::string(name), .arch = arch};
      reader.emplace(function);
    } else if (const std::string_view target = trimmed(line); target.starts_with(".target")) {
      arch = std::string(trimmed(target.substr(7)));
    } else if (target.starts_with("code for ")) {
      arch = std::string(target.substr(9));
    } else if (const std::string_view label = label_of(line); reader && !label.empty()) {
      reader->label(label);
    }
  });
  close();
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
