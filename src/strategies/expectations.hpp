#pragma once
/// What a strategy promises of the machine code of its kernels.
#include <cstdint>
#include <optional>
#include <string>

namespace thresher::strategies {

/// What must hold of the instructions of Blackwell's tensor cores (tcgen05) as they stand in the code: one in a loop
/// counts once. An empty optional expects nothing.
struct TensorExpectations {
  std::optional<int> products;               ///< of `matrix_kind`, exactly: of one K step where its loop stays a loop
  std::optional<int> scale_copies;           ///< UTCCP, exactly, as above; 0 for kinds without scales
  std::optional<bool> is_pair;               ///< two blocks issue as one: .2CTA on everything; false: on nothing
  int min_commits = 0;                       ///< UTCBAR, at least one for each ring of barriers that products complete
  std::optional<std::int64_t> loaded_bytes;  ///< that the LDTM of one warp (32 lanes) bring from tensor memory, exactly
  bool operator==(const TensorExpectations&) const = default;
};

/// What must hold of a kernel's machine code, which the gate `audited` reads. An empty optional expects nothing.
struct Expectations {
  std::string matrix_kind{};        ///< "HGMMA", "QGMMA", "UTCOMMA": present; empty expects none in particular
  int min_matrix_instructions = 0;  ///< of that kind, what one stage of the tile implies
  bool uses_shared_memory = true;   ///< what is declared is used, and something is
  std::optional<int> max_registers{};
  std::optional<int> max_branches{};
  std::optional<std::int64_t> max_code_bytes{};
  std::optional<double> min_wide_share{};
  int min_tma_loads = 0;
  int min_tma_stores = 0;
  int max_local_bytes = 0;  ///< stack, a thread
  int max_spill_bytes = 0;  ///< stores and loads together
  TensorExpectations tensor{};
  bool operator==(const Expectations&) const = default;
};

}  // namespace thresher::strategies
