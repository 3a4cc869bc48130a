#pragma once
/// The audit's expectations for each strategy, and those that a pitch may set instead.
#include <string>
#include <string_view>

#include "arena/audit/audit.hpp"

namespace thresher::arena {

/// Expectations for any kernel, even an unknown one: no spills, no local memory, declared shared memory used.
[[nodiscard]] AuditExpectations expected_of_any_kernel();

/// Changes one expectation by name, as a pitch's [audit] table or the command line writes it. The names: "matrix" (a
/// kind of instruction), "min_matrix_instructions", "shared_memory" (true or false), "max_registers", "max_branches",
/// "max_code_bytes", "min_wide_share", "min_tma_loads", "min_tma_stores", "max_local_bytes", "max_spill_bytes"; for
/// Blackwell's tensor cores "tensor_products", "scale_copies", "pair" (true or false), "min_commits",
/// "tensor_loaded_bytes". Throws Error(invalid_argument) naming the key or the value.
void set_expectation(AuditExpectations& expectations, std::string_view key, std::string_view value);
/// The same, but returns the end of the sentence, "is \"x\": …", for a caller that names the key; empty when it was
/// changed.
[[nodiscard]] std::string try_expectation(AuditExpectations& expectations, std::string_view key,
                                          std::string_view value);

}  // namespace thresher::arena
