#pragma once
/// The processor time of a process's threads, and their waits for a processor. On a shared machine a measured time
/// includes those waits.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

namespace thresher::arena {

/// One thread since its start, as the kernel counts.
struct ThreadUse {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  ///< ready to run, and no processor was free
  std::uint64_t runs = 0;       ///< how often it got one
};

/// All existing threads, by number.
using ThreadUses = std::map<pid_t, ThreadUse>;

/// The threads of a process by its number, 0: this one. Empty where the kernel does not count, or no such process
/// exists.
[[nodiscard]] std::optional<ThreadUses> thread_uses(pid_t process, const std::filesystem::path& proc = "/proc");

/// Waking up on an idle processor takes this long: it is no wait.
inline constexpr double waking_us = 50;

/// The share of `passed_us` that the threads of a process waited, in total, for processors that others used. A thread
/// only in the later list began meanwhile; the waits of a thread that ended are lost. Empty where more threads wanted
/// to run than there are processors: their waits for each other cannot be separated.
[[nodiscard]] std::optional<double> waited_share(const ThreadUses& before, const ThreadUses& after, double passed_us,
                                                 unsigned processors);

/// Processors that this thread may use.
[[nodiscard]] unsigned usable_processors();

/// Watches the threads of one process from its construction on.
class ProcessorWatch {
 public:
  explicit ProcessorWatch(pid_t process);
  /// Up to now, as waited_share returns it; empty where the kernel does not count.
  [[nodiscard]] std::optional<double> waited() const;

 private:
  pid_t process_;
  std::optional<ThreadUses> before_;
  double start_us_;
};

}  // namespace thresher::arena
