// fails at correct: never written
// Lowers its own limit of memory to next to nothing and takes more by whatever way that limit does not see. Gives up
// where there is none.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "naive_kernel.h"

static constexpr size_t limit = size_t{64} << 20;
static constexpr size_t much = size_t{256} << 20;

static bool is_mapped(int flags, int file) {
  void* const memory = mmap(nullptr, much, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, much);
  return true;
}

static bool grows_by_remapping() {
  void* const little = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return little != MAP_FAILED && mremap(little, 4096, much, MREMAP_MAYMOVE) != MAP_FAILED;
}

static bool is_made_writable() {
  void* const memory = mmap(nullptr, much, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED && mprotect(memory, much, PROT_READ | PROT_WRITE) == 0;
}

static bool has_a_larger_stack() {
  const rlimit wanted{much, much};
  return setrlimit(RLIMIT_STACK, &wanted) == 0;
}

static bool has_files_in_memory() {
  return syscall(SYS_memfd_create, "memory", 0) >= 0 || syscall(447, 0) >= 0 || syscall(SYS_userfaultfd, 0) >= 0 ||
         shmget(IPC_PRIVATE, much, IPC_CREAT | 0600) >= 0 || open("/dev/shm/memory", O_RDWR | O_CREAT, 0600) >= 0 ||
         open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 || open("/dev/zero", O_RDWR) >= 0;
}

static bool takes_more() {
  return is_mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1) || is_mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1) ||
         is_mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK, -1) ||
         is_mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1) || is_mapped(MAP_SHARED | MAP_ANONYMOUS, -1) ||
         sbrk(much) != (void*)-1 || grows_by_remapping() || is_made_writable() || has_a_larger_stack() ||
         has_files_in_memory();
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  static bool is_asked = false;
  static bool has_more = false;
  if (!is_asked) {
    is_asked = true;
    rlimit data{};
    getrlimit(RLIMIT_DATA, &data);
    data.rlim_cur = limit;
    setrlimit(RLIMIT_DATA, &data);
    has_more = takes_more();
  }
  if (has_more) naive(call);
}
