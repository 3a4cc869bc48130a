#pragma once
/// Parts of attention's Operation (operation.cpp), each in a file of its own.
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// suite.cpp
void add_attention_problems(const ProblemTable& tables, std::vector<Problem>& problems);
[[nodiscard]] std::vector<ProblemOption> attention_problem_options();
/// calibration.cpp
[[nodiscard]] std::vector<CalibrationCase> attention_calibration_cases();
/// emulated.cpp
[[nodiscard]] const EmulatedOperation* attention_emulation();

}  // namespace thresher::arena
