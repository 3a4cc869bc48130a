#pragma once
/// Whether a piece of code can stand behind a switch, as scripts/plant_faults.py puts it there: (is_on ? (after) :
/// (before)) of an expression, and if (is_on) { after } else { before } of statements, which have a semicolon. Looks at
/// code as clang-format leaves it, where blanks stand around each operator with two operands and around no other.
#include <string>
#include <string_view>

namespace thresher::mutants {

/// Why `before`, which `text` has at `place`, and `after` cannot stand behind a switch: empty where they can.
std::string misfit(std::string_view text, std::size_t place, std::string_view before, std::string_view after);

}  // namespace thresher::mutants
