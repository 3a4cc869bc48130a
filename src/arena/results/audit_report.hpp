#pragma once
/// What is known of a kernel without running it.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace thresher::arena {

/// What a kernel does with Blackwell's tensor cores and tensor memory, as it stands in the code.
struct TensorReport {
  std::map<std::string, int> instructions;  ///< "UTCOMMA.2CTA.4X", "LDTM.x64", … → how often
  std::map<std::string, int> repeated;      ///< those that the compiler put into a loop over the threads of a warp
  int scale_copies = 0;                     ///< UTCCP
  int commits = 0;                          ///< UTCBAR
  int of_pairs = 0;                         ///< products, copies, commits and allocations of two blocks: .2CTA
  int of_blocks = 0;                        ///< and of one
  std::int64_t loaded_bytes = 0;            ///< by the LDTM of one warp
  int trap_calls = 0;                       ///< calls of a trap, as the allocator has them
  int other_calls = 0;
  int traps = 0;
  int uniform_moves = 0;  ///< R2UR in the loops that hold products
};

/// Everything that is known of one kernel without running it.
struct AuditReport {
  std::string kernel;
  std::string arch;

  // From the compiler's report or the cubin.
  int registers = 0;  ///< a thread
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int declared_shared_bytes = 0;  ///< static and dynamic, a block

  // From the machine code; meaningless when `disassembled` is false.
  bool disassembled = false;
  std::map<std::string, int> matrix_instructions;  ///< "HGMMA.64x256x16.F32.BF16" → how often it stands in the code
  int local_accesses = 0;                          ///< LDL and STL
  int shared_accesses = 0;       ///< of data: by threads, copies or matrix unit; barriers do not count
  int tma_loads = 0;             ///< tensor and bulk copies into shared memory
  int tma_stores = 0;            ///< and out of it, reductions included
  int global_accesses = 0;       ///< loads and stores by threads, generic addresses included
  int wide_global_accesses = 0;  ///< 16 bytes a thread, or 32
  int barriers = 0;              ///< block and named barriers, mbarrier operations, cluster barriers
  int branches = 0;
  std::int64_t code_bytes = 0;
  std::optional<TensorReport> tensor{};  ///< of kernels that use tensor memory

  [[nodiscard]] int matrix_count() const;
  /// Counts the matrix instructions whose mnemonic begins with `kind`.
  [[nodiscard]] int matrix_count(std::string_view kind) const;
  /// Share of the accesses of 16 bytes and more; 1 when threads access no global memory themselves.
  [[nodiscard]] double wide_share() const;
};

/// A kernel's report with what it is called and what was said of it.
struct AuditedKernel {
  AuditReport report;
  std::string title{};     ///< empty: not told
  std::string sentence{};  ///< empty: not told
};

}  // namespace thresher::arena
