#include "runtime/system_call_filter.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <initializer_list>

namespace thresher::runtime {

#if defined(__x86_64__) && defined(SECCOMP_SET_MODE_FILTER)

namespace {

constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW;
constexpr std::uint32_t denied = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t unknown = SECCOMP_RET_ERRNO | ENOSYS;  // the C library then uses another call

constexpr std::uint32_t x32_bit = 0x40000000;  // the same numbers with other meanings
// System calls newer than the C library's list: their numbers are the same on all architectures.
constexpr int number_of_memfd_secret = 447;
constexpr int number_of_fchmodat2 = 452;
constexpr int number_of_lsm_set_self_attr = 460;
constexpr int newest_known = 462;

constexpr std::array to_others{SYS_socketpair, SYS_connect};
constexpr std::array for_others{SYS_socket, SYS_bind, SYS_listen, SYS_accept, SYS_accept4};

constexpr std::array other_processes{
    SYS_ptrace,           SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
    SYS_pidfd_open,       SYS_pidfd_getfd,      SYS_pidfd_send_signal, SYS_process_madvise,
    SYS_process_mrelease, SYS_migrate_pages,    SYS_move_pages,        SYS_tkill};

/// Objects that outlive the process, or that other processes of the user have made.
constexpr std::array shared_with_others{
    SYS_shmget, SYS_shmat,      SYS_shmctl, SYS_msgget,  SYS_msgsnd,    SYS_msgrcv,  SYS_msgctl,      SYS_semget,
    SYS_semop,  SYS_semtimedop, SYS_semctl, SYS_mq_open, SYS_mq_unlink, SYS_add_key, SYS_request_key, SYS_keyctl};

/// Landlock does not cover these, and they need only ownership of a file.
constexpr std::array attributes_of_files{SYS_chmod,
                                         SYS_fchmod,
                                         SYS_fchmodat,
                                         SYS_chown,
                                         SYS_fchown,
                                         SYS_lchown,
                                         SYS_fchownat,
                                         SYS_utime,
                                         SYS_utimes,
                                         SYS_futimesat,
                                         SYS_utimensat,
                                         SYS_setxattr,
                                         SYS_lsetxattr,
                                         SYS_fsetxattr,
                                         SYS_removexattr,
                                         SYS_lremovexattr,
                                         SYS_fremovexattr,
                                         SYS_name_to_handle_at,
                                         SYS_open_by_handle_at};

constexpr std::array namespaces_and_mounts{SYS_mount,      SYS_umount2,   SYS_pivot_root,   SYS_chroot,  SYS_unshare,
                                           SYS_setns,      SYS_fsopen,    SYS_fsconfig,     SYS_fsmount, SYS_fspick,
                                           SYS_move_mount, SYS_open_tree, SYS_mount_setattr};

constexpr std::array whole_machine{SYS_bpf,
                                   SYS_perf_event_open,
                                   SYS_userfaultfd,
                                   SYS_io_uring_setup,
                                   SYS_io_uring_enter,
                                   SYS_io_uring_register,
                                   SYS_reboot,
                                   SYS_swapon,
                                   SYS_swapoff,
                                   SYS_sethostname,
                                   SYS_setdomainname,
                                   SYS_iopl,
                                   SYS_ioperm,
                                   SYS_init_module,
                                   SYS_finit_module,
                                   SYS_delete_module,
                                   SYS_kexec_load,
                                   SYS_kexec_file_load,
                                   SYS_acct,
                                   SYS_quotactl,
                                   SYS_syslog,
                                   SYS_vhangup,
                                   SYS_settimeofday,
                                   SYS_clock_settime,
                                   SYS_adjtimex,
                                   SYS_clock_adjtime,
                                   SYS_fanotify_init,
                                   SYS_fanotify_mark,
                                   SYS_lookup_dcookie,
                                   SYS_nfsservctl,
                                   SYS_uselib,
                                   SYS_inotify_init,
                                   SYS_inotify_init1,
                                   SYS_inotify_add_watch};

/// Writes the program from top to bottom. Between rules the accumulator holds the call's number.
class Writer {
 public:
  Writer() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
    give(denied);
    load(offsetof(seccomp_data, nr));
    jump(BPF_JSET, x32_bit, 0, 1);
    give(unknown);
    jump(BPF_JGT, newest_known, 0, 1);
    give(unknown);
  }

  void always(long call, std::uint32_t answer) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 1);
    give(answer);
  }

  template <class Calls>
  void deny(const Calls& calls) {
    for (const long call : calls) {
      always(call, denied);
    }
  }

  /// Only for the calling process: argument `place` is its number, or 0 where `or_zero`.
  void own_process_only(long call, int place, bool or_zero) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, or_zero ? 5 : 4);
    load_argument(place);
    if (or_zero) {
      jump(BPF_JEQ, 0, 2, 0);
    }
    own_pids.push_back(program.size());
    jump(BPF_JEQ, 0, 1, 0);
    give(denied);
    give(allowed);
  }

  /// As own_process_only, for a call whose argument 0 is the kind of argument 1: only processes.
  void own_process_of_kind(long call, std::uint32_t process_kind) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 7);
    load_argument(0);
    jump(BPF_JEQ, process_kind, 0, 3);
    load_argument(1);
    jump(BPF_JEQ, 0, 2, 0);
    own_pids.push_back(program.size());
    jump(BPF_JEQ, 0, 1, 0);
    give(denied);
    give(allowed);
  }

  /// Denied when argument `place`, masked, is one of the values.
  void deny_values(long call, int place, std::uint32_t mask, std::initializer_list<std::uint32_t> values) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, static_cast<std::uint8_t>(3 + 2 * values.size()));
    load_argument(place);
    add(BPF_ALU | BPF_AND | BPF_K, mask);
    for (const std::uint32_t value : values) {
      jump(BPF_JEQ, value, 0, 1);
      give(denied);
    }
    give(allowed);
  }

  /// Denied when argument `place` has any of the flags.
  void deny_flags(long call, int place, std::uint32_t flags) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 4);
    load_argument(place);
    jump(BPF_JSET, flags, 0, 1);
    give(denied);
    load(offsetof(seccomp_data, nr));
  }

  /// Only local sockets that are connected before any data is sent.
  void only_listening_sockets() {
    constexpr std::uint32_t kind_of_socket = 0xF;  // flags follow it
    jump(BPF_JEQ, SYS_socket, 0, 7);
    load_argument(0);
    jump(BPF_JEQ, AF_UNIX, 0, 3);
    load_argument(1);
    add(BPF_ALU | BPF_AND | BPF_K, kind_of_socket);
    jump(BPF_JEQ, SOCK_SEQPACKET, 1, 0);
    give(denied);
    give(allowed);
  }

  /// Threads, and with `may_fork` processes; never namespaces.
  void clone(bool may_fork) {
    constexpr std::uint32_t in_namespaces =
        CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    jump(BPF_JEQ, SYS_clone, 0, 5);
    load_argument(0);
    jump(BPF_JSET, in_namespaces, 1, 0);
    jump(BPF_JSET, may_fork ? ~0U : static_cast<std::uint32_t>(CLONE_THREAD), 1, 0);
    give(denied);
    give(allowed);
    always(SYS_clone3, unknown);  // its flags are in memory, which a filter cannot read
    if (!may_fork) {
      deny(std::array{SYS_fork, SYS_vfork});
    }
  }

  void allow_the_rest() { give(allowed); }

  std::vector<sock_filter> program;
  std::vector<std::size_t> own_pids;

 private:
  void add(std::uint16_t code, std::uint32_t k) { program.push_back({code, 0, 0, k}); }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
  /// Its low half, which is all that the kernel reads of process numbers, flags and commands.
  void load_argument(int place) { load(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(place)); }
  void jump(int test, std::uint32_t k, std::uint8_t over_if_true, std::uint8_t over_if_false) {
    program.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), over_if_true, over_if_false, k});
  }
  void give(std::uint32_t answer) { add(BPF_RET | BPF_K, answer); }
};

/// Commands on descriptors that send signals to others, or type into terminals.
void deny_commands_of_files(Writer& writer) {
  constexpr std::uint32_t set_flags = 0x40086602;       // FS_IOC_SETFLAGS
  constexpr std::uint32_t set_attributes = 0x401c5820;  // FS_IOC_FSSETXATTR
  writer.deny_values(SYS_ioctl, 1, ~0U,
                     {TIOCSTI, TIOCLINUX, TIOCSCTTY, FIOSETOWN, SIOCSPGRP, set_flags, set_attributes});
  writer.deny_values(SYS_fcntl, 1, ~0U, {F_SETOWN, F_SETOWN_EX, F_SETSIG});
}

/// A file that is opened read-only can still be truncated.
void deny_cutting(Writer& writer, bool truncation_is_guarded) {
  if (!truncation_is_guarded) {
    writer.deny(std::array{SYS_truncate});
    writer.deny_values(SYS_open, 1, O_ACCMODE | O_TRUNC, {O_RDONLY | O_TRUNC});
    writer.deny_values(SYS_openat, 2, O_ACCMODE | O_TRUNC, {O_RDONLY | O_TRUNC});
  }
  writer.always(SYS_openat2, unknown);  // its flags are in memory
}

/// Memory without a file, memory that counts as a stack, and files without a name: no data limit counts them.
void deny_uncounted_memory(Writer& writer) {
  constexpr std::uint32_t of_nobodys_file = MAP_SHARED | MAP_ANONYMOUS;
  writer.deny_flags(SYS_mmap, 3, MAP_GROWSDOWN);
  writer.deny_values(SYS_mmap, 3, of_nobodys_file, {of_nobodys_file});
  writer.deny(std::array{SYS_memfd_create, number_of_memfd_secret});
}

/// Holes in shared files, whose pages the next reader would allocate, and that is the judge.
void deny_holes(Writer& writer, bool writes_files) {
  writer.deny_values(SYS_madvise, 2, ~0U, {MADV_REMOVE});
  if (!writes_files) {
    writer.deny(std::array{SYS_fallocate});
  }
}

/// CUDA's driver opens no GPU for a process that cannot listen on a local socket; listening reaches no other process.
void deny_sockets(Writer& writer, bool drives_devices) {
  writer.deny(to_others);
  if (drives_devices) {
    writer.only_listening_sockets();
  } else {
    writer.deny(for_others);
  }
}

/// Calls that could affect other processes. The rules compare with the process's number, which differs in a copy.
void only_about_itself(Writer& writer) {
  constexpr std::uint32_t one_process = 1;  // IOPRIO_WHO_PROCESS
  writer.own_process_only(SYS_kill, 0, false);
  writer.own_process_only(SYS_tgkill, 0, false);
  writer.own_process_only(SYS_rt_sigqueueinfo, 0, false);
  writer.own_process_only(SYS_rt_tgsigqueueinfo, 0, false);
  writer.own_process_only(SYS_sched_setaffinity, 0, true);
  writer.own_process_only(SYS_sched_setscheduler, 0, true);
  writer.own_process_only(SYS_sched_setparam, 0, true);
  writer.own_process_only(SYS_sched_setattr, 0, true);
  writer.own_process_only(SYS_prlimit64, 0, true);
  writer.own_process_of_kind(SYS_setpriority, PRIO_PROCESS);
  writer.own_process_of_kind(SYS_ioprio_set, one_process);
  writer.deny(std::array{SYS_setsid, SYS_setpgid});
  writer.deny_values(SYS_prctl, 0, ~0U,
                     {PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_MM, PR_SET_CHILD_SUBREAPER, PR_SET_PTRACER});
}

Writer write(const FilterOptions& options) {
  Writer writer;
  writer.clone(options.may_fork);
  if (!options.may_exec) {
    writer.deny(std::array{SYS_execve, SYS_execveat});
  } else {
    writer.deny(std::array{SYS_execveat});
    if (!options.drives_devices) {
      writer.deny(std::array{SYS_memfd_create});  // a program that is no file
    }
  }
  if (!options.is_template) {
    only_about_itself(writer);
  }
  deny_commands_of_files(writer);
  deny_cutting(writer, options.truncation_is_guarded);
  if (options.memory_is_counted) {
    deny_uncounted_memory(writer);
  }
  deny_holes(writer, options.may_exec);
  deny_sockets(writer, options.drives_devices);
  writer.deny(other_processes);
  writer.deny(shared_with_others);
  writer.deny(attributes_of_files);
  writer.deny(namespaces_and_mounts);
  writer.deny(whole_machine);
  writer.deny(std::array{number_of_fchmodat2, number_of_lsm_set_self_attr});
  writer.allow_the_rest();
  return writer;
}

}  // namespace

SystemCallFilter::SystemCallFilter(const FilterOptions& options) {
  // Checks that the kernel supports filters: if it does, a null program is a bad address.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, nullptr) < 0 && errno != EFAULT) {
    problem_ = "this kernel has no seccomp filters";
    return;
  }
  Writer writer = write(options);
  program_ = std::move(writer.program);
  own_pids_ = std::move(writer.own_pids);
}

std::vector<sock_filter> SystemCallFilter::for_process(pid_t process) const {
  std::vector<sock_filter> program = program_;
  for (const std::size_t place : own_pids_) {
    program[place].k = static_cast<std::uint32_t>(process);
  }
  return program;
}

int SystemCallFilter::apply() noexcept {
  if (program_.empty()) {
    return ENOSYS;
  }
  for (const std::size_t place : own_pids_) {
    program_[place].k = static_cast<std::uint32_t>(::getpid());
  }
  const sock_fprog program{static_cast<unsigned short>(program_.size()), program_.data()};
  // Without the mitigation that would slow down the kernel by more than the filter itself.
  constexpr unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  const long failed = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  return failed == 0 ? 0 : failed > 0 ? EBUSY : errno;
}

#else

SystemCallFilter::SystemCallFilter(const FilterOptions&)
    : problem_("filters of system calls are made for x86-64 alone") {}
std::vector<sock_filter> SystemCallFilter::for_process(pid_t) const { return {}; }
int SystemCallFilter::apply() noexcept { return ENOSYS; }

#endif

}  // namespace thresher::runtime
