#pragma once
/// Tensor memory (Blackwell): 128 lanes of 512 columns of 32 bits per multiprocessor, which hold tcgen05's accumulators
/// and scales. A warp accesses the 32 lanes of its own quarter, warp % 4.
///
/// Order: a thread that passes tensor memory to another executes before_barrier() before the barrier, and the other
/// executes after_barrier() behind it, for any kind of barrier. Neither generates an instruction, so kernels always
/// state them. (PTX ISA, tcgen05: memory consistency model.)
#include "machine/shared.hpp"

namespace thresher::machine {

/// The blocks that execute a tcgen05 instruction: one block, or the two blocks of a CTA pair (ranks 2i and 2i + 1 of a
/// cluster). All instructions of a kernel have the same group.
enum class Group : u8 { block = 1, pair = 2 };

namespace tensor_memory {

inline constexpr u32 lanes = 128;
inline constexpr u32 all_columns = 512;
/// The sizes that one allocation may have.
TH_DEVICE constexpr bool is_allocation(u32 columns) {
  return columns >= 32 && columns <= all_columns && (columns & (columns - 1)) == 0;
}

/// An address in tensor memory: all lanes of a column and of those behind it.
struct Columns {
  u32 address = 0;
  TH_DEVICE constexpr Columns plus(u32 columns) const { return {address + columns}; }
};

/// The words of a thread's load: readable through get after wait_loads.
template <int count>
class Words {
 public:
  static constexpr int size = count;
  TH_DEVICE u32 get(int i, Site site = here()) const;
  TH_DEVICE float get_float(int i, Site site = here()) const;

 private:
  friend struct WordsAccess;
  u32 word_[count];
#if !TH_GPU
  u64 loaded_ = 0;  // the number of the load of its warp that filled them
#endif
};

/// One warp allocates `columns` (32, 64, 128, 256 or 512) and stores their address in shared memory at `at`. It waits
/// while the multiprocessor has too few. Later allocations of a block must not be larger than earlier ones. For a pair
/// one warp of each block calls it, with the same offset, after a cluster barrier.
template <Group group, u32 columns>
TH_DEVICE void allocate(Shared<u32> at, Site site = here());
/// One warp frees one allocation, when no thread uses it any more. All must be freed before the block ends.
template <Group group, u32 columns>
TH_DEVICE void deallocate(Columns place, Site site = here());
/// One warp declares that the block allocates no more, so that the next block on the multiprocessor may.
template <Group group>
TH_DEVICE void give_up_allocation(Site site = here());

/// A warp loads `count` columns of its quarter: thread t those of lane 32·(warp % 4) + t. count = 8, 16, 32 or 64. All
/// threads pass the same address.
template <int count>
TH_DEVICE Words<count> load_rows(Columns from, Site site = here());
/// A warp loads 16 lanes of its quarter, the lower (slab 0) or the upper (slab 1), of `count` columns. The layout is
/// that of wgmma's accumulators: word 4j + i of thread t is row (t / 4) + 8·(i / 2), column 8j + 2·(t % 4) + i % 2.
/// count = 8, 16, 32, 64 or 128.
template <int count>
TH_DEVICE Words<count / 2> load_fragments(Columns from, u32 slab, Site site = here());
/// Waits for all of the warp's loads; these words may then be read.
template <int count>
TH_DEVICE void wait_loads(Words<count>& words, Site site = here());

/// Orders this thread's accesses to tensor memory before a barrier that it is about to arrive at.
TH_DEVICE void before_barrier(Site site = here());
/// Orders this thread's accesses to tensor memory after a barrier that it has passed.
TH_DEVICE void after_barrier(Site site = here());

}  // namespace tensor_memory
}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/tensor_memory.hpp"
#else
#include "machine/emulator/tensor_memory.hpp"
#endif
