#pragma once
/// The calls of the vocabulary's bodies: one function per operation of a GPU thread. Addresses are those of the
/// handles.
#include <cstdint>

#include "machine/types.hpp"

namespace thresher::emulator::calls {

using machine::Site;

// --- thread indices --------------------------------------------------------------------------------------------------
struct Index {
  std::uint32_t x, y, z;
};
[[nodiscard]] std::uint32_t thread_index();
[[nodiscard]] std::uint32_t thread_count();
[[nodiscard]] Index block_index();
[[nodiscard]] Index block_count();
[[nodiscard]] std::uint32_t shared_base();
[[nodiscard]] std::uint32_t shared_bytes();
[[nodiscard]] std::uint32_t cluster_rank();
[[nodiscard]] std::uint32_t cluster_size();
[[nodiscard]] std::uint64_t clock_cycles();

// --- memory ----------------------------------------------------------------------------------------------------------
enum class Space : std::uint8_t { own, cluster };  ///< whose shared memory an address may refer to
enum class GlobalRead : std::uint8_t { plain, read_only, acquire };
enum class GlobalWrite : std::uint8_t { plain, release };
enum class Atomic : std::uint8_t { add_u32, add_u64, add_f32, exchange, compare_exchange };

void shared_read(std::uint32_t address, void* value, std::uint32_t bytes, Space space, Site site);
void shared_write(std::uint32_t address, const void* value, std::uint32_t bytes, Space space, Site site);
void shared_atomic(std::uint32_t address, void* value, std::uint32_t bytes, Atomic what, Site site);
void global_read(std::uint64_t address, void* value, std::uint32_t bytes, GlobalRead how, Site site);
void global_write(std::uint64_t address, const void* value, std::uint32_t bytes, GlobalWrite how, Site site);
/// `value` is the operand and becomes the previous value; `expected` only for compare_exchange.
void global_atomic(std::uint64_t address, void* value, const void* expected, std::uint32_t bytes, Atomic what,
                   bool acquire_release, Site site);

void fence_async(Site site);
void fence_barrier_init(Site site);

// --- barriers --------------------------------------------------------------------------------------------------------
void barrier_init(std::uint32_t address, std::uint32_t arrivals, Site site);
void barrier_arrive(std::uint32_t address, std::uint32_t arrivals, std::uint32_t expected_bytes, Space space,
                    Site site);
void barrier_wait(std::uint32_t address, std::uint32_t parity, Site site);

void block_sync(std::uint32_t id, std::uint32_t threads, bool waits, Site site);
void cluster_arrive(bool releases, Site site);
void cluster_wait(Site site);
[[nodiscard]] std::uint32_t cluster_map(std::uint32_t address, std::uint32_t rank);
void store_async(std::uint32_t address, const void* value, std::uint32_t bytes, std::uint32_t barrier, Site site);

void earlier_grids_wait(Site site);
void dependents_release(Site site);
void registers_change(std::uint32_t count, bool increase, Site site);

// --- warps -----------------------------------------------------------------------------------------------------------
/// Synchronises with the other lanes of `mask`. `words[lane]` is each lane's word (0 for absent lanes) and stays so
/// until the next exchange.
const std::uint64_t* warp_exchange(const char* call, std::uint64_t word, std::uint32_t mask, bool orders, Site site);
[[nodiscard]] std::uint32_t lane();
/// ldmatrix and stmatrix need 16-byte aligned rows inside shared memory.
void check_matrix_row(std::uint32_t address, Site site);

// --- asynchronous copies ---------------------------------------------------------------------------------------------
void copy_async(std::uint32_t shared_address, std::uint64_t global_address, std::uint32_t bytes, bool valid, Site site);
void copy_async_commit(Site site);
void copy_async_wait(std::uint32_t pending, Site site);
void copy_async_arrive(std::uint32_t barrier, Site site);

void tma_load(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at, int rank,
              Site site);
void tma_load_multicast(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at,
                        int rank, std::uint16_t mask, Site site);
/// Completes on the barrier of the CTA pair's even block.
void tma_load_pair(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at, int rank,
                   Site site);
void tma_load_pair_multicast(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at,
                             int rank, std::uint16_t mask, Site site);
void tma_store(const void* map, std::uint32_t source, const std::int32_t* at, int rank, Site site);
void bulk_load(std::uint32_t destination, std::uint64_t source, std::uint32_t bytes, std::uint32_t barrier, Site site);
void bulk_load_multicast(std::uint32_t destination, std::uint64_t source, std::uint32_t bytes, std::uint32_t barrier,
                         std::uint16_t mask, Site site);
void bulk_prefetch(std::uint64_t source, std::uint32_t bytes, Site site);
void tma_commit(Site site);
/// Waits until at most `pending` groups have not finished reading, or if `written`, writing.
void tma_wait(std::uint32_t pending, bool written, Site site);

// --- names -----------------------------------------------------------------------------------------------------------
void set_role(const char* name, std::uint32_t index);
void name_barrier(std::uint32_t address, const char* name, std::uint32_t index);
void name_shared(std::uint32_t address, std::uint32_t bytes, const char* name, std::uint32_t index);
void expect(bool condition, const char* sentence, Site site);

}  // namespace thresher::emulator::calls
