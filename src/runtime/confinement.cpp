#include "runtime/confinement.hpp"

#include <fcntl.h>
#include <link.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "runtime/landlock.hpp"
#include "runtime/system_call_filter.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

/// In the order of application: later steps need earlier ones, and a filter denies the rest.
enum Step : std::size_t { session, limits, privileges, files, system_calls };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_instrumented = true;
#else
constexpr bool is_instrumented = false;
#endif

/// Read by every program; these folders hold no user data.
constexpr std::array system_folders{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
constexpr std::array system_files{"/etc/ld.so.cache",  "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
                                  "/proc/cpuinfo",     "/proc/meminfo",   "/proc/stat",        "/proc/version",
                                  "/proc/filesystems", "/proc/sys/vm",    "/proc/sys/kernel",  "/sys/devices/system",
                                  "/sys/kernel/mm",    "/dev/random",     "/dev/urandom",      "/dev/zero"};
constexpr std::array harmless_devices{"/dev/null", "/dev/full"};
constexpr std::array of_gpu_driver{"/proc/driver", "/proc/devices", "/proc/modules",
                                   "/sys/bus",     "/sys/devices",  "/sys/module"};

/// Files already loaded into this process, in any folder: their code reads them again.
std::vector<fs::path> loaded_libraries() {
  std::vector<fs::path> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
          static_cast<std::vector<fs::path>*>(list)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

/// The number of processes and threads of this user.
std::uint64_t processes_of_user() {
  std::uint64_t count = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
    std::ifstream status(entry.path() / "status");
    std::string word;
    bool is_own = false;
    while (status >> word) {
      if (word == "Uid:") {
        unsigned uid = 0;
        is_own = status >> uid && uid == ::getuid();
      } else if (word == "Threads:") {
        std::uint64_t threads = 0;
        status >> threads;
        count += is_own ? threads : 0;
        break;
      }
    }
  }
  return count;
}

/// A stack grows outside the data limit, up to a limit that the process could raise itself.
constexpr rlim_t max_stack_bytes = rlim_t{64} << 20;

struct Limit {
  decltype(RLIMIT_CORE) what;
  rlim_t most;
};

std::vector<Limit> limits_of(const ResourceLimits& wanted) {
  std::vector<Limit> all{{RLIMIT_CORE, 0}};
  const auto add = [&](auto what, std::uint64_t most) {
    if (most != 0) {
      all.push_back({what, static_cast<rlim_t>(most)});
    }
  };
  add(RLIMIT_AS, is_instrumented ? 0 : wanted.address_space_bytes);  // instrumented code maps terabytes
  add(RLIMIT_DATA, is_instrumented ? 0 : wanted.data_bytes);
  add(RLIMIT_STACK, wanted.data_bytes == 0 ? 0 : max_stack_bytes);
  add(RLIMIT_NPROC, wanted.more_processes == 0 ? 0 : processes_of_user() + wanted.more_processes);
  add(RLIMIT_FSIZE, wanted.file_bytes);
  add(RLIMIT_CPU, wanted.cpu_s);
  add(RLIMIT_NOFILE, wanted.open_files);
  return all;
}

int apply_limits(const std::vector<Limit>& all) noexcept {
  int failed = 0;
  for (const Limit& limit : all) {
    rlimit now{};
    if (::getrlimit(limit.what, &now) != 0) {
      failed = errno;
      continue;
    }
    // At the soft limit of time a signal gives the reason; a process that ignores it is killed a second later.
    const rlim_t grace = limit.what == RLIMIT_CPU ? 1 : 0;
    // Threads' stacks are as large as the first thread's soft limit, which stays as it was.
    const rlim_t soft = limit.what == RLIMIT_STACK ? now.rlim_cur : now.rlim_max;
    const rlimit then{std::min(limit.most, soft), std::min(limit.most + grace, now.rlim_max)};
    if (::setrlimit(limit.what, &then) != 0) {
      failed = errno;
    }
  }
  return failed;
}

/// When memory runs out the kernel kills this process before any of the user's others. It is not a limit on the
/// process, so a failure here is ignored.
void be_the_first_to_end() noexcept {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file >= 0) {
    (void)!::write(file, "1000", 4);
    ::close(file);
  }
}

int apply_session() noexcept { return ::setsid() >= 0 || ::getsid(0) == ::getpid() ? 0 : errno; }

/// Drops all privileges, and all of root's except to read and write files of other owners, which Landlock limits.
int apply_privileges(bool files_are_bound) noexcept {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return errno;
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> now{};
  if (::syscall(SYS_capget, &header, now.data()) != 0) {
    return errno;
  }
  const std::uint32_t kept = files_are_bound ? 1U << CAP_DAC_OVERRIDE : 0;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> then{};
  then[0].permitted = now[0].permitted & kept;
  then[0].effective = now[0].effective & kept;
  return ::syscall(SYS_capset, &header, then.data()) == 0 ? 0 : errno;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string sentence_of(const ResourceLimits& wanted) {
  std::string text = "no core files";
  const auto add = [&](std::uint64_t value, const std::string& words) { text += value == 0 ? "" : ", " + words; };
  if (!is_instrumented) {
    add(wanted.address_space_bytes, mebibytes(wanted.address_space_bytes) + " of address space");
    add(wanted.data_bytes, mebibytes(wanted.data_bytes) + " of private memory");
  }
  if (::getuid() != 0) {
    add(wanted.more_processes, std::to_string(wanted.more_processes) + " more processes and threads");
  }
  add(wanted.file_bytes, mebibytes(wanted.file_bytes) + " in a file");
  add(wanted.cpu_s, std::to_string(wanted.cpu_s) + " s of processor time");
  add(wanted.open_files, std::to_string(wanted.open_files) + " open files");
  if (is_instrumented && (wanted.address_space_bytes | wanted.data_bytes) != 0) {
    text += "; none of memory, since this build is instrumented";
  }
  if (::getuid() == 0 && wanted.more_processes != 0) {
    text += "; none of processes, since root has none";
  }
  return text;
}

std::string why(int failed) { return std::string("the kernel refuses it: ") + std::strerror(failed); }

}  // namespace

std::vector<fs::path> gpu_device_files() {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", ignored)) {
    if (entry.path().filename().string().starts_with("nvidia")) {
      found.push_back(entry.path());
    }
  }
  return found;
}

bool Confined::whole() const {
  return std::all_of(protections.begin(), protections.end(), [](const Protection& p) { return p.in_force; });
}

std::string Confined::missing() const {
  std::string text;
  for (const Protection& protection : protections) {
    if (!protection.in_force) {
      text += (text.empty() ? "" : "; ") + protection.what + ": " + protection.sentence;
    }
  }
  return text;
}

struct PreparedConfinement::State {
  explicit State(const Confinement& confinement)
      : wanted(confinement),
        resources(limits_of(confinement.limits)),
        filter({.may_fork = confinement.may_fork,
                .may_exec = confinement.may_exec,
                .is_template = confinement.is_template,
                .drives_devices = !confinement.devices.empty(),
                .memory_is_counted = confinement.limits.data_bytes > 0 && confinement.devices.empty(),
                .truncation_is_guarded = landlock.guards_truncation()}) {}

  Confinement wanted;
  std::vector<Limit> resources;
  Landlock landlock;
  SystemCallFilter filter;
};

PreparedConfinement::PreparedConfinement(const Confinement& wanted) : state_(std::make_unique<State>(wanted)) {
  Landlock& landlock = state_->landlock;
  const Landlock::Reach programs = wanted.may_exec ? Landlock::Reach::run : Landlock::Reach::read;
  const auto allow = [&](const auto& paths, Landlock::Reach reach) {
    for (const auto& path : paths) {
      landlock.allow(path, reach);
    }
  };
  allow(system_folders, programs);
  allow(system_files, Landlock::Reach::read);
  allow(loaded_libraries(), Landlock::Reach::read);
  allow(harmless_devices, Landlock::Reach::control);
  allow(wanted.readable, Landlock::Reach::read);
  allow(wanted.executable, programs);
  allow(wanted.writable, Landlock::Reach::change);
  allow(wanted.devices, Landlock::Reach::control);
  if (!wanted.devices.empty()) {
    allow(of_gpu_driver, Landlock::Reach::read);
    landlock.allow_naming_threads();  // otherwise CUDA's driver does not open a GPU
  }
  if (wanted.is_template) {
    landlock.allow_all_processes();
  }
}

PreparedConfinement::~PreparedConfinement() = default;

std::vector<sock_filter> PreparedConfinement::hand_to(pid_t process) {
  state_->landlock.allow_process(process);
  return state_->filter.for_process(process);
}

PreparedConfinement::Outcome PreparedConfinement::outcome_of_copy(const Outcome& from_template, int session_failed,
                                                                  int files_failed, int system_calls_failed) {
  Outcome outcome = from_template;
  outcome[session] = session_failed;
  outcome[files] = files_failed;
  outcome[system_calls] = system_calls_failed;
  return outcome;
}

int PreparedConfinement::descriptor() const { return state_->landlock.descriptor(); }

PreparedConfinement::Outcome PreparedConfinement::apply() noexcept {
  Outcome outcome{};
  outcome[session] = apply_session();
  if (state_->wanted.limits.data_bytes != 0) {
    be_the_first_to_end();
  }
  outcome[limits] = apply_limits(state_->resources);
  outcome[privileges] = apply_privileges(state_->landlock.problem().empty());
  outcome[files] = state_->landlock.apply();
  outcome[system_calls] = state_->filter.apply();
  return outcome;
}

Confined PreparedConfinement::report(const Outcome& outcome) const {
  const Confinement& wanted = state_->wanted;
  Confined confined;
  const auto add = [&](Step step, const std::string& what, const std::string& problem, const std::string& sentence) {
    const bool holds = outcome[step] == 0;
    confined.protections.push_back({what, holds, holds ? sentence : problem.empty() ? why(outcome[step]) : problem});
  };
  add(session, "session", "", "a session and a process group of its own");
  add(limits, "limits", "", sentence_of(wanted.limits));
  add(privileges, "privileges", "", "no new privileges, and none of root's");
  add(files, "files", state_->landlock.problem(),
      "Landlock " + std::to_string(state_->landlock.abi()) +
          ": writes only into its own folders, reads only there, in the system's and in /proc/self");
  add(system_calls, "system calls", state_->filter.problem(),
      std::string("seccomp: no network, no other process's memory, signals, priority or processors, no mounts, no "
                  "attributes of files") +
          (wanted.may_fork ? "" : ", no processes of its own") + (wanted.may_exec ? "" : ", no programs"));
  return confined;
}

Confined confine_self(const Confinement& wanted) {
  PreparedConfinement prepared(wanted);
  std::error_code ignored;
  const auto threads = std::distance(fs::directory_iterator("/proc/self/task", ignored), fs::directory_iterator());
  Confined confined = prepared.report(prepared.apply());
  if (threads > 1) {
    // A filter applies to every thread, Landlock and the privileges only to the calling one.
    for (Protection& protection : confined.protections) {
      if (protection.what == "files" || protection.what == "privileges") {
        protection.in_force = false;
        protection.sentence = "only for one of the " + std::to_string(threads) + " threads that ran before";
      }
    }
  }
  return confined;
}

}  // namespace thresher::runtime
