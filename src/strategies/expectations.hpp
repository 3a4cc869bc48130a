#pragma once
/// A strategy's expectations of the machine code of its kernels.
#include <cstdint>
#include <optional>
#include <string>

namespace thresher::strategies {

/// Expectations of the instructions of Blackwell's tensor cores (tcgen05). They count instructions in the code: one in
/// a loop counts once. An empty optional expects nothing.
struct TensorExpectations {
  std::optional<int> products;               ///< of `matrix_kind`, exactly; of one K step if its loop is not unrolled
  std::optional<int> scale_copies;           ///< UTCCP, exactly, as above; 0 for kinds without scales
  std::optional<bool> is_pair;               ///< CTA pairs, .2CTA on everything; false: on nothing
  int min_commits = 0;                       ///< UTCBAR, at least one per ring of barriers that products complete
  std::optional<std::int64_t> loaded_bytes;  ///< by the LDTM of one warp (32 lanes) from tensor memory, exactly
  bool operator==(const TensorExpectations&) const = default;
};

/// Expectations of a kernel's machine code, which the gate `audited` checks. An empty optional expects nothing.
struct Expectations {
  std::string matrix_kind{};        ///< "HGMMA", "QGMMA", "UTCOMMA": present; empty expects none in particular
  int min_matrix_instructions = 0;  ///< of that kind, as one pipeline stage of the tile implies
  bool uses_shared_memory = true;   ///< all declared shared memory is used, and there is some
  std::optional<int> max_registers{};
  std::optional<int> max_branches{};
  std::optional<std::int64_t> max_code_bytes{};
  std::optional<double> min_wide_share{};
  int min_tma_loads = 0;
  int min_tma_stores = 0;
  int max_local_bytes = 0;  ///< stack per thread
  int max_spill_bytes = 0;  ///< stores and loads together
  TensorExpectations tensor{};
  bool operator==(const Expectations&) const = default;
};

}  // namespace thresher::strategies
