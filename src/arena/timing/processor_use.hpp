#pragma once
/// What the threads of a process had of this machine's processors, and what they waited for one: on a machine that
/// others use too, a time holds what those took.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

namespace thresher::arena {

/// One thread since it began, as the kernel counts.
struct ThreadUse {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  ///< ready to run, and no processor was free
  std::uint64_t runs = 0;       ///< how often it was given one
};

/// All that are there, by their numbers.
using ThreadUses = std::map<pid_t, ThreadUse>;

/// Of a process by its number, 0: this one. Nothing where the kernel does not count, or no such process is there.
[[nodiscard]] std::optional<ThreadUses> thread_uses(pid_t process, const std::filesystem::path& proc = "/proc");

/// Being woken on a processor that nobody uses takes this long: it is no waiting.
inline constexpr double waking_us = 50;

/// How much of `passed_us` the threads of a process waited together for processors that others used. A thread that is
/// there in the end alone began meanwhile; one that is not any more took what it waited with it. Nothing where
/// more threads wanted to run than there are processors: they wait for each other, and nobody can tell for whom else.
[[nodiscard]] std::optional<double> waited_share(const ThreadUses& before, const ThreadUses& after, double passed_us,
                                                 unsigned processors);

/// Processors that this thread may use.
[[nodiscard]] unsigned usable_processors();

/// Watches the threads of one process from its making on.
class ProcessorWatch {
 public:
  explicit ProcessorWatch(pid_t process);
  /// Up to now, as waited_share has it; nothing where the kernel does not tell.
  [[nodiscard]] std::optional<double> waited() const;

 private:
  pid_t process_;
  std::optional<ThreadUses> before_;
  double start_us_;
};

}  // namespace thresher::arena
