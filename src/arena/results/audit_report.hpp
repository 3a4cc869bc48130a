#pragma once
/// Facts about a kernel that need no run.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace thresher::arena {

/// A kernel's use of Blackwell's tensor cores and tensor memory, counted in its code.
struct TensorReport {
  std::map<std::string, int> instructions;  ///< "UTCOMMA.2CTA.4X", "LDTM.x64", … → count
  std::map<std::string, int> repeated;      ///< those that the compiler put into a loop over the threads of a warp
  int scale_copies = 0;                     ///< UTCCP
  int commits = 0;                          ///< UTCBAR
  int of_pairs = 0;                         ///< products, copies, commits and allocations for a CTA pair: .2CTA
  int of_blocks = 0;                        ///< and for one block
  std::int64_t loaded_bytes = 0;            ///< by the LDTM of one warp
  int trap_calls = 0;                       ///< calls of a trap, as the allocator contains them
  int other_calls = 0;
  int traps = 0;
  int uniform_moves = 0;  ///< R2UR in the loops that hold products
};

/// All facts about one kernel that need no run.
struct AuditReport {
  std::string kernel;
  std::string arch;

  // From the compiler's report or the cubin.
  int registers = 0;  ///< per thread
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int declared_shared_bytes = 0;  ///< static and dynamic, per block

  // From the machine code; meaningless when `disassembled` is false.
  bool disassembled = false;
  std::map<std::string, int> matrix_instructions;  ///< "HGMMA.64x256x16.F32.BF16" → count in the code
  int local_accesses = 0;                          ///< LDL and STL
  int shared_accesses = 0;       ///< of data: by threads, copies or tensor cores; barriers do not count
  int tma_loads = 0;             ///< tensor and bulk copies into shared memory
  int tma_stores = 0;            ///< and out of it, reductions included
  int global_accesses = 0;       ///< loads and stores by threads, generic addresses included
  int wide_global_accesses = 0;  ///< at least 16 bytes per thread
  int barriers = 0;              ///< block and named barriers, mbarrier operations, cluster barriers
  int branches = 0;
  std::int64_t code_bytes = 0;
  std::optional<TensorReport> tensor{};  ///< only for kernels that use tensor memory

  [[nodiscard]] int matrix_count() const;
  /// Counts the matrix instructions whose mnemonic begins with `kind`.
  [[nodiscard]] int matrix_count(std::string_view kind) const;
  /// Share of the accesses of 16 bytes and more; 1 when threads access no global memory themselves.
  [[nodiscard]] double wide_share() const;
};

/// A kernel's report with its name and verdict.
struct AuditedKernel {
  AuditReport report;
  std::string title{};     ///< empty: unknown
  std::string sentence{};  ///< empty: none
};

}  // namespace thresher::arena
