#pragma once
/// Parts of attention's Operation (operation.cpp), each in a file of its own.
#include "arena/attention/task.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// arguments.cpp
[[nodiscard]] std::vector<Argument> attention_arguments(const AttentionTask& task, const FindTensor& find);
/// "bf16*fp8_e4m3->bf16": of q, of k and v, and of o.
[[nodiscard]] std::string attention_formats(const AttentionTask& task);
/// suite.cpp
void add_attention_problems(const ProblemTable& tables, std::vector<Problem>& problems);
[[nodiscard]] std::vector<ProblemOption> attention_problem_options();
/// calibration.cpp
[[nodiscard]] std::vector<CalibrationCase> attention_calibration_cases();
/// emulated.cpp
[[nodiscard]] const EmulatedOperation* attention_emulation();

}  // namespace thresher::arena
