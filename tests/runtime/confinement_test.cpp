// What a confined process is denied, each thing tried, and what must go on working.
#include "runtime/confinement.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "support/scratch_folder.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

/// How a child ends in which `body` runs confined: it says 0 when all is as it should be, else which line is not.
int status_of_confined(const Confinement& confinement, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)confine_self(confinement);
    ::_exit(body());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

/// The line that is not as it should be, modulo 256; 0 when all is.
int complaint_of_confined(const Confinement& confinement, const std::function<int()>& body) {
  const int status = status_of_confined(confinement, body);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define MUST(condition)        \
  if (!(condition)) {          \
    return __LINE__ % 255 + 1; \
  }
#define DENIED(call) MUST((call) < 0 && (errno == EPERM || errno == EACCES))

/// Whether a kind of protection is to be had here.
std::string obstacle(const std::string& what) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const Protection& protection : confine_self({}).protections) {
      if (protection.what == what && !protection.in_force) {
        (void)!::write(pipe[1], protection.sentence.data(), protection.sentence.size());
      }
    }
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::array<char, 512> text{};
  const ssize_t got = ::read(pipe[0], text.data(), text.size());
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

#define NEEDS(what)                                                   \
  if (const std::string missing = obstacle(what); !missing.empty()) { \
    GTEST_SKIP() << missing;                                          \
  }

TEST(Confinement, SaysOfEveryProtectionWhatItDeniesOrWhyThereIsNone) {
  EXPECT_EQ(complaint_of_confined({}, [] { return 0; }), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Confined confined = confine_self({});
    bool good = confined.protections.size() == PreparedConfinement::steps;
    for (const Protection& protection : confined.protections) {
      good = good && !protection.what.empty() && !protection.sentence.empty();
      good = good && (protection.in_force || confined.missing().find(protection.sentence) != std::string::npos);
    }
    ::_exit(good && confined.whole() == confined.missing().empty() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Confinement, ThereIsNoNetwork) {
  NEEDS("system calls");
  const auto body = [] {
    std::array<int, 2> pair{};
    DENIED(::socket(AF_INET, SOCK_STREAM, 0));
    DENIED(::socket(AF_INET6, SOCK_DGRAM, 0));
    DENIED(::socket(AF_UNIX, SOCK_STREAM, 0));
    DENIED(::socket(AF_NETLINK, SOCK_RAW, 0));
    DENIED(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()));
    DENIED(::syscall(SYS_io_uring_setup, 1, nullptr));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({}, body), 0);
}

TEST(Confinement, OtherProcessesAreOutOfReach) {
  NEEDS("system calls");
  const auto body = [] {
    const pid_t parent = ::getppid();
    char byte = 0;
    iovec here{&byte, 1};
    iovec there{&byte, 1};
    cpu_set_t processors{};
    CPU_SET(0, &processors);
    rlimit limit{};
    DENIED(::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr));
    DENIED(::process_vm_readv(parent, &here, 1, &there, 1, 0));
    DENIED(::process_vm_writev(parent, &here, 1, &there, 1, 0));
    DENIED(::open(("/proc/" + std::to_string(parent) + "/mem").c_str(), O_RDWR));
    DENIED(::kill(parent, 0));
    DENIED(::kill(parent, SIGCONT));
    DENIED(::kill(0, SIGCONT));
    DENIED(::kill(-1, SIGCONT));
    DENIED(::syscall(SYS_tkill, parent, SIGCONT));
    DENIED(::syscall(SYS_tgkill, parent, parent, SIGCONT));
    DENIED(::syscall(SYS_rt_sigqueueinfo, parent, SIGCONT, nullptr));
    DENIED(::syscall(SYS_pidfd_open, parent, 0));
    DENIED(::sched_setaffinity(parent, sizeof processors, &processors));
    DENIED(::setpriority(PRIO_PROCESS, static_cast<id_t>(parent), 10));
    DENIED(::setpriority(PRIO_USER, 0, 10));
    DENIED(::syscall(SYS_ioprio_set, 1, parent, 0));
    DENIED(::prlimit(parent, RLIMIT_CPU, nullptr, &limit));
    DENIED(::fcntl(STDERR_FILENO, F_SETOWN, parent));
    DENIED(::ioctl(STDERR_FILENO, TIOCSTI, "x"));
    DENIED(::setsid());
    DENIED(::setpgid(0, 0));
    DENIED(::prctl(PR_SET_PDEATHSIG, 0));
    DENIED(::prctl(PR_SET_CHILD_SUBREAPER, 1));
    DENIED(::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({}, body), 0);
}

TEST(Confinement, TheMachineIsOutOfReach) {
  NEEDS("system calls");
  const auto body = [] {
    DENIED(::unshare(CLONE_NEWUSER));
    DENIED(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    DENIED(::syscall(SYS_mount, "none", "/", "tmpfs", 0, nullptr));
    DENIED(::syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    DENIED(::syscall(SYS_bpf, 0, nullptr, 0));
    DENIED(::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
    DENIED(::syscall(SYS_userfaultfd, 0));
    DENIED(::inotify_init1(0));
    MUST(::syscall(SYS_clone3, nullptr, 0) < 0 && errno == ENOSYS);
    MUST(::syscall(SYS_getpid | 0x40000000) < 0 && errno == ENOSYS);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({}, body), 0);
  EXPECT_EQ(complaint_of_confined({.may_fork = true, .may_exec = true}, body), 0);
}

TEST(Confinement, ProcessesAndProgramsAreStartedOnlyWhereTheyMay) {
  NEEDS("system calls");
  const auto denied = [] {
    DENIED(::fork());
    DENIED(::syscall(SYS_vfork));
    DENIED(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    DENIED(::execl("/bin/true", "true", nullptr));
    pid_t child = 0;
    std::string word = "true";
    std::array<char*, 2> arguments{word.data(), nullptr};
    MUST(::posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments.data(), nullptr) == EPERM);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({}, denied), 0);
  const auto permitted = [] {
    const pid_t child = ::fork();
    MUST(child >= 0);
    if (child == 0) {
      ::execl("/bin/true", "true", nullptr);
      ::_exit(1);
    }
    int status = -1;
    MUST(::waitpid(child, &status, 0) == child && status == 0);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.may_fork = true, .may_exec = true}, permitted), 0);
}

TEST(Confinement, FilesAreWrittenOnlyInItsOwnFolders) {
  NEEDS("files");
  const ScratchFolder own;
  const ScratchFolder others;
  std::ofstream(others / "secret") << "told to nobody";
  const auto body = [&] {
    const std::string secret = (others / "secret").string();
    DENIED(::open((others / "new").c_str(), O_WRONLY | O_CREAT, 0600));
    DENIED(::open(secret.c_str(), O_RDONLY));
    DENIED(::open(secret.c_str(), O_RDONLY | O_TRUNC));
    DENIED(::truncate(secret.c_str(), 0));
    DENIED(::unlink(secret.c_str()));
    DENIED(::mkdir((others / "folder").c_str(), 0700));
    DENIED(::symlink("x", (others / "link").c_str()));
    MUST(::link(secret.c_str(), (own / "link").c_str()) < 0);
    MUST(::rename(secret.c_str(), (own / "moved").c_str()) < 0);
    DENIED(::open("/tmp/thresher-must-not-be", O_WRONLY | O_CREAT, 0600));
    DENIED(::open("/dev/shm/thresher-must-not-be", O_RDWR | O_CREAT, 0600));
    DENIED(::open("/etc/passwd", O_RDONLY));
    DENIED(::open(("/proc/" + std::to_string(::getppid()) + "/environ").c_str(), O_RDONLY));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.writable = {own.path()}}, body), 0);
  EXPECT_EQ(fs::file_size(others / "secret"), 14U);
  EXPECT_FALSE(fs::exists(others / "new"));
}

TEST(Confinement, AttributesOfFilesStayAsTheyAre) {
  NEEDS("system calls");
  const ScratchFolder own;
  std::ofstream(own / "file") << "x";
  const auto body = [&] {
    const std::string file = (own / "file").string();
    DENIED(::chmod(file.c_str(), 0777));
    DENIED(::chown(file.c_str(), ::getuid(), ::getgid()));
    DENIED(::utimensat(AT_FDCWD, file.c_str(), nullptr, 0));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.writable = {own.path()}}, body), 0);
}

TEST(Confinement, ReadableFoldersAreReadAndNotWritten) {
  NEEDS("files");
  const ScratchFolder shown;
  std::ofstream(shown / "file") << "x";
  const auto body = [&] {
    MUST(::open((shown / "file").c_str(), O_RDONLY) >= 0);
    DENIED(::open((shown / "file").c_str(), O_WRONLY));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.readable = {shown.path(), "/no/such/folder"}}, body), 0);
}

TEST(Confinement, AProgramThatItWroteItselfIsNotStarted) {
  NEEDS("files");
  const ScratchFolder own;
  fs::copy_file("/bin/true", own / "program");
  const auto body = [&] {
    DENIED(::execl((own / "program").c_str(), "program", nullptr));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.writable = {own.path()}, .may_exec = true}, body), 0);
}

/// As CUDA's driver does to open a GPU.
TEST(Confinement, WhoDrivesADeviceNamesItsThreadsListensAndMakesFilesInMemory) {
  NEEDS("files");
  NEEDS("system calls");
  const auto names_another_thread = [](const char* place) {
    std::atomic<pid_t> number = 0;
    std::atomic<bool> is_named = false;
    std::thread thread([&] {
      number = static_cast<pid_t>(::syscall(SYS_gettid));
      is_named.wait(false);
    });
    while (number == 0) {
      std::this_thread::yield();
    }
    const std::string path = place + std::to_string(number) + "/comm";
    const int file = ::open(path.c_str(), O_WRONLY);
    const bool succeeded = file >= 0 && ::write(file, "name", 4) == 4;
    is_named = true;
    is_named.notify_one();
    thread.join();
    return succeeded;
  };
  sockaddr_un nameless{};  // in no folder: the kernel finds a name
  nameless.sun_family = AF_UNIX;
  const auto* const address = reinterpret_cast<const sockaddr*>(&nameless);
  constexpr socklen_t only_the_family = sizeof(sa_family_t);
  const auto without = [&] {
    MUST(!names_another_thread("/proc/self/task/"));
    DENIED(::memfd_create("file", 0));
    DENIED(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    return 0;
  };
  const auto with = [&] {
    MUST(names_another_thread("/proc/self/task/"));
    MUST(names_another_thread(("/proc/" + std::to_string(::getpid()) + "/task/").c_str()));
    MUST(::memfd_create("file", MFD_CLOEXEC) >= 0);
    const int listens = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    MUST(listens >= 0 && ::bind(listens, address, only_the_family) == 0 && ::listen(listens, 1) == 0);
    std::array<int, 2> pair{};
    DENIED(::connect(listens, address, only_the_family));
    DENIED(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()));
    DENIED(::socket(AF_UNIX, SOCK_DGRAM, 0));  // which would send without being connected
    DENIED(::socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0));
    DENIED(::socket(AF_INET, SOCK_SEQPACKET, 0));
    DENIED(::socket(AF_NETLINK, SOCK_RAW, 0));
    DENIED(::open("/proc/self/coredump_filter", O_WRONLY));
    DENIED(::open(("/proc/" + std::to_string(::getppid()) + "/comm").c_str(), O_WRONLY));
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.may_fork = true, .may_exec = true}, without), 0);
  EXPECT_EQ(complaint_of_confined({.devices = {"/dev/null"}, .may_fork = true, .may_exec = true}, with), 0);
}

TEST(Confinement, LimitsHold) {
  const ScratchFolder own;
  Confinement confinement{.writable = {own.path()}};
  confinement.limits.file_bytes = 1 << 20;
  confinement.limits.open_files = 64;
  const auto body = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const int file = ::open((own / "file").c_str(), O_WRONLY | O_CREAT, 0600);
    MUST(file >= 0 && ::ftruncate(file, 2 << 20) < 0 && errno == EFBIG);
    while (::dup(file) >= 0) {
    }
    MUST(errno == EMFILE);
    rlimit limit{};
    MUST(::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0);
    limit.rlim_max = RLIM_INFINITY;
    MUST(::setrlimit(RLIMIT_FSIZE, &limit) < 0);  // not for root either
    return 0;
  };
  EXPECT_EQ(complaint_of_confined(confinement, body), 0);
}

TEST(Confinement, WhoWritesMoreThanAFileMayHoldIsToldBySignal) {
  const ScratchFolder own;
  Confinement confinement{.writable = {own.path()}};
  confinement.limits.file_bytes = 4096;
  const int status = status_of_confined(confinement, [&] {
    ::signal(SIGXFSZ, SIG_DFL);  // whatever started these tests
    const int file = ::open((own / "file").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string much(8192, 'x');
    while (::write(file, much.data(), much.size()) > 0) {
    }
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Confinement, MemoryIsLimited) {
  Confinement confinement;
  confinement.limits.data_bytes = std::uint64_t{256} << 20;
  const auto body = [] {
    void* const much =
        ::mmap(nullptr, std::size_t{512} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(much == MAP_FAILED && errno == ENOMEM);
    void* const little =
        ::mmap(nullptr, std::size_t{16} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(little != MAP_FAILED);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined(confinement, body), 0);
}
#endif

TEST(Confinement, NoMemoryEscapesItsLimit) {
  NEEDS("system calls");
  NEEDS("files");
  Confinement confinement;
  confinement.limits.data_bytes = std::uint64_t{8} << 30;
  const std::size_t bytes = 1 << 16;
  const int given = ::memfd_create("given", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(given, static_cast<off_t>(bytes)), 0);
  const auto body = [&] {
    const auto map = [&](int flags, int file) {
      return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    };
    MUST(map(MAP_SHARED | MAP_ANONYMOUS, -1) == MAP_FAILED && errno == EPERM);
    MUST(map(MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1) == MAP_FAILED);
    MUST(map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1) == MAP_FAILED && errno == EPERM);
    MUST(map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK | MAP_NORESERVE, -1) == MAP_FAILED);
    MUST(::syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                   0xABC00000000L | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0L) < 0);
    DENIED(::memfd_create("own", MFD_CLOEXEC));
    DENIED(::open("/dev/zero", O_RDWR));
    MUST(map(MAP_PRIVATE | MAP_ANONYMOUS, -1) != MAP_FAILED);
    void* const judges = map(MAP_SHARED, given);  // as a judge shares it
    MUST(judges != MAP_FAILED);
    DENIED(::madvise(judges, bytes, MADV_REMOVE));
    DENIED(::fallocate(given, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)));
    MUST(::madvise(judges, bytes, MADV_DONTNEED) == 0);
    rlimit stack{RLIM_INFINITY, RLIM_INFINITY};
    MUST(::setrlimit(RLIMIT_STACK, &stack) < 0);
    stack = {std::size_t{1} << 30, std::size_t{1} << 30};
    MUST(::setrlimit(RLIMIT_STACK, &stack) < 0);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined(confinement, body), 0);
  ::close(given);
}

TEST(Confinement, WhoHasALimitOfMemoryIsTheFirstToEndWhereThereIsNone) {
  NEEDS("files");
  const auto place = [] {
    int found = 0;
    MUST(std::ifstream("/proc/self/oom_score_adj") >> found);
    return found == 1000 ? 0 : 1;
  };
  Confinement confinement;
  EXPECT_EQ(complaint_of_confined(confinement, place), 1);
  confinement.limits.data_bytes = std::uint64_t{8} << 30;
  EXPECT_EQ(complaint_of_confined(confinement, place), 0);
}

TEST(Confinement, ProcessorTimeIsLimited) {
  Confinement confinement;
  confinement.limits.cpu_s = 1;
  const int status = status_of_confined(confinement, [] {
    for (volatile bool forever = true; forever;) {
    }
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) << status;
}

TEST(Confinement, WhatAKernelNeedsGoesOnWorking) {
  const ScratchFolder own;
  const bool shows_processors = fs::exists("/sys/devices/system/cpu");  // where there is a /sys at all
  const auto body = [&] {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const std::lock_guard lock(mutex);
        ++count;
        changed.notify_one();
      });
    }
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return count == 4; });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    const std::size_t bytes = std::size_t{1} << 24;
    std::vector<char> memory(bytes, 'x');
    void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED && ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
    MUST(::madvise(memory.data() - reinterpret_cast<std::uintptr_t>(memory.data()) % 4096 + 4096, 4096, MADV_NORMAL) ==
         0);
    MUST(::sched_yield() == 0);
    timespec now{};
    MUST(::clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    cpu_set_t processors{};
    MUST(::sched_getaffinity(0, sizeof processors, &processors) == 0);
    MUST(::sched_setaffinity(0, sizeof processors, &processors) == 0);
    MUST(std::ifstream("/proc/self/maps").get() >= 0);
    MUST(std::ifstream("/proc/self/status").get() >= 0);
    MUST(std::ifstream("/proc/cpuinfo").get() >= 0);
    MUST(fs::exists("/sys/devices/system/cpu") == shows_processors);
    MUST(std::ofstream("/dev/null") << "x" << std::flush);
    MUST(std::ifstream("/dev/urandom").get() >= 0);
    fs::create_directory(own / "folder");
    std::ofstream(own / "folder/file") << "text";
    fs::rename(own / "folder/file", own / "file");
    MUST(fs::file_size(own / "file") == 4);
    MUST(::open((own / "file").c_str(), O_WRONLY | O_TRUNC) >= 0);
    MUST(fs::remove_all(own / "folder") == 1);
    ::signal(SIGUSR1, [](int) {});
    MUST(::raise(SIGUSR1) == 0);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({.writable = {own.path()}}, body), 0);
}

/// OpenMP by the library's own entry, so that these tests need no flag.
TEST(Confinement, OpenMpAndLoadedLibrariesGoOnWorking) {
  if (void* const there = ::dlopen("libgomp.so.1", RTLD_NOW); there == nullptr) {
    GTEST_SKIP() << "there is no libgomp.so.1";
  } else {
    ::dlclose(there);
  }
  const auto body = [] {
    using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
    void* const library = ::dlopen("libgomp.so.1", RTLD_NOW);
    MUST(library != nullptr);
    const auto parallel = reinterpret_cast<Parallel>(::dlsym(library, "GOMP_parallel"));
    MUST(parallel != nullptr);
    std::atomic<int> count{0};
    parallel([](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, &count, 4, 0);
    MUST(count == 4);
    return 0;
  };
  EXPECT_EQ(complaint_of_confined({}, body), 0);
}

/// Makes this machine one whose kernel has no such call.
void take_away(std::uint32_t call) {
  std::array program{sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                     sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
                     sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                     sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog filter{program.size(), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST(Confinement, WhatTheKernelLacksIsSaidAndTheRestHolds) {
  NEEDS("files");
  NEEDS("system calls");
  constexpr std::uint32_t landlock_create_ruleset = 444;
  for (const auto& [call, what] : {std::pair<std::uint32_t, std::string>{landlock_create_ruleset, "files"},
                                   std::pair<std::uint32_t, std::string>{SYS_seccomp, "system calls"}}) {
    const pid_t child = ::fork();
    if (child == 0) {
      take_away(call);
      bool good = true;
      for (const Protection& protection : confine_self({}).protections) {
        good = good && protection.in_force == (protection.what != what);
        good = good && (protection.in_force || protection.sentence.find("this kernel has no") == 0);
      }
      ::_exit(good ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << what;
  }
}

TEST(Confinement, ACrashKeepsItsSignal) {
  const int aborted = status_of_confined({}, [] {
    ::abort();
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(aborted) && WTERMSIG(aborted) == SIGABRT) << aborted;
}

}  // namespace
}  // namespace thresher::runtime
