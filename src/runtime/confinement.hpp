#pragma once
/// The restrictions of a process that will run user code: its system calls, the files that it can access, and its
/// resource limits. Linux offers all of them to an ordinary user. Restrictions that this machine's kernel lacks are
/// left out and reported.
#include <linux/filter.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace thresher::runtime {

/// Resource limits of a process; 0 leaves a limit as it is.
struct ResourceLimits {
  std::uint64_t address_space_bytes = 0;  ///< all mappings, shared memory included; not for a process that uses a GPU
  /// Private writable memory, including threads' stacks. It does not count shared memory, which a process without a
  /// device cannot create.
  std::uint64_t data_bytes = 0;
  /// Processes and threads beyond those of the user at its start; for copies, at their template's start.
  std::uint64_t more_processes = 0;
  std::uint64_t file_bytes = 0;  ///< the maximum size of a file that it writes
  std::uint64_t cpu_s = 0;       ///< processor time per process
  std::uint64_t open_files = 0;
};

/// Every path is absolute; missing paths are ignored.
struct Confinement {
  std::vector<std::filesystem::path> writable{};  ///< folders: everything below may be read, written, created, removed
  std::vector<std::filesystem::path> readable{};  ///< folders or files, in addition to the system's
  std::vector<std::filesystem::path> executable{};  ///< programs in addition to the system's; only with may_exec
  /// Device files, for read, write and control. If there are any, files in memory and names of threads are also
  /// allowed, which CUDA's driver needs to open a GPU.
  std::vector<std::filesystem::path> devices{};
  ResourceLimits limits{};
  bool may_fork = false;  ///< child processes; threads are always allowed
  /// Start programs; never one that it wrote into a file of a folder, nor, without devices, into memory.
  bool may_exec = false;
  /// Runs no user code: it forks copies of itself, each of which takes on more restrictions (ProcessTemplate). Until
  /// then, rules about a process's own number apply to none of them.
  bool is_template = false;
};

/// The device files of NVIDIA's driver that this machine has, for Confinement::devices.
[[nodiscard]] std::vector<std::filesystem::path> gpu_device_files();

/// One kind of protection, as a report shows it.
struct Protection {
  std::string what;  ///< "system calls", "files", "limits", …
  bool in_force = false;
  std::string sentence;  ///< what it denies, or why it is not in force
};

struct Confined {
  std::vector<Protection> protections;
  [[nodiscard]] bool whole() const;
  /// The reason for each one that is not in force, in one line; empty when all are.
  [[nodiscard]] std::string missing() const;
};

/// A confinement whose memory is already allocated, so that a forked child can apply it.
class PreparedConfinement {
 public:
  explicit PreparedConfinement(const Confinement& wanted);
  PreparedConfinement(const PreparedConfinement&) = delete;
  PreparedConfinement& operator=(const PreparedConfinement&) = delete;
  ~PreparedConfinement();

  static constexpr std::size_t steps = 5;
  /// errno of each step, 0 for one that is in force.
  using Outcome = std::array<int, steps>;

  /// A descriptor that must stay open until `apply`; -1 without one.
  [[nodiscard]] int descriptor() const;

  /// Confines the calling process permanently; makes only calls that are safe between fork and exec.
  [[nodiscard]] Outcome apply() noexcept;
  [[nodiscard]] Confined report(const Outcome& outcome) const;

  /// For a process that a template forked and that has already applied its session, limits and privileges. Returns the
  /// program of its filter; `descriptor` is then its file rules.
  [[nodiscard]] std::vector<sock_filter> hand_to(pid_t process);
  /// The result for a copy; `from_template` is the result of the template's own.
  [[nodiscard]] static Outcome outcome_of_copy(const Outcome& from_template, int session_failed, int files_failed,
                                               int system_calls_failed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Confines this process and all its descendants permanently. For a process that has just begun and has one thread,
/// before any user code is loaded: open files stay open. Never throws for restrictions that the machine lacks.
Confined confine_self(const Confinement& wanted);

}  // namespace thresher::runtime
