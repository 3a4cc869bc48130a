#pragma once
/// Gate "audited" in a tournament.
#include <memory>

#include "arena/audit/disassembler.hpp"
#include "arena/gates/match.hpp"

namespace thresher::arena {

/// Reads the machine code of every kernel that the contestant runs on the suite's problems. It always reads the
/// compiler's report, and the disassembly when one of `tools` exists.
[[nodiscard]] std::unique_ptr<Gate> make_audited_gate(Disassembler tools = find_disassembler());

}  // namespace thresher::arena
