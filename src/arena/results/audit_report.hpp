#pragma once
/// What is known of a kernel without running it.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace thresher::arena {

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
  int wide_global_accesses = 0;  ///< 16 bytes a thread
  int barriers = 0;              ///< block and named barriers, mbarrier operations, cluster barriers
  int branches = 0;
  std::int64_t code_bytes = 0;

  [[nodiscard]] int matrix_count() const;
  /// Counts the matrix instructions whose mnemonic begins with `kind`.
  [[nodiscard]] int matrix_count(std::string_view kind) const;
  /// Share of the 16-byte accesses; 1 when threads access no global memory themselves.
  [[nodiscard]] double wide_share() const;
};

/// A kernel's report with what it is called and what was said of it.
struct AuditedKernel {
  AuditReport report;
  std::string title{};     ///< empty: not told
  std::string sentence{};  ///< empty: not told
};

}  // namespace thresher::arena
