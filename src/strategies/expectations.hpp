#pragma once
/// What a strategy promises of the machine code of its kernels.
#include <cstdint>
#include <optional>
#include <string>

namespace thresher::strategies {

/// What must hold of a kernel's machine code, which the gate `audited` reads. An empty optional expects nothing.
struct Expectations {
  std::string matrix_kind;          ///< "HGMMA", "QGMMA", "UTCOMMA": present; empty expects none in particular
  int min_matrix_instructions = 0;  ///< of that kind, what one stage of the tile implies
  bool uses_shared_memory = true;   ///< what is declared is used, and something is
  std::optional<int> max_registers;
  std::optional<int> max_branches;
  std::optional<std::int64_t> max_code_bytes;
  std::optional<double> min_wide_share;
  int min_tma_loads = 0;
  int min_tma_stores = 0;
  int max_local_bytes = 0;  ///< stack, a thread
  int max_spill_bytes = 0;  ///< stores and loads together
  bool operator==(const Expectations&) const = default;
};

}  // namespace thresher::strategies
