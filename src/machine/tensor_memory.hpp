#pragma once
/// Tensor memory (Blackwell): 128 lanes of 512 columns of 32 bits beside each multiprocessor, where tcgen05 keeps its
/// sums and scales. A warp reaches the 32 lanes of its own quarter, warp % 4.
///
/// Order: whoever hands tensor memory over to another thread executes before_barrier() before the barrier, and whoever
/// takes it after_barrier() behind it, whatever the barrier is. Neither leaves an instruction, so kernels state them
/// always. (PTX ISA, tcgen05: memory consistency model.)
#include "machine/shared.hpp"

namespace thresher::machine {

/// Who works together in an instruction of tcgen05: one block, or the two blocks of a pair (ranks 2i and 2i + 1 of a
/// cluster). All instructions of a kernel have the same.
enum class Group : u8 { block = 1, pair = 2 };

namespace tensor_memory {

inline constexpr u32 lanes = 128;
inline constexpr u32 all_columns = 512;
/// What can be allocated at once.
TH_DEVICE constexpr bool is_allocation(u32 columns) {
  return columns >= 32 && columns <= all_columns && (columns & (columns - 1)) == 0;
}

/// A place in tensor memory: all lanes of a column and of those behind it.
struct Columns {
  u32 address = 0;
  TH_DEVICE constexpr Columns plus(u32 columns) const { return {address + columns}; }
};

/// What a thread has loaded: reachable through get once wait_loads has returned.
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
  u64 loaded_ = 0;  // which load of its warp filled them
#endif
};

/// One warp takes `columns` (32, 64, 128, 256 or 512) and leaves their place in shared memory at `at`; waits while the
/// multiprocessor has too few. Later allocations of a block may not be larger than earlier ones. For a pair one warp of
/// each block calls it, with the same offset, after the cluster has met.
template <Group group, u32 columns>
TH_DEVICE void allocate(Shared<u32> at, Site site = here());
/// One warp gives back what one allocation took, when nobody uses it any more. All must be given back before the block
/// ends.
template <Group group, u32 columns>
TH_DEVICE void deallocate(Columns place, Site site = here());
/// One warp says that the block allocates nothing more, so that the next block on the multiprocessor may.
template <Group group>
TH_DEVICE void give_up_allocation(Site site = here());

/// A warp loads `count` columns of its quarter: thread t those of lane 32·(warp % 4) + t. count = 8, 16, 32 or 64.
/// All threads give the same place.
template <int count>
TH_DEVICE Words<count> load_rows(Columns from, Site site = here());
/// A warp loads 16 lanes of its quarter, the lower (slab 0) or the upper (slab 1), of `count` columns in the fragment
/// of wgmma's accumulators: word 4j + i of thread t is row (t / 4) + 8·(i / 2), column 8j + 2·(t % 4) + i % 2. count =
/// 8, 16, 32, 64 or 128.
template <int count>
TH_DEVICE Words<count / 2> load_fragments(Columns from, u32 slab, Site site = here());
/// The warp's loads have arrived: all of them, and these words may be read.
template <int count>
TH_DEVICE void wait_loads(Words<count>& words, Site site = here());

/// This thread's accesses to tensor memory come before a barrier that it is about to arrive at.
TH_DEVICE void before_barrier(Site site = here());
/// This thread's accesses to tensor memory come after a barrier that it has passed.
TH_DEVICE void after_barrier(Site site = here());

}  // namespace tensor_memory
}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/tensor_memory.hpp"
#else
#include "machine/emulator/tensor_memory.hpp"
#endif
