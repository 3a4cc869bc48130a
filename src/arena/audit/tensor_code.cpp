#include "arena/audit/tensor_code.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace thresher::arena {
namespace {

/// Instructions from `first` to `last`, which leads back to it.
struct Loop {
  std::size_t first = 0;
  std::size_t last = 0;
  [[nodiscard]] bool holds(std::size_t place) const { return first <= place && place <= last; }
  [[nodiscard]] std::size_t length() const { return last - first; }
};

bool is_product(std::string_view mnemonic) {
  const std::string_view opcode = opcode_of(mnemonic);
  return opcode.starts_with("UTC") && opcode.ends_with("MMA");
}

/// Traps belong to the compiler's allocator of tensor memory.
bool is_of_allocator(std::string_view mnemonic) { return opcode_of(mnemonic) == "UTCATOMSWS"; }

/// Instructions that one thread issues for all; a loop over the threads of a warp would repeat them.
bool is_issued_by_one(std::string_view mnemonic) { return mnemonic.starts_with("UTC") && !is_of_allocator(mnemonic); }

/// Instructions whose name says whether they belong to one block or to two. Deallocation never says it.
bool names_its_group(std::string_view mnemonic) {
  return is_issued_by_one(mnemonic) || (is_of_allocator(mnemonic) && has_modifier(mnemonic, "FIND_AND_SET"));
}

bool is_of_tensor_memory(std::string_view mnemonic) {
  const std::string_view opcode = opcode_of(mnemonic);
  return opcode.starts_with("UTC") || opcode == "LDTM" || opcode == "STTM";
}

/// Ends the loop ELECT, instruction, BRA.U.ANY. The compiler emits it where it cannot see that only one thread runs.
bool ends_loop_over_threads(const SassInstruction& instruction) {
  return opcode_of(instruction.mnemonic) == "BRA" && has_modifier(instruction.mnemonic, "U") &&
         has_modifier(instruction.mnemonic, "ANY");
}

std::vector<Loop> loops_of(const SassFunction& function, bool over_threads) {
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const SassInstruction& branch = function.code[i];
    if (branch.target >= 0 && static_cast<std::size_t>(branch.target) <= i && opcode_of(branch.mnemonic) == "BRA" &&
        ends_loop_over_threads(branch) == over_threads) {
      loops.push_back({static_cast<std::size_t>(branch.target), i});
    }
  }
  return loops;
}

/// The shortest loop around the instruction at `place`; null when it stands in none. Code that waits at the end of a
/// kernel branches back without a condition, so conditional loops come first.
const Loop* innermost(const SassFunction& function, const std::vector<Loop>& loops, std::size_t place) {
  const Loop* found = nullptr;
  const auto rank = [&](const Loop& loop) {
    return std::pair(!function.code[loop.last].is_conditional, loop.length());
  };
  for (const Loop& loop : loops) {
    if (loop.holds(place) && (found == nullptr || rank(loop) < rank(*found))) {
      found = &loop;
    }
  }
  return found;
}

/// For each instruction, whether one of the loops contains it.
std::vector<bool> held(const SassFunction& function, const std::vector<Loop>& loops) {
  std::vector<int> change(function.code.size() + 1);
  for (const Loop& loop : loops) {
    ++change[loop.first];
    --change[loop.last + 1];
  }
  std::vector<bool> is_held(function.code.size());
  int depth = 0;
  for (std::size_t i = 0; i < is_held.size(); ++i) {
    depth += change[i];
    is_held[i] = depth > 0;
  }
  return is_held;
}

void read_repeated(TensorReport& report, const SassFunction& function) {
  const std::vector<bool> is_repeated = held(function, loops_of(function, true));
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    if (is_repeated[i] && is_issued_by_one(function.code[i].mnemonic)) {
      ++report.repeated[function.code[i].mnemonic];
    }
  }
}

void read_uniform_moves(TensorReport& report, const SassFunction& function) {
  const std::vector<Loop> loops = loops_of(function, false);
  std::vector<Loop> of_products;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const Loop* const loop = is_product(function.code[i].mnemonic) ? innermost(function, loops, i) : nullptr;
    if (loop != nullptr) {
      of_products.push_back(*loop);
    }
  }
  const std::vector<bool> is_beside_product = held(function, of_products);
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    report.uniform_moves += is_beside_product[i] && opcode_of(function.code[i].mnemonic) == "R2UR" ? 1 : 0;
  }
}

void read_calls(TensorReport& report, const SassFunction& function) {
  for (const SassInstruction& instruction : function.code) {
    const std::string_view opcode = opcode_of(instruction.mnemonic);
    if (opcode == "CALL") {
      const bool traps = instruction.target >= 0 &&
                         opcode_of(function.code[static_cast<std::size_t>(instruction.target)].mnemonic) == "BPT";
      ++(traps ? report.trap_calls : report.other_calls);
    } else if (opcode == "BPT") {
      ++report.traps;
    }
  }
}

void read_instructions(TensorReport& report, const SassFunction& function) {
  for (const auto& [mnemonic, times] : function.by_mnemonic) {
    if (is_of_tensor_memory(mnemonic)) {
      report.instructions[mnemonic] = times;
    }
    if (names_its_group(mnemonic)) {
      (has_modifier(mnemonic, "2CTA") ? report.of_pairs : report.of_blocks) += times;
    }
    if (opcode_of(mnemonic) == "LDTM") {
      report.loaded_bytes += times * loaded_bytes_of(mnemonic);
    }
  }
  report.scale_copies = function.count("UTCCP");
  report.commits = function.count("UTCBAR");
}

/// 16 for "16dp256bit"; 0 where there is no number. No instruction has a number above 256.
std::int64_t number_at(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::clamp(value, 0, 256);
}

}  // namespace

std::int64_t loaded_bytes_of(std::string_view mnemonic) noexcept {
  std::int64_t lanes = 32;
  std::int64_t bits = 32;
  std::int64_t times = 1;
  for (std::size_t at = mnemonic.find('.'); at != std::string_view::npos; at = mnemonic.find('.', at + 1)) {
    const std::string_view word = mnemonic.substr(at + 1);
    if (const std::size_t data_path = word.substr(0, word.find('.')).find("dp"); data_path != std::string_view::npos) {
      lanes = number_at(word);
      bits = number_at(word.substr(data_path + 2));
    } else if (word.starts_with('x')) {
      times = number_at(word.substr(1));
    }
  }
  return lanes * bits / 8 * times;
}

std::optional<TensorReport> read_tensor_code(const SassFunction& function) {
  TensorReport report;
  read_instructions(report, function);
  if (report.instructions.empty()) {
    return std::nullopt;
  }
  read_repeated(report, function);
  read_uniform_moves(report, function);
  read_calls(report, function);
  return report;
}

}  // namespace thresher::arena
