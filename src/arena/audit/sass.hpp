#pragma once
/// Machine code as cuobjdump and nvdisasm print it, counted by instruction.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::arena {

/// One instruction where it stands in the code.
struct SassInstruction {
  std::string mnemonic;         ///< "BRA.U.ANY"
  bool is_conditional = false;  ///< has a predicate, or is a branch that tests one
  int target = -1;              ///< the index that a branch or call leads to; −1 unknown or none
};

/// One kernel of a disassembly.
struct SassFunction {
  std::string name;  ///< as the cubin calls it (mangled)
  std::string arch;  ///< "sm_90a"; empty when the listing does not say
  int instructions = 0;
  int highest_register = -1;                 ///< of R0, R1, …; −1 when none is named
  std::map<std::string, int> by_mnemonic{};  ///< "HGMMA.64x256x16.F32" → how often it stands in the code
  std::vector<SassInstruction> code{};       ///< in order

  /// The number of instructions whose first word is `opcode` ("LDG" counts LDG.E.128 too).
  [[nodiscard]] int count(std::string_view opcode) const;
  /// The number of those that also have the word `modifier` ("128").
  [[nodiscard]] int count(std::string_view opcode, std::string_view modifier) const;
};

/// Every function in a listing of `cuobjdump -sass` or `nvdisasm -c`, in order. Lines that are no instructions are
/// skipped; a listing without any function gives an empty list.
[[nodiscard]] std::vector<SassFunction> parse_sass(std::string_view listing);

/// The first word of `mnemonic`: "LDG" for "LDG.E.128".
[[nodiscard]] std::string_view opcode_of(std::string_view mnemonic) noexcept;

/// Whether one of the dot-separated words of `mnemonic` after the first is `modifier`.
[[nodiscard]] bool has_modifier(std::string_view mnemonic, std::string_view modifier) noexcept;

/// The resources of one function, as `cuobjdump -res-usage` prints them.
struct SassResources {
  std::string name;
  int registers = 0;
  int stack_bytes = 0;
  int shared_bytes = 0;  ///< static; on Hopper and later 1024 of them are the system's and are not counted here
  int local_bytes = 0;
};
[[nodiscard]] std::vector<SassResources> parse_resource_usage(std::string_view listing);

}  // namespace thresher::arena
