#pragma once
/// A finding of the emulator: one defect of a kernel, with everything needed to see it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::emulator {

enum class FindingKind : std::uint8_t {
  deadlock,               ///< no thread can continue
  byte_count,             ///< a barrier's expected bytes differ from those delivered
  arrival_count,          ///< a barrier got more arrivals in a phase than initialised, or a wrong thread count
  barrier_misuse,         ///< used before init, its bytes overwritten, or a wait that can miss its phase
  refilled_while_read,    ///< written while TMA or wgmma may still read it
  read_before_full,       ///< read before the asynchronous copy into it is known to be complete
  accumulator_in_flight,  ///< accumulators or fragments touched before the wait that retires their wgmma
  tensor_in_flight,       ///< tensor memory touched while a product, a copy or a load may still use it
  missing_tensor_fence,   ///< tensor memory passed to another thread without tensor_memory::before_barrier or
                          ///< after_barrier
  tensor_allocation,      ///< tensor memory allocated or freed against its rules
  wrong_lanes,            ///< a warp loads lanes of tensor memory that belong to another quarter
  missing_wgmma_fence,    ///< registers written since the last wgmma::fence are used by a multiply
  missing_proxy_fence,    ///< ordinary stores read or overwritten by TMA or wgmma without fence::async_* in the writer
  race,                   ///< two ordinary accesses, one of them a write, without order
  out_of_bounds,
  misaligned,
  uninitialised,       ///< shared memory, output memory or accumulators read before they were written
  divergent,           ///< threads that must execute a call together do not
  register_budget,     ///< more registers than the multiprocessor or the block's pool has
  left_cluster_early,  ///< another block's shared memory used before that block started or after it ended
  unfinished_work,     ///< a block ended with copies or multiplies that no thread waited for
  earlier_grid,        ///< memory that an earlier grid may use, accessed before launch::wait_for_earlier_grids
  bad_argument,        ///< a call the hardware forbids: count, size, coordinate, descriptor
  bad_launch,          ///< a launch that the driver would reject
  failed_expectation,  ///< debug::expect
  kernel_exception,    ///< the kernel threw
};

/// "deadlock", "stage refilled while it is read", …
[[nodiscard]] std::string_view name(FindingKind kind) noexcept;

struct Finding {
  FindingKind kind{};
  std::string sentence;              ///< the event, the thread, the source line
  std::vector<std::string> details;  ///< the other access, the barrier's state, the waits of all threads
  std::uint64_t seed = 0;            ///< Schedule::from_seed(seed) reproduces it
};

/// Several lines: kind, sentence, details, seed.
[[nodiscard]] std::string to_string(const Finding& finding);

}  // namespace thresher::emulator
