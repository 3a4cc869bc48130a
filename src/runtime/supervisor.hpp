#pragma once
/// The process between this one and a program (process_tree.hpp). It is forked without exec, so that it makes only
/// calls that are safe between fork and exec.
#include <sys/types.h>

#include <span>
#include <utility>

#include "runtime/confinement.hpp"

namespace thresher::runtime {

/// A request to it; when the line closes, it ends the program.
struct SupervisorRequest {
  /// `watch`: the program is a template that has forked `program`, which becomes the watched process until it ends.
  /// Meanwhile the template itself is neither frozen nor thawed. The copy must receive no message before the answer
  /// arrives: the exit of an unwatched copy is lost.
  enum class Kind : int { end, freeze, thaw, watch };
  Kind kind = Kind::end;
  pid_t program = -1;  ///< the watched one; a request for another is ignored, since it has ended and was reported
};

/// Its answer.
struct SupervisorReport {
  enum class Kind : int { started, failed, frozen, ended };
  Kind kind = Kind::failed;
  pid_t program = -1;                      ///< of started, frozen and ended
  int value = 0;                           ///< failed: errno; ended: as from waitpid
  PreparedConfinement::Outcome outcome{};  ///< started with a confinement
};

/// All data that would need an allocation.
struct SupervisedProgram {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* folder = nullptr;  ///< null: the current folder
  int line = -1;                 ///< a socket that preserves message boundaries
  int null = -1;                 ///< /dev/null
  int output = -1;
  std::span<const std::pair<int, int>> descriptors;
  std::span<const int> kept;  ///< all descriptors that stay open, ascending
  PreparedConfinement* confinement = nullptr;
};

/// The main function of a supervisor, in the child of a fork.
[[noreturn]] void supervise(const SupervisedProgram& program) noexcept;

}  // namespace thresher::runtime
