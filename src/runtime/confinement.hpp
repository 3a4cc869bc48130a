#pragma once
/// What a process that will run code from outside may still do: its system calls, the files that it reaches, and how
/// much it may use. Linux gives all of it to an ordinary user; what this machine's kernel lacks is left out and said.
#include <linux/filter.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace thresher::runtime {

/// How much a process may use; 0 leaves a limit as it is.
struct ResourceLimits {
  std::uint64_t address_space_bytes = 0;  ///< all that is mapped, shared memory included; not for a GPU's process
  /// Private memory that can be written, stacks of threads included. Where no device is used, nobody makes any that is
  /// shared, which this does not count.
  std::uint64_t data_bytes = 0;
  /// Processes and threads beyond those that the user has when it begins; of copies, when their template did.
  std::uint64_t more_processes = 0;
  std::uint64_t file_bytes = 0;  ///< the largest file that it may write
  std::uint64_t cpu_s = 0;       ///< processor time of each process
  std::uint64_t open_files = 0;
};

/// Every path is absolute, and one that does not exist is passed over.
struct Confinement {
  std::vector<std::filesystem::path> writable{};    ///< folders: all below may be read, written, made, removed
  std::vector<std::filesystem::path> readable{};    ///< folders or files, beside the system's own
  std::vector<std::filesystem::path> executable{};  ///< programs beside the system's; only with may_exec
  /// Device files, read, written and controlled. With any, files in memory are made and threads named too, which CUDA's
  /// driver does to open a GPU.
  std::vector<std::filesystem::path> devices{};
  ResourceLimits limits{};
  bool may_fork = false;  ///< processes of its own; threads it may always start
  /// Start programs; never one that it wrote itself into a file of a folder, nor, without devices, into memory.
  bool may_exec = false;
  /// Runs nothing from outside: it forks copies of itself, each of which takes on more (ProcessTemplate). What is about
  /// a process's own number holds for none of them until then.
  bool is_template = false;
};

/// The device files of NVIDIA's driver that this machine has, for Confinement::devices.
[[nodiscard]] std::vector<std::filesystem::path> gpu_device_files();

/// One kind of protection, as a report shows it.
struct Protection {
  std::string what;  ///< "system calls", "files", "limits", …
  bool in_force = false;
  std::string sentence;  ///< what it denies, or why there is none here
};

struct Confined {
  std::vector<Protection> protections;
  [[nodiscard]] bool whole() const;
  /// Why each one that is not in force is not, in one line; empty when all are.
  [[nodiscard]] std::string missing() const;
};

/// A confinement with everything done that needs memory, so that a forked child can take it on.
class PreparedConfinement {
 public:
  explicit PreparedConfinement(const Confinement& wanted);
  PreparedConfinement(const PreparedConfinement&) = delete;
  PreparedConfinement& operator=(const PreparedConfinement&) = delete;
  ~PreparedConfinement();

  static constexpr std::size_t steps = 5;
  /// errno of each step, 0 for one that is in force.
  using Outcome = std::array<int, steps>;

  /// A descriptor that must stay open until `apply`; -1 when there is none.
  [[nodiscard]] int descriptor() const;

  /// Confines the calling process for good; only calls that are safe between fork and exec.
  [[nodiscard]] Outcome apply() noexcept;
  [[nodiscard]] Confined report(const Outcome& outcome) const;

  /// For a process that was forked by a template and has taken on its session, limits and privileges already: the
  /// program of its filter, once the descriptor is its rules about files.
  [[nodiscard]] std::vector<sock_filter> hand_to(pid_t process);
  /// What came of it, where `from_template` is what came of the template's own.
  [[nodiscard]] static Outcome outcome_of_copy(const Outcome& from_template, int session_failed, int files_failed,
                                               int system_calls_failed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Confines this process for good, and all that it will ever start. For a process that has just begun and has one
/// thread, before any code from outside is loaded: files that are open stay open. Never throws for what the machine
/// lacks.
Confined confine_self(const Confinement& wanted);

}  // namespace thresher::runtime
